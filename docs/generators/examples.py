"""Commands, and what they print: run here, or when the documents were last made."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

from outvote.cli.main import main

DOCS = Path(__file__).parents[1]
PLAN = "plan --variants 4 --sites 20 --baseline 10% --difference 2% --traffic 50,000"
SIMULATE = "simulate --protocol dme --problem 1 --players 16 --horizon 3e5 --trials 5"


def demo_output() -> str:
    """What `make demo` printed when the documents were last made: real processes never take the same time twice."""
    return "```\n" + (DOCS / "demo.txt").read_text(encoding="utf-8") + "```"


def simulate_example() -> str:
    """A simulation, and what it prints, but for the line that says how long it took."""
    lines = printed_by(SIMULATE.split())[:-1]
    return f"```sh\n.venv/bin/outvote {SIMULATE} --plot regret.png\n```\n\n```\n{''.join(lines)}```"


def plan_example() -> str:
    """A plan, and what it prints."""
    lines = printed_by(PLAN.split())
    return f"```sh\n.venv/bin/outvote {PLAN}\n```\n\n```\n{''.join(lines)}```"


def printed_by(arguments: list[str]) -> list[str]:
    """The lines that a command prints on a terminal 120 wide."""
    out = io.StringIO()
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "120"
    try:
        with contextlib.redirect_stdout(out):
            if main(arguments):
                raise SystemExit(f"outvote {' '.join(arguments)} failed")
    finally:
        os.environ.pop("COLUMNS")
        if columns is not None:
            os.environ["COLUMNS"] = columns
    return [line.rstrip() + "\n" for line in out.getvalue().splitlines()]
