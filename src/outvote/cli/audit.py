"""`outvote audit`: a real fleet with marked users is watched from all sides, and all that is seen is searched."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from outvote.cli import serving
from outvote.cli.options import add_json, check_writable, number, tell
from outvote.core.errors import InvalidTask
from outvote.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from outvote.privacy.audit.fleet_run import Progress
    from outvote.privacy.audit.judge import Verdict

EXAMPLE = """\
examples:
  outvote audit
  outvote audit --protocol dme --html audit.html
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
    parser.add_argument(
        "--protocol", default="tally", choices=("tally", "dme", "edme"), help="the protocol to audit (tally)"
    )
    parser.add_argument("--edges", type=number, default=4, help="how many sites, each a process (4)")
    parser.add_argument(
        "--events", type=number, default=0, help="go on until there were so many (as many as the task takes)"
    )
    parser.add_argument("--privacy-budget", type=number, metavar="B", help="of differential privacy, for tally (none)")
    parser.add_argument("--reward-window", type=number, metavar="SECONDS", help="wait so long for rewards (no window)")
    parser.add_argument("--rate", type=number, help="events in a second, over all sites (tally: 200; votes: 1500)")
    parser.add_argument("--seed", type=number, default=0, help="seed of the users (0)")
    parser.add_argument("--html", metavar="FILE", help="write the report as a page to FILE too")
    add_json(parser)
    parser.set_defaults(run=run, when_interrupted="everything was stopped, and nothing is left behind")


def run(args: argparse.Namespace) -> int:
    from outvote.demo.fleet import FleetError
    from outvote.demo.story import NoWinner
    from outvote.privacy.audit import judge, page, report, setting

    check_writable(args.html, "the page")
    if not isinstance(args.events, int) or not 0 <= args.events <= setting.MOST_EVENTS:
        raise InvalidTask(f"--events must be a whole number up to {setting.MOST_EVENTS:,}, got {args.events!r}")
    chosen = setting.choose(
        protocol=args.protocol,
        edges=args.edges,
        privacy_budget=args.privacy_budget,
        reward_window=args.reward_window,
        rate=args.rate,
        seed=args.seed,
    )
    verdicts: list[Verdict] = []

    async def work() -> None:
        look = progress_on(sys.stderr)
        verdicts.append(await judge.audit(chosen, least_events=args.events, look=look))

    try:
        serving.until_told(work())
    except (FleetError, NoWinner) as error:
        raise serving.Failed(str(error)) from None
    if not verdicts:
        return 1  # SIGTERM
    [verdict] = verdicts
    if args.html:
        write_whole(args.html, page.in_html(verdict))
    tell(args, verdict.to_json(), report.in_text(verdict))
    return 0 if verdict.passed else 1


def progress_on(stream: Any) -> Callable[[Progress], None]:
    """Tells how far it is: in place on a terminal, else one line for each step."""
    said: list[str] = []

    def look(progress: Progress) -> None:
        if stream.isatty():
            counts = f": {progress.events:,} events, {progress.messages:,} messages" if progress.events else ""
            stream.write(f"\r\x1b[K{progress.step}{counts}…")
        elif progress.step not in said:
            said.append(progress.step)
            stream.write(f"{progress.step}…\n")
        stream.flush()

    return look
