"""`outvote demo`: a fleet of real processes finds the best variant while you look on."""

from __future__ import annotations

import argparse
from typing import Any

from outvote.cli import serving
from outvote.cli.options import add_json, check_writable, number, write_json

EXAMPLE = """\
examples:
  outvote demo
  outvote demo --protocol dme --chaos
  outvote demo --edges 20 --arms 10 --json
"""


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "demo",
        help="watch a fleet of real processes find the best variant",
        description="Start an engine, a server and some edges on this machine, let synthetic users call the edges over "
        "HTTP, and tell what happened and what crossed the network. It takes some seconds, and leaves nothing behind.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--protocol", default="tally", choices=("tally", "dme", "edme"), help="the protocol they follow (tally)"
    )
    parser.add_argument("--edges", type=number, default=8, help="how many sites, each a process (8)")
    parser.add_argument("--arms", type=number, help="how many variants (5; votes: 4)")
    parser.add_argument("--rate", type=number, help="events in a second, over all sites (tally: 120; votes: 3000)")
    parser.add_argument(
        "--chaos", action="store_true", help="kill and restart edges, the server and the engine while it runs"
    )
    parser.add_argument("--seed", type=number, default=0, help="seed of the users and of the chaos (0)")
    add_json(parser)
    parser.set_defaults(run=run, when_interrupted="everything was stopped, and nothing is left behind")


def run(args: argparse.Namespace) -> int:
    from outvote.cli import demo_view
    from outvote.demo import setting, story
    from outvote.demo.fleet import FleetError

    check_writable(args.json, "the JSON file")
    chosen = setting.choose(protocol=args.protocol, edges=args.edges, arms=args.arms, rate=args.rate, seed=args.seed)
    told: list[story.Story] = []

    async def work() -> None:
        with demo_view.live(quiet=args.json == "-") as look:
            told.append(await story.tell(chosen, chaos=args.chaos, look=look))

    try:
        serving.until_told(work())
    except (FleetError, story.NoWinner) as error:
        raise serving.Failed(str(error)) from None
    if not told:  # SIGTERM
        return 1
    if args.json:
        write_json(told[0].to_json(), args.json)
    if args.json != "-":
        demo_view.show(told[0])
    return 0
