"""Replay a trace of which site was active when: who sent what, how the decision came, and whether the trace mattered.

    python examples/replay_trace.py                     # makes trace.csv: sites of three continents, by day and night
    python examples/replay_trace.py --trace visits.csv  # your own: a line `seconds,site` for each event

One replay is told and drawn message by message. Then many trials with the activity of the trace are compared with as
many in which every site is as active as any other. It needs outvote's extra `sim`.
"""

import argparse
import math
import random
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from outvote import Elimination, OutvoteError, Result, Tally, Task, Vote, protocols, simulate

AHEAD = {"paris": 0, "berlin": 0, "lagos": 0, "tokyo": 8, "seoul": 8, "perth": 8, "lima": -6, "boston": -6, "quito": -6}
Row = tuple[float, str]  # hour, site
Sent = tuple[float, str, object]  # hour, sender, message


def make_trace(path: Path, events: int) -> Path:
    """Two days. A site is busiest at its noon and asleep at its midnight; the first of a continent is the largest."""
    rng = random.Random(1)
    rows: list[tuple[int, str]] = []
    while len(rows) < events:
        hour, (site, ahead) = rng.random() * 48, rng.choices(list(AHEAD.items()), weights=[5, 2, 1] * 3)[0]
        if rng.random() < (1 - math.cos(2 * math.pi * (hour + ahead) / 24)) / 2:
            rows.append((int(hour * 3600), site))
    path.write_text("".join(f"{seconds},{site}\n" for seconds, site in sorted(rows)), encoding="utf-8")
    return path


def read_trace(path: Path) -> list[Row]:
    rows = (line.split(",") for line in path.read_text(encoding="utf-8").splitlines())
    return sorted((float(seconds) / 3600, site.strip()) for seconds, site in rows)


def replay(task: Task, trace: list[Row], means: list[float]) -> list[Sent]:
    """All that crossed the network: what sites sent and what the server announced."""
    rng = random.Random(1)
    sites = {name: protocols.player(task, name, rng=rng) for name in task.player_names}
    server = protocols.server(task)
    crossed: list[Sent] = []
    for events, (hour, name) in enumerate(trace, start=1):
        now = round(hour * 3_600_000)  # milliseconds
        ticket = sites[name].decide(now)
        sites[name].reward(ticket, float(rng.random() < means[ticket.arm]), now)
        for message in sites[name].tick(now):
            crossed.append((hour, name, message))
            for elimination in server.receive(name, message, now):
                crossed.append((hour, "server", elimination))
                out = " and ".join(task.arms[each] for each in elimination.arms)
                print(f"hour {hour:4.1f}, after {events:,} events and {len(crossed) - 1} messages: {out} out")
                for site in sites.values():
                    site.receive(elimination)
    print("the winner is", "not known yet" if server.winner is None else task.arms[server.winner])
    for name in sites:
        events, told = sum(who == name for _, who in trace), sum(who == name for _, who, _ in crossed)
        print(f"{name:>8}: {events:5,} events, {told:3} messages")
    return crossed


def draw(task: Task, trace: list[Row], crossed: list[Sent], both: list[Result], path: Path) -> None:
    figure = Figure(figsize=(9, 7), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=(3, 2))
    above.set_title("one replay (grey: an event at a site, which nobody else hears of)")
    place = {name: index for index, name in enumerate(task.player_names)}
    above.plot([hour for hour, _ in trace], [place[name] for _, name in trace], "|", color="0.8", ms=11, zorder=0)
    for arm, label in enumerate(task.arms):
        dots = [(hour, place[who]) for hour, who, what in crossed if isinstance(what, Tally | Vote) and what.arm == arm]
        above.plot([hour for hour, _ in dots], [y for _, y in dots], "o", ms=4.5, label=f"message about {label}")
    for hour, _, what in crossed:
        if isinstance(what, Elimination):
            above.axvline(hour, color="0.3", lw=1, ls="--")
            above.text(hour, -0.7, " out:\n " + "\n ".join(task.arms[arm] for arm in what.arms), fontsize="small")
    above.set(yticks=range(len(place)), yticklabels=task.player_names, xlabel="hours", ylim=(len(place) - 0.5, -2.6))
    for result, colour in zip(both, ("#D55E00", "#000000"), strict=True):
        ends = np.array([math.inf if each is None else each for each in result.per_trial.finished])
        xs = np.linspace(0, result.horizon, 400)
        share = (ends[:, None] <= xs).mean(axis=0)
        width = math.sqrt(math.log(2 / 0.05) / (2 * len(ends)))  # Dvoretzky, Kiefer and Wolfowitz: the whole curve
        below.plot(xs, share, color=colour, label=f"activity: {result.activity.split()[0]}")
        below.fill_between(xs, share - width, share + width, color=colour, alpha=0.15, lw=0)
    below.set(xlim=(0, both[0].horizon), ylim=(0, 1.02), xlabel="events of all sites", ylabel="share of trials decided")
    below.set_title(f"{both[0].trials} trials each, bands: 95 % confidence")
    figure.legend(loc="outside right center", frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path, help="lines `seconds,site` (default: make trace.csv and take it)")
    parser.add_argument("--events", type=int, default=4000, help="in the trace that is made (%(default)s)")
    parser.add_argument("--means", default=".45,.35,.3,.2", help="mean reward of each arm (%(default)s)")
    parser.add_argument("--protocol", default="tally", help="tally, dme or edme; votes need far more events")
    parser.add_argument("--trials", type=int, default=100, help="trials of each activity (%(default)s)")
    parser.add_argument("--plot", type=Path, default=Path("replay_trace.png"), help="the picture (%(default)s)")
    options = parser.parse_args()
    path = options.trace or make_trace(Path("trace.csv"), options.events)
    try:
        trace, means = read_trace(path), [float(mean) for mean in options.means.split(",")]
        names, arms = sorted({site for _, site in trace}), [f"arm {chr(65 + arm)}" for arm in range(len(means))]
        epsilon = 0.0 if options.protocol == "tally" else 0.9
        task = Task(arms=arms, players=names, epsilon=epsilon, delta=0.05, protocol=options.protocol)
        options.plot.touch()
        crossed = replay(task, trace, means)
        run = partial(simulate, protocol=task.protocol, means=means, players=len(names), epsilon=epsilon, engine="core")
        with tempfile.TemporaryDirectory() as folder:
            indexes = Path(folder, "trace.txt")  # the simulator's own traces: the index of a site per line
            indexes.write_text("\n".join(str(names.index(site)) for _, site in trace), encoding="utf-8")
            both = [run(activity=law, horizon=len(trace), trials=options.trials) for law in (str(indexes), "uniform")]
        draw(task, trace, crossed, both, options.plot)
    except (OSError, ValueError, OutvoteError) as error:
        parser.error(f"{path} or an option cannot be used: {error}")
    for each in both:
        after = f"{each.finished.mean or math.nan:,.0f} events and {each.bits.total:,.0f} bits on average"
        law = each.activity.split()[0]
        print(f"{law:>8}: decided in {each.finished.share:.0%} of {each.trials} trials, after {after}")
    print(f"picture: {options.plot}")


if __name__ == "__main__":
    main()
