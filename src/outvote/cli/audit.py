"""`outvote audit`: a real fleet with marked users is watched from all sides, and all that is seen is searched."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from outvote.cli import serving
from outvote.cli.options import add_fleet, add_json, tell
from outvote.core.errors import InvalidConfiguration
from outvote.quantities import number, seconds

if TYPE_CHECKING:
    from outvote.privacy.audit.judge import Verdict

EXAMPLE = """\
examples:
  outvote audit
  outvote audit --protocol dme
  outvote audit --privacy-budget 1 --events 5000 --json audit.json
"""


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "audit",
        help="check that nothing of a user leaves a site",
        description="Start an engine, a server and some edges on this machine, let made-up users call them with secret "
        "markers in every request, and search all traffic, files, logs and pages for them; decode every message, "
        "account for every bit, and compare the times of messages with those of events. It tells what somebody who "
        "reads the network learns, ends with 1 if anything is found, and leaves nothing behind.",
        epilog=EXAMPLE,
    )
    add_fleet(parser, "the protocol to audit", sites=4)
    parser.add_argument(
        "--events", type=number, default=0, help="go on until there were so many (as many as the task takes)"
    )
    parser.add_argument("--privacy-budget", type=number, metavar="B", help="of differential privacy, for tally (none)")
    parser.add_argument(
        "--reward-window",
        type=seconds,
        default=2.0,
        metavar="TIME",
        help="how long after a decision its reward may come (2s, so that you need not wait)",
    )
    parser.add_argument("--seed", type=number, default=0, help="seed of the users (0)")
    add_json(parser)
    parser.set_defaults(run=run, when_interrupted="everything was stopped, and nothing is left behind")


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from outvote.privacy.audit import judge, report

    if not isinstance(args.events, int) or not 0 <= args.events <= judge.MOST_EVENTS:
        problem = f"must be a whole number up to {judge.MOST_EVENTS:,}, got {args.events!r}"
        raise InvalidConfiguration(problem, field="events", code="range")
    chosen = judge.choose(
        protocol=args.protocol,
        sites=args.sites,
        privacy_budget=args.privacy_budget,
        reward_window=args.reward_window,
        seed=args.seed,
    )
    verdicts: list[Verdict] = []

    async def work() -> None:
        with Console(stderr=True).status("") as status:
            verdicts.append(await judge.audit(chosen, least_events=args.events, say=status.update))

    serving.until_told(work())
    if not verdicts:
        return 1  # SIGTERM
    [verdict] = verdicts
    tell(args, verdict.to_json(), report.in_text(verdict))
    return 0 if verdict.passed else 1
