"""`outvote plan`: what a task will cost, before it is started."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from outvote.cli.options import add_json, number, number_or_numbers, numbers, write_result

if TYPE_CHECKING:
    from outvote.planner.plan import Plan

EXAMPLE = """\
examples:
  outvote plan --arms 4 --players 20 --baseline .1 --difference .02 --traffic 50000
  outvote plan --arms 10 --players 64 --epsilon .5 --activity 80-20
  outvote plan --arms 4 --players 20 --tolerate 2
  outvote plan --means .3,.25,.2 --players 3 --traffic 9000,4000,500 --privacy-budget 1 --json
"""


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "plan",
        help="how many events, days and bits a task will need, and what it guarantees",
        description="For every protocol: how many events and days a task will need, how many bits, what is guaranteed, "
        "what an eavesdropper sees; and which one we would take. Figures are exact sums or simulated, and say which.",
        epilog=EXAMPLE,
    )
    what = parser.add_argument_group("what is asked")
    what.add_argument("--arms", type=number, help="how many variants (2, or as many as --means)")
    what.add_argument("--players", type=number, default=8, help="how many sites (8)")
    what.add_argument("--delta", type=number, default=0.05, help="δ: the probability of failure allowed (.05)")
    what.add_argument(
        "--epsilon", type=number, help="ε: how close to the best is good enough (the difference; tally: 0)"
    )
    what.add_argument("--active-players", type=number, help="dme: N_γ, the most active players (what activity implies)")
    world = parser.add_argument_group("in which world")
    world.add_argument("--difference", type=number, help="the smallest difference worth detecting (ε, else .1)")
    world.add_argument("--baseline", type=number, help="mean reward of all but the best (so that ½ is in the middle)")
    world.add_argument("--means", type=numbers, help="mean rewards, instead of both: like .7,.5,.3")
    world.add_argument("--activity", default="uniform", help="uniform, 80-20, or weights like 3,1,1 (uniform)")
    world.add_argument(
        "--traffic", type=number_or_numbers, help="events a day: of the whole fleet, or of each site like 9000,400,400"
    )
    limits = parser.add_argument_group("under which limits")
    limits.add_argument("--floor", type=number, help="tally: no message speaks of fewer events (3; with a budget 23)")
    limits.add_argument("--privacy-budget", type=number, help="tally: budget of differential privacy that must be kept")
    limits.add_argument(
        "--tolerate", type=number, default=0, metavar="F", help="so many sites may lie, and the guarantee holds (0)"
    )
    out = parser.add_argument_group("what comes out")
    out.add_argument("--seed", type=number, default=0, help="seed of all randomness (0)")
    add_json(out)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from outvote.cli.progress import trials_bar
    from outvote.planner import plan, question

    given = {key: value for key, value in vars(args).items() if key not in ("command", "run", "json")}
    asked = question.ask(**given)
    with trials_bar("planning", plan.count(asked)) as advance:
        made = plan.make(asked, progress=advance)
    if write_result(args, made.to_json()):
        show(made)
    return 0


def show(made: Plan) -> None:
    """The plan for people."""
    from outvote.cli import tables
    from outvote.planner import words
    from outvote.planner.duration import duration

    asked = made.question
    tolerated = f", {asked.tolerate} may lie" if asked.tolerate else ""
    console = tables.console()
    console.print(
        f"[bold]{asked.arms} variants, {asked.players} sites[/bold] ({asked.activity.name}, N_γ "
        f"{asked.active_players:g}), δ {asked.delta:g}{tolerated}; the best has a mean of "
        f"{max(asked.means):.3g}, the next is {asked.difference:.3g} worse; seed {asked.seed}"
    )
    takes = ["takes"] if asked.traffic else []
    numbers = ["η", "pulls per site", "events", "5 % to 95 %", *takes, "bits up + down"]
    table = tables.table("", "how", *numbers, right=numbers)
    for option in made.options:
        found = option.estimate
        record = option.to_json()
        eta = "" if option.eta is None else f"{option.eta:.3g}"
        pulls = "" if record["pulls_per_player"] is None else f"{record['pulls_per_player']:,.0f}"
        cells = [eta, pulls]
        if found is None:
            cells += ["never", "", *([""] if asked.traffic else []), f"at most {option.bits:,.0f}"]
        else:
            cells += [f"{found.draws:,.0f}", f"{found.low:,.0f} to {found.high:,.0f}"]
            cells += [] if option.days is None else [duration(option.days)]
            cells.append(f"{found.bits_up:,.0f} + {found.bits_down:,.0f}")
        style = "bold green" if option.recommended else None
        table.add_row("→" if option.recommended else "", option.name, *cells, style=style)
    console.print(table)
    console.print()
    for option in made.options:
        console.print(f"[bold]{option.name}[/bold] guarantees {words.guarantee(option.task, option.estimate)}.")
        console.print(f"  An eavesdropper sees {words.adversary_sees(option.task)}.", style="dim")
    console.print(f"\n[bold]Recommended[/bold]: {made.reason}.")
    for line in made.advice:
        console.print(f"[yellow]{line}.[/yellow]")
    ways = sorted({option.estimate.how for option in made.options if option.estimate is not None})
    console.print(f"[dim]η and pulls per site of votes are exact sums; events and bits: {'; '.join(ways)}[/dim]")
