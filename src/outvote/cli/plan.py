"""`outvote plan`: what a task will cost, before it is started."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from outvote import quantities
from outvote.cli.options import add_json, number, numbers, write_result
from outvote.core.errors import InvalidInput, InvalidSettings

if TYPE_CHECKING:
    from outvote.planner.plan import Option, Plan

EXAMPLE = """\
examples:
  outvote plan --variants 4 --sites 20 --baseline 10% --difference 2% --traffic 50,000
  outvote plan --variants 10 --sites 64 --epsilon .5 --activity 80-20
  outvote plan --variants 4 --sites 20 --tolerate 2
  outvote plan --means .3,.25,.2 --sites 3 --traffic 9000,4000,500 --privacy-budget 1 --json
"""


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "plan",
        help="how many events, days and bits a task will need, and what it guarantees",
        description="Tells for every protocol how many events, days and bits a task will need, what it guarantees and\n"
        "what an eavesdropper sees; and which one we would take. Figures are exact sums or simulated, and say which.",
        epilog=EXAMPLE,
    )
    what = parser.add_argument_group("what is asked")
    what.add_argument("--variants", type=number, metavar="N", help="how many variants (2, or as many as --means)")
    what.add_argument("--sites", type=number, default=8, metavar="N", help="how many sites (8)")
    what.add_argument("--delta", type=number, default=0.05, help="δ: the probability of a wrong answer allowed (.05)")
    what.add_argument(
        "--epsilon", type=number, help="ε: how close to the best is good enough (the difference; tally: 0)"
    )
    what.add_argument(
        "--active-sites", type=number, metavar="N", help="dme: how many sites see most of the traffic (by --activity)"
    )
    world = parser.add_argument_group("in which world")
    world.add_argument("--difference", type=number, help="the smallest difference worth detecting (ε, else .1)")
    world.add_argument("--baseline", type=number, help="mean reward of all but the best (so that ½ is in the middle)")
    world.add_argument("--means", type=numbers, help="mean rewards, instead of both: like .7,.5,.3")
    world.add_argument(
        "--activity", type=_law_or_weights, default="uniform", help="uniform, 80-20, or weights like 3,1,1 (uniform)"
    )
    world.add_argument("--traffic", help="events a day: of the whole fleet, or of each site like 9000,400,400")
    limits = parser.add_argument_group("under which limits")
    limits.add_argument(
        "--floor", type=number, metavar="N", help="tally: no message speaks of fewer events (3; with a budget 23)"
    )
    limits.add_argument(
        "--privacy-budget", type=number, metavar="B", help="tally: budget of differential privacy that must be kept"
    )
    limits.add_argument(
        "--tolerate", type=number, default=0, metavar="N", help="so many sites may lie, and the guarantee holds (0)"
    )
    out = parser.add_argument_group("what comes out")
    out.add_argument("--seed", type=number, default=0, help="seed of all randomness (0)")
    add_json(out)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from outvote.cli.progress import trials_bar
    from outvote.planner import plan, question

    given = {key: value for key, value in vars(args).items() if key not in ("command", "run", "json")}
    if args.traffic is not None:
        given["traffic"] = _traffic(args.traffic, args.sites)
    asked = question.ask(**given)
    with trials_bar("planning", plan.count(asked)) as advance:
        made = plan.make(asked, progress=advance)
    if write_result(args, made.to_json()):
        show(made)
    return 0


def show(made: Plan) -> None:
    """The plan for people."""
    from outvote.cli import tables
    from outvote.planner.duration import duration

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
        cells = ["too many", "–" if option.bits is None else f"at most {option.bits:,.0f}"]
        if found.ends:
            cells = [f"{found.draws:,.0f}", f"{found.bits_up:,.0f} + {found.bits_down:,.0f}"]
        if asked.traffic:
            cells.insert(1, "" if option.days is None else duration(option.days))
        style = "bold green" if option.recommended else None
        table.add_row("→" if option.recommended else "", option.name, *cells, style=style)
    console.print(table)
    for option in made.options:
        console.print(f"\n[bold]{option.name}[/bold] guarantees {option.guarantee}.")
        console.print(f"{_events(option)}An eavesdropper sees {option.adversary_sees}.", style="dim")
    console.print(f"\n[bold]Recommended[/bold]: {made.reason}.")
    for line in made.advice:
        console.print(f"[yellow]{line}.[/yellow]")
    ways = sorted({option.estimate.how for option in made.options if option.estimate.ends})
    console.print(f"[dim]Events and bits: {'; '.join(ways)}.[/dim]")


def _events(option: Option) -> str:
    """What varies between fleets; and of votes what does not, from the exact sums."""
    found, eta = option.estimate, option.eta
    text = f"{found.how.capitalize()}. "
    if found.ends:
        text = f"9 of 10 fleets need {found.low:,.0f} to {found.high:,.0f} events. "
    if eta is not None:
        text += f"A site has cast its last vote after {option.events_per_site:,.0f} events (exact; η {eta:.3g}). "
    return text


def _law_or_weights(text: str) -> str | list[float]:
    return numbers(text) if "," in text else text


def _traffic(text: str, sites: float) -> float | list[float]:
    """One number, or one for each site. `900,400` could be either if there are two sites, and is refused."""
    parts = text.split(",")
    try:
        one = quantities.number(text)
        if len(parts) == sites and len(parts) > 1 and not any(part.startswith("0") for part in parts):
            problem = f"can be read as one number or as one for each of the {sites} sites, got {text!r}"
            raise InvalidSettings(f"{problem}: write {one}, or {text.replace(',', ', ')!r}", field="traffic")
        return one
    except InvalidInput as error:
        if isinstance(error, InvalidSettings) or len(parts) == 1:
            raise error.named("traffic") from None
    return [quantities.number(part) for part in parts]
