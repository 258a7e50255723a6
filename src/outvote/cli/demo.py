"""`outvote demo`: a fleet of real processes finds the best variant while you look on."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from typing import Any

from outvote.cli import serving
from outvote.cli.options import add_fleet, add_json, write_result
from outvote.quantities import number, seconds

EXAMPLE = """\
examples:
  outvote demo
  outvote demo --protocol dme
  outvote demo --sites 20 --variants 10 --json
  outvote demo --stay
"""


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "demo",
        help="watch a fleet of real processes find the best variant",
        description="Start an engine, a server and some edges on this machine, let synthetic users call the edges over "
        "HTTP, and tell what happened and what crossed the network. It takes some seconds, and leaves nothing behind.",
        epilog=EXAMPLE,
    )
    add_fleet(parser, "the protocol they follow", sites=8)
    parser.add_argument("--variants", type=number, help="how many variants (5; votes: 4)")
    parser.add_argument("--rate", type=number, help="events in a second, over all sites (tally: 120; votes: 3000)")
    parser.add_argument(
        "--reward-window",
        type=seconds,
        default=10.0,
        metavar="TIME",
        help="how long after a decision its reward may come: so long the fleet waits for each answer (10s)",
    )
    parser.add_argument("--seed", type=number, default=0, help="seed of the users (0)")
    parser.add_argument(
        "--stay", action="store_true", help="keep everything running at the end, to look around, until Ctrl-C"
    )
    add_json(parser)
    parser.set_defaults(run=run, when_interrupted="everything was stopped, and nothing is left behind")


def run(args: argparse.Namespace) -> int:
    from outvote.cli import demo_view
    from outvote.demo import setting, story
    from outvote.demo.fleet import FleetError

    chosen = setting.choose(
        protocol=args.protocol,
        sites=args.sites,
        variants=args.variants,
        rate=args.rate,
        seed=args.seed,
        reward_window=args.reward_window,
    )
    quiet = args.json == "-"
    told: list[story.Story] = []

    def tell(ended: story.Story) -> None:
        told.append(ended)
        if write_result(args, ended.to_json()):
            demo_view.show(ended)

    async def work() -> None:
        with contextlib.ExitStack() as view:
            look = view.enter_context(demo_view.live(quiet=quiet))

            async def stay(ended: story.Story) -> None:
                view.close()
                tell(ended)
                print(f"It goes on: {ended.page} shows it. Ctrl-C ends it.", file=sys.stderr, flush=True)
                await asyncio.Event().wait()

            ended = await story.tell(chosen, look=look, stay=stay if args.stay else None)
        tell(ended)

    try:
        serving.until_told(work())
    except (FleetError, story.NoWinner) as error:
        raise serving.Failed(str(error)) from None
    return 0 if told else 1  # SIGTERM
