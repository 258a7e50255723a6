"""`outvote plan`: what a task will cost, before it is started."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from outvote.cli.options import add_json, write_result
from outvote.presenters.task_fields import BY_NAME, numbers
from outvote.quantities import number

if TYPE_CHECKING:
    from outvote.planner.plan import Plan

EXAMPLE = """\
examples:
  outvote plan --variants 4 --sites 20 --baseline 10% --difference 2% --traffic 50,000
  outvote plan --variants 10 --sites 64 --epsilon .5 --activity 80-20
  outvote plan --variants 4 --sites 20 --tolerate 2
  outvote plan --means .3,.25,.2 --sites 3 --activity 18,8,1 --privacy-budget 1 --json
"""
WORLD = {
    "variants": "how many variants (2, or as many as --means)",
    "sites": "how many sites (8)",
    "difference": "the smallest difference of mean rewards worth detecting (ε, else .1)",
    "baseline": "mean reward of all but the best (so that ½ is in the middle)",
    "means": "mean rewards, instead of both: like .7,.5,.3",
    "traffic": "events a day in the whole fleet",
    "activity": "where they happen: uniform, 80-20, or weights of the sites like 3,1,1 (uniform)",
    "seed": "seed of all randomness (0)",
}
OF_A_TASK = ("delta", "epsilon", "tolerate", "floor", "privacy_budget", "active_sites")


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "plan",
        help="how many events, days and bits a task will need, and what it guarantees",
        description="Tells for every protocol how many events, days and bits a task will need, what it guarantees and\n"
        "what an eavesdropper sees; and which one we would take. Figures are exact sums or simulated, and say which.",
        epilog=EXAMPLE,
    )
    readers = {"means": numbers, "activity": _law_or_weights}
    for name, says in {**WORLD, **{name: BY_NAME[name].help for name in OF_A_TASK}}.items():
        flag, shown = f"--{name.replace('_', '-')}", name.rpartition("_")[2].upper()
        reader = readers.get(name, number)
        parser.add_argument(flag, type=reader, metavar=shown, default=argparse.SUPPRESS, help=says)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from outvote.cli.progress import trials_bar
    from outvote.planner import plan, question

    given = {key: value for key, value in vars(args).items() if key not in ("command", "run", "json")}
    asked = question.ask(**given)
    with trials_bar("planning", len(list(plan.tasks(asked)))) as advance:
        made = plan.make(asked, progress=advance)
    if write_result(args, made.to_json()):
        show(made)
    return 0


def show(made: Plan) -> None:
    """The plan for people."""
    from outvote.cli import tables
    from outvote.presenters.durations import duration

    asked = made.question
    tolerated = f", {asked.tolerate} may lie" if asked.tolerate else ""
    console = tables.console()
    console.print(
        f"[bold]{asked.variants} variants, {asked.sites} sites[/bold] ({asked.activity.name}, {asked.active_sites:g} "
        f"active), δ {asked.delta:g}{tolerated}; the best has a mean of {max(asked.means):.3g}, the next is "
        f"{asked.difference:.3g} worse; seed {asked.seed}"
    )
    numbers = ["events", *(["takes"] if asked.traffic else []), "bits up + down"]
    table = tables.table("", "how", *numbers, right=numbers)
    for column in table.columns[2:]:
        column.no_wrap = True  # names are folded, never numbers
    for option in made.options:
        found = option.estimate
        cells = [f"{found.draws:,.0f}", f"{found.bits_up:,.0f} + {found.bits_down:,.0f}"] if found.ends else ["–", ""]
        if asked.traffic:
            cells.insert(1, "" if option.days is None else duration(option.days))
        style = "bold green" if option.recommended else None
        table.add_row("→" if option.recommended else "", option.name, *cells, style=style)
    console.print(table)
    for option in made.options:
        found = option.estimate
        events = found.how.capitalize()
        if found.ends:
            events = f"9 of 10 fleets need {found.low:,.0f} to {found.high:,.0f} events"
        console.print(f"\n[bold]{option.name}[/bold] guarantees {option.guarantee}.")
        console.print(f"{events}. An eavesdropper sees {option.family.adversary_sees(option.task)}.", style="dim")
    console.print(f"\n[bold]Recommended[/bold]: {made.reason}.")
    for line in made.advice:
        console.print(f"[yellow]{line}.[/yellow]")
    ways = sorted({option.estimate.how for option in made.options if option.estimate.ends})
    console.print(f"[dim]Events and bits: {'; '.join(ways)}.[/dim]")


def _law_or_weights(text: str) -> str | list[float]:
    return numbers(text) if "," in text else text
