"""Writes the generated parts of the documents anew (`make docs`); a test fails when they are out of date.

A generated part stands between `<!-- generated: NAME -->` and `<!-- end -->`, and its text comes from the code.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.guarantees import tables as guarantees
from benchmarks.tally import page as ideas
from benchmarks.tally import tables as measured

from outvote.cli.main import main
from outvote.core.median import ARM_TRANSITIONS
from outvote.core.protocols import REGISTRY
from outvote.core.schedule import Schedule, paper_log_eta
from outvote.paper import report
from outvote.paper.study import Study
from outvote.paper.verdicts import Claim
from outvote.simulation.fleets import BASELINES

DOCS = Path(__file__).parent
PLAN = "plan --arms 4 --players 20 --baseline .1 --difference .02 --traffic 50000"
PART = re.compile(r"<!-- generated: (?P<name>[a-z-]+) -->\n.*?<!-- end -->", re.DOTALL)


def arm_states() -> str:
    """The state diagram of one arm in one instance of one player."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> candidate"]
    lines += [f"    {state} --> {after}: {event}" for (state, event), after in ARM_TRANSITIONS.items()]
    return "\n".join([*lines, "```"])


def pulls_per_player() -> str:
    """What one player needs with the paper's constants: K = 10, ε = .5, δ = .05, epochs of 10, 5, 3 and 2 arms."""
    columns = [("1, alone (η = δ)", 2.0), *((f"{n:,}", float(n)) for n in (4, 16, 64, 256, 1024))]
    schedules = [Schedule(10, 0.5, paper_log_eta(0.05, active)) for _, active in columns]
    first = [schedule.pulls(1) for schedule in schedules]
    total = [sum(arms * schedule.pulls(epoch) for epoch, arms in enumerate((10, 5, 3, 2), 1)) for schedule in schedules]
    rows = [
        ["N = N_γ", *(name for name, _ in columns)],
        ["---"] + ["---:"] * len(columns),
        ["pulls of each arm in epoch 1", *(f"{pulls:,}" for pulls in first)],
        ["pulls of all arms in all epochs", *(f"{pulls:,}" for pulls in total)],
        ["times fewer than alone", *(f"{total[0] / pulls:.2f}" for pulls in total)],
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def protocol_names() -> str:
    """Every protocol and baseline that `outvote simulate` runs."""
    names = {name: entry.summary for name, entry in REGISTRY.items()} | BASELINES
    return "\n".join(
        ["| name | what it is |", "|---|---|", *(f"| `{name}` | {what} |" for name, what in names.items())]
    )


def demo_output() -> str:
    """What `make demo` printed when the documents were last made: real processes never take the same time twice."""
    return "```\n" + (DOCS / "demo.txt").read_text(encoding="utf-8") + "```"


def simulate_example() -> str:
    """A simulation, and what it prints, but for the line that says how long it took."""
    arguments = "simulate --protocol dme --problem 1 --players 16 --horizon 3e5 --trials 5"
    lines = printed_by(arguments.split())[:-1]
    return f"```sh\n.venv/bin/outvote {arguments} --plot regret.png\n```\n\n```\n{''.join(lines)}```"


def plan_example() -> str:
    """A plan, and what it prints."""
    lines = printed_by(PLAN.split())
    return f"```sh\n.venv/bin/outvote {PLAN} --plot plan.png\n```\n\n```\n{''.join(lines)}```"


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


def claims() -> str:
    """The verdicts of the last full run of `outvote paper` that was taken into the documents."""
    found = json.loads((DOCS / "claims.json").read_text(encoding="utf-8"))
    return report.markdown(Study(), [Claim(**claim) for claim in found])


def tally_tables() -> dict[str, Callable[[], str]]:
    """The tables of what was measured about Tally, from the last run that was kept."""
    found = {f"tally-{name}": text for name, text in measured.tables(_kept("measures.json")).items()}
    found |= {f"tally-idea-{name}": text for name, text in ideas.tables(_kept("ideas.json")).items()}
    return {name: lambda text=text: text for name, text in found.items()}  # type: ignore[misc]


def guarantee_tables() -> dict[str, Callable[[], str]]:
    """What is proved, computed and measured about the rules for η."""
    found = guarantees.tables(_kept("measures.json", of="guarantees"))
    return {f"guarantees-{name}": lambda text=text: text for name, text in found.items()}  # type: ignore[misc]


def _kept(name: str, of: str = "tally") -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((DOCS.parent / "benchmarks" / of / name).read_text(encoding="utf-8"))
    return kept


PARTS: dict[str, Callable[[], str]] = {
    **tally_tables(),
    **guarantee_tables(),
    "arm-states": arm_states,
    "claims": claims,
    "demo-output": demo_output,
    "plan-example": plan_example,
    "simulate-example": simulate_example,
    "pulls-per-player": pulls_per_player,
    "protocol-names": protocol_names,
}


def documents() -> list[Path]:
    return [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]


def regenerate(text: str) -> str:
    """The document with its generated parts written anew."""
    return PART.sub(lambda part: f"<!-- generated: {part['name']} -->\n{PARTS[part['name']]()}\n<!-- end -->", text)


def write() -> int:
    for path in documents():
        old = path.read_text(encoding="utf-8")
        new = regenerate(old)
        if new != old:
            path.write_text(new, encoding="utf-8")
            print(f"updated {path.relative_to(DOCS.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(write())
