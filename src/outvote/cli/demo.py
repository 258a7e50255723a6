"""`outvote demo`: a small fleet finds the best of five variants, told as a story."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from outvote.cli.options import add_json, check_writable, number, write_json

if TYPE_CHECKING:
    from outvote.demo.story import Story

EXAMPLE = """\
example:
  outvote demo --edges 8 --seed 3
"""


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "demo",
        help="watch a small fleet find the best of five variants",
        description="A dozen sites find the best of five variants together. Simulated: everything passes in memory.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--protocol", default="tally", choices=("tally", "dme", "edme"), help="the protocol they follow (tally)"
    )
    parser.add_argument("--edges", type=number, default=12, help="how many sites (12)")
    parser.add_argument("--seed", type=number, default=0, help="seed of all randomness (0)")
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from outvote.cli.progress import trials_bar
    from outvote.demo import story

    check_writable(args.json, "the JSON file")
    with trials_bar(f"{args.edges} sites are serving", 1) as advance:
        told = story.tell(protocol=args.protocol, edges=args.edges, seed=args.seed, progress=advance)
    if args.json:
        write_json(told.to_json(), args.json)
    if args.json != "-":
        show(told)
    return 0 if told.winner is not None else 1


SAYS = {
    "tally": "“this variant: 2 of 3”",
    "dme": "“I would drop this one”",
    "edme": "“I would drop this one”",
}
"""What a site sends, in words."""


def show(told: Story) -> None:
    """The story for people."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    result = told.result
    console.print(
        f"[bold]{result.players} sites, {len(result.arms)} variants.[/bold] Each site serves its own users and keeps "
        f"what they do to itself.\nWhen it has learnt enough it sends a few bits: {SAYS[result.protocol]}.\n"
    )
    left = len(result.arms)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("after events", justify="right")
    table.add_column("what the fleet decided")
    table.add_column("left")
    for each in told.eliminations:
        left -= 1
        table.add_row(f"{each.after_events:,}", f"[red]✗[/red] {each.arm} is out", "■" * left)
    if told.winner is not None:
        table.add_row(f"{told.events:,}", f"[green]✓ {told.winner} wins[/green]", "")
    console.print(table)
    if told.winner is None:
        console.print(f"\nNo winner within {told.events:,} events.")
    best = max(result.means)
    truth = ", ".join(
        f"[bold]{arm} {mean:.0%}[/bold]" if mean == best else f"{arm} {mean:.0%}"
        for arm, mean in zip(result.arms, result.means, strict=True)
    )
    bits = result.bits
    console.print(f"\nWhat nobody knew: the true success rates are {truth}.")
    upward = "tallies" if result.protocol == "tally" else "votes"
    beside = (
        f"{bits.with_arm:,.0f} had every tally named its variant"
        if result.protocol == "tally"
        else f"the paper's bound is {bits.bound:,}"
    )
    console.print(
        f"What crossed the network: {result.messages.up:,.0f} {upward} up and {result.messages.down:,.0f} notices "
        f"down, {bits.up:,.0f} + {bits.down:,.0f} = {bits.total:,.0f} bits; {beside}."
    )
    console.print(f"What stayed at the sites: all {told.events:,} events.")
    console.print(f"[dim]simulated with {result.protocol}, seed {result.seed}, in {result.seconds:.1f} s[/dim]")
