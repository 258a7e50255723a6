"""`outvote simulate`: run a protocol or a baseline on simulated players."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outvote.cli.options import add_json, add_workers, check_writable, write_result
from outvote.presenters.task_fields import count_or_names, count_or_numbers, numbers
from outvote.quantities import number

if TYPE_CHECKING:
    from outvote.simulation import Result

EXAMPLE = """\
examples:
  outvote simulate --protocol dme --problem 1 --players 16 --horizon 3e5 --trials 20 --plot regret.png
  outvote simulate --protocol tally --problem 2 --trials 20
  outvote simulate --protocol tally --players 16 --horizon 2e4 --trials 20 --liars 2 --lie flood --tolerate 2
  outvote simulate --protocol edme --means .6,.5,.4 --players 8 --epsilon .3 --activity 80-20 --json
  outvote simulate --protocol tally --means .12,.1,.1 --site-spread .6 --visits 5 --visitor-spread .5 --trials 20
"""


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "simulate",
        help="run a protocol or a baseline on simulated players",
        description="Run a protocol or a baseline on simulated players and say what it cost in regret, draws and bits.",
        epilog=EXAMPLE,
    )
    what = parser.add_argument_group("what runs")
    what.add_argument(
        "--protocol", default="dme", help="dme, edme, tally, blocks, me-local, me-unlimited or ucb-unlimited (dme)"
    )
    what.add_argument(
        "--epsilon", type=number, help="ε: how close to the best arm is good enough (.5; tally, blocks: 0)"
    )
    what.add_argument("--delta", type=number, default=0.05, help="δ: the probability of failure allowed (.05)")
    what.add_argument("--players", type=number, default=64, help="N: the number of sites (64)")
    what.add_argument("--active-players", type=number, help="N_γ: the most active players (what the activity implies)")
    what.add_argument(
        "--instances", type=count_or_numbers, help="edme only: M, or an increasing list of N_γ like 1,16,64 (8)"
    )
    what.add_argument("--quorum", help="how η is chosen: paper or certified (paper)")
    what.add_argument("--code", help="code of arms in messages: binary, truncated or, for tally, implied (its default)")
    what.add_argument("--floor", type=number, help="tally, blocks: the fewest decisions of an arm in a message (3)")
    what.add_argument("--privacy-budget", type=number, help="tally only: budget of differential privacy (no noise)")
    what.add_argument(
        "--tolerate", type=number, default=0, metavar="F", help="so many players may lie, and the guarantee holds (0)"
    )
    world = parser.add_argument_group("in which world")
    world.add_argument("--problem", type=number, help="1 or 2: the paper's means (1)")
    world.add_argument("--means", type=numbers, help="mean rewards of the arms, like .7,.5,.3")
    world.add_argument("--arms", type=count_or_names, help="how many arms, or their names, like red,green,blue")
    world.add_argument(
        "--activity", default="uniform", help="who is active: uniform, 80-20, weights like 3,1,1, or a trace (uniform)"
    )
    world.add_argument("--dead", type=number, default=0, help="the last DEAD players never wake (0)")
    world.add_argument("--liars", type=number, default=0, help="the first LIARS players lie (0)")
    world.add_argument(
        "--lie", default="praise", help="how: praise, damn, flood, opposite, swap, switch or silent (praise)"
    )
    world.add_argument("--rewards", default="bernoulli", help="bernoulli, beta or beta:CONCENTRATION (bernoulli)")
    world.add_argument(
        "--site-spread", type=number, metavar="SD", help="all arms of a site: standard deviation of log odds (0)"
    )
    world.add_argument(
        "--spread", type=number, metavar="SD", help="each arm at each site: standard deviation of log odds (0)"
    )
    world.add_argument(
        "--visits", type=number, metavar="V", help="visitors make V decisions on average, one after another"
    )
    world.add_argument(
        "--visitor-spread", type=number, metavar="SD", help="each arm for each visitor: standard deviation of log odds"
    )
    world.add_argument(
        "--cycle", type=numbers, metavar="AMPLITUDE,PERIOD", help="the level of all arms is a sine over draws"
    )
    world.add_argument(
        "--jumps",
        type=numbers,
        metavar="SIZE,PERIOD",
        help="all arms are raised by SIZE or not, a fair coin every PERIOD draws",
    )
    world.add_argument(
        "--swap", type=number, metavar="DRAW", help="the best arm and the second change places from this draw on"
    )
    world.add_argument("--drift-to", type=numbers, metavar="MEANS", help="means drift to these over the horizon")
    world.add_argument(
        "--drop",
        type=number,
        default=0,
        metavar="SHARE",
        help="with this probability a site dies after a decision, and loses its open group (0)",
    )
    world.add_argument(
        "--per-day",
        type=number,
        metavar="N",
        help="decisions a day of a site, on average (times are numbers of draws)",
    )
    how = parser.add_argument_group("how long and how often")
    how.add_argument("--horizon", type=number, default=1_000_000, help="T: draws of a trial (1e6)")
    how.add_argument("--trials", type=number, default=100, help="trials (100)")
    how.add_argument("--seed", type=number, default=0, help="seed of all randomness (0)")
    how.add_argument(
        "--engine",
        default="auto",
        help="core drives the core's own objects draw by draw, fast has compiled kernels of the same law; "
        "auto takes fast where it has a kernel (auto)",
    )
    add_workers(how)
    out = parser.add_argument_group("what comes out")
    out.add_argument("--grid", type=number, default=200, help="points of the regret curve (200)")
    out.add_argument("--per-trial", action="store_true", help="add each trial's own numbers to the JSON")
    out.add_argument("--plot", metavar="FILE", help="draw regret and eliminations: .png, .svg or .pdf")
    add_json(out)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from outvote.cli.progress import trials_bar
    from outvote.simulation import plots
    from outvote.simulation.engines import estimated_seconds
    from outvote.simulation.run import run as run_settings
    from outvote.simulation.settings import read_settings

    given = {key: value for key, value in vars(args).items() if key not in NOT_SETTINGS}
    settings = read_settings(**given)
    check_writable(args.plot, "the plot")
    if args.plot:
        plots.check_format(args.plot)
    workers = args.workers
    if workers is None and estimated_seconds(settings) < WORTH_WORKERS:
        workers = 1
    with trials_bar(f"{settings.protocol}, {settings.trials} trials", settings.trials) as advance:
        result = run_settings(settings, workers=workers, dask=args.dask, progress=advance)
    if args.plot:
        plots.draw(plots.regret_panel(result), Path(args.plot))
    if write_result(args, result.to_json(per_trial=args.per_trial)):
        show(result)
        if args.plot:
            print(f"plot written to {args.plot}")
    return 0


NOT_SETTINGS = ("command", "run", "json", "plot", "per_trial", "workers", "dask")
LONGEST = 80
"""Characters of weights, or of a trace's path, that the header shows; the JSON has all."""
WORTH_WORKERS = 0.5
"""Seconds of work below which one process is as fast as several."""


def show(result: Result) -> None:
    """The result for people."""
    from rich.table import Table

    from outvote.cli import tables

    console = tables.console()
    console.print(
        f"[bold]{result.protocol}[/bold] ({', '.join(_how(result))}) on {len(result.arms)} arms "
        f"({', '.join(_world(result))}), {result.players} players ({', '.join(_players(result))}); "
        f"{result.trials} trials of {result.horizon:,} draws, seed {result.seed}, engine {result.engine}, "
        f"version {result.version}"
    )
    table = Table(show_header=False, box=None, pad_edge=False)
    low, high = result.regret.low[-1], result.regret.high[-1]
    interval = "" if low is None or high is None else f"95 % interval {low:,.0f} to {high:,.0f}"
    table.add_row("regret at the horizon", f"{result.regret.mean[-1]:,.0f}", interval)
    for name, moment in (
        ("first elimination", result.first_elimination),
        ("finished: one arm left" if result.active_players is None else "finished: N_γ players", result.finished),
        ("all players finished", result.all_finished),
        ("solved: only ε-good arms left", result.solved),
    ):
        when = "never" if moment.mean is None else _when(result, moment.mean)
        table.add_row(name, when, f"in {moment.share:.0%} of trials")
    table.add_row("all remaining arms ε-good", f"{result.correct:.1%}", "of trials at the horizon")
    table.add_row("some remaining arm ε-good", f"{result.safe:.1%}", "of trials")
    table.add_row("only the best arm remains", f"{result.best:.1%}", "of trials")
    bits = result.bits
    bound = "no bound is known" if bits.bound is None else f"bound {bits.bound:,}"
    table.add_row("bits up + down", f"{bits.total:,.0f}", f"{bits.up:,.0f} + {bits.down:,.0f}, {bound}")
    if bits.instance:
        table.add_row("", f"{bits.total - bits.instance:,.0f}", "without the bits that name the instance (Theorem 4)")
    if bits.with_arm != bits.total:
        table.add_row("", f"{bits.with_arm:,.0f}", "had every tally named its arm")
    if result.lost:
        table.add_row("every best arm eliminated", f"{result.lost:.1%}", "of trials")
    if result.held:
        table.add_row("held back: sites differ", f"{result.held:.1%}", "of trials at the horizon")
    messages = result.messages
    table.add_row(
        "messages up + down", f"{messages.up + messages.down:,.0f}", f"{messages.up:,.0f} + {messages.down:,.0f}"
    )
    console.print(table)
    headers = ("arm", "mean", "eliminated at draw", "in trials")
    arms = tables.table(*headers, right=headers)
    for each, mean in zip(result.eliminations, result.means or (), strict=True):
        when = "" if each.mean is None else f"{each.mean:,.0f}"
        arms.add_row(result.arms[each.arm], f"{mean:g}", when, f"{each.share:.0%}" if each.share else "never")
    console.print(arms)
    speed = result.trials * result.horizon / result.seconds
    console.print(f"[dim]{result.seconds:.2f} s, {speed:,.0f} draws a second[/dim]")


def _when(result: Result, draw: float) -> str:
    if result.per_day is None:
        return f"draw {draw:,.0f}"
    return f"draw {draw:,.0f}, day {draw / (result.per_day * (result.players - result.dead)):,.1f}"


def _how(result: Result) -> Iterator[str]:
    yield f"ε {result.epsilon:g}"
    yield f"δ {result.delta:g}"
    if result.active_players is not None:
        yield f"N_γ {', '.join(f'{each:g}' for each in result.instances or [result.active_players])}"
    for name, value in {"quorum": result.quorum, "code": result.code, "floor": result.floor}.items():
        if value is not None:
            yield f"{name} {value}"
    if result.privacy_budget is not None:
        yield f"privacy budget {result.privacy_budget:g}"
    if result.tolerate:
        yield f"{result.tolerate} tolerated"
    for name, value in result.parameters.items():
        yield f"{name} {value}"


def _world(result: Result) -> Iterator[str]:
    yield f"{result.rewards} rewards"
    for spread, what in (
        (result.site_spread, "site"),
        (result.spread, "arm at a site"),
        (result.visitor_spread, "arm for a visitor"),
    ):
        if spread:
            yield f"spread {spread:g} by {what}"
    if result.visits is not None:
        yield f"{result.visits:g} visits"
    if result.drift_to is not None:
        yield f"drift to {', '.join(f'{mean:g}' for mean in result.drift_to)}"
    for name, pair in (("cycle", result.cycle), ("jumps", result.jumps)):
        if pair is not None:
            yield f"{name} of {pair[0]:g} in {pair[1]:,} draws"
    if result.swap is not None:
        yield f"swap at draw {result.swap:,}"


def _players(result: Result) -> Iterator[str]:
    yield result.activity if len(result.activity) <= LONGEST else result.activity[:LONGEST] + "…"
    if result.dead:
        yield f"{result.dead} dead"
    if result.drop:
        yield f"die at {result.drop:g} of decisions"
    if result.per_day is not None:
        yield f"{result.per_day:g} decisions a day"
    if result.liars:
        yield f"{result.liars} lie: {result.lie}"
