"""An idea of your own for which arm a site tries next, measured against Tally's own player; and one that must not be.

    python examples/arm_selection.py --means .3,.2,.1 --players 40 --trials 500

Three ways to choose, each with the same visitors:
  stock      Tally's own player: through all arms in turn, from a place of its own
  spread     our idea: after an announcement sites spread evenly over the arms that are left
  impatient  FORBIDDEN: a site gives an arm up when its tally begins with two failures
A choice may depend on what was announced, never on what is in an open tally. `impatient` shows what comes of that: its
tallies are sent only if they began well, so what the fleet knows is too high. It needs outvote's extra `sim`.
"""

import argparse
import math
import random
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from matplotlib.figure import Figure

from outvote import Elimination, OutvoteError, Tally, Task, protocols
from outvote.core.decisions import Decisions, Group, Ticket
from outvote.core.tally.cycle import Cycle

MOST_EVENTS = 5_000  # of a trial; then it is given up
Array = np.ndarray[Any, np.dtype[Any]]


class Choice(Protocol):
    def __call__(self, site: "Site") -> int:
        """Which arm comes next."""


class Site:
    """A player of one's own: whatever arm comes next is decided by `choose`."""

    def __init__(self, task: Task, number: int, choose: Choice) -> None:
        self.task, self.number, self.choose, self.cycle = task, number, choose, Cycle(task)
        self.remaining = list(range(len(task.arms)))
        self.decisions = Decisions(len(task.arms), window=0, binary=True)
        self.open: dict[int, Group] = {}  # each arm's open tally: what is in it is nobody's business
        self.opened = self.turn = 0  # tallies opened, and sent since the last announcement

    def decide(self, now: int) -> Ticket:
        arm = self.choose(self)
        group = self.open.get(arm) or self.begin(arm)
        return self.decisions.place(group, arm, now)

    def begin(self, arm: int) -> Group:
        """A tally's number is a place of its arm in the site's cycle. Tallies grow as those of the stock player do."""
        number = next(at for at in count(self.decisions.next_number) if self.cycle.arm(self.number, at) == arm)
        arms, sizes = len(self.task.arms), self.task.tally_sizes
        size = sizes[sum(self.opened >= arms * 4**level for level in range(len(sizes) - 1))]
        group = self.decisions.open({arm: size}, number=number)
        assert group is not None  # there is memory enough
        self.open[arm] = group
        self.opened += 1
        return group

    def reward(self, ticket: Ticket, reward: float, now: int) -> None:
        self.decisions.reward(ticket, reward, now)

    def tick(self, now: int) -> Sequence[Tally]:
        tallies = []
        for group in self.decisions.close_due(now):
            [(arm, told)] = group.counts.items()
            tallies.append(Tally(arm, int(told.total), told.decided, group.number))
            del self.open[arm]
            self.turn += 1
        return tallies

    def receive(self, news: Elimination) -> None:
        self.remaining = [arm for arm in self.remaining if arm not in news.arms]
        self.open = {arm: group for arm, group in self.open.items() if arm in self.remaining}
        self.decisions.drop(news.arms)
        self.turn = 0


def take(site: Site, arms: Sequence[int]) -> int:
    """Another arm with each tally."""
    return arms[(site.number + site.turn) % len(arms)]


def spread(site: Site) -> int:
    return take(site, site.remaining)


def impatient(site: Site) -> int:
    failed = [arm for arm, group in site.open.items() if (group.counts[arm].decided, group.counts[arm].total) == (2, 0)]
    return take(site, [arm for arm in site.remaining if arm not in failed] or site.remaining)


def run(choose: Choice | None, task: Task, means: list[float], seed: int) -> tuple[int, bool, Array]:
    """Events until one arm is left, whether it is the best, and all that was reported."""
    rng, told = random.Random(seed), np.zeros((len(means), 2))
    sites: list[Any] = [
        protocols.player(task, number) if choose is None else Site(task, number, choose)
        for number in range(task.players)
    ]
    server, events = protocols.server(task), 0
    while not server.finished and events < MOST_EVENTS:
        events += 1
        number, uniform = rng.randrange(len(sites)), rng.random()
        site = sites[number]
        ticket = site.decide(events)
        site.reward(ticket, float(uniform < means[ticket.arm]), events)
        for tally in site.tick(events):
            told[tally.arm] += tally.successes, tally.trials
            for news in server.receive(number, tally, events):
                for each in sites:
                    each.receive(news)
    return events, server.winner == means.index(max(means)), told


def mean_and_half(values: Array) -> tuple[float, float]:
    """A mean, and half of its 95 % interval."""
    return float(values.mean()), float(1.96 * values.std(ddof=1) / math.sqrt(len(values)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--means", default=".6,.45,.3,.1", help="mean reward of each arm (%(default)s)")
    parser.add_argument("--players", type=int, default=12, help="sites (%(default)s)")
    parser.add_argument("--trials", type=int, default=150, help="of each way to choose, at least 20 (%(default)s)")
    parser.add_argument("--plot", type=Path, default=Path("arm_selection.png"), help="the picture (%(default)s)")
    options = parser.parse_args()
    try:
        means = [float(mean) for mean in options.means.split(",")]
        task = Task(arms=len(means), players=options.players, epsilon=0, delta=0.05, protocol="tally")
        if options.trials < 20 or not all(0 < mean < 1 for mean in means):
            raise ValueError("--trials must be at least 20, and --means between 0 and 1")
        options.plot.touch()
    except (OSError, ValueError, OutvoteError) as error:
        parser.error(str(error))
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 3))
    print(f"{'':10} {'events until decided':>20} {'best found':>11}   what the fleet believes of arms whose mean is")
    print(" " * 46 + "".join(f"{mean:<15g}" for mean in means))
    events = []
    ways: dict[str, Choice | None] = {"stock": None, "spread": spread, "impatient": impatient}
    for (name, choose), colour in zip(ways.items(), ("#000000", "#0072B2", "#D55E00"), strict=True):
        trials = [run(choose, task, means, seed) for seed in range(options.trials)]
        events.append(np.array([each for each, _, _ in trials]))
        mean, half = mean_and_half(events[-1])
        successes, reported = np.sum([told for _, _, told in trials], axis=0).T
        shares = successes / reported
        widths = 1.96 * np.sqrt(shares * (1 - shares) / reported)
        found = np.mean([best for _, best, _ in trials])
        print(f"{name:10} {mean:11,.0f} ± {half:6,.0f} {found:11.0%}   ", end="")
        print("  ".join(f"{share:.3f} ± {width:.3f}" for share, width in zip(shares, widths, strict=True)))
        left.errorbar([name], [mean], yerr=[half], fmt="o", capsize=4, color=colour)
        places = np.arange(len(means)) + 0.2 * (len(events) - 2)
        right.errorbar(places, shares - means, yerr=widths, fmt="o", capsize=4, color=colour, label=name)
    gain, half = mean_and_half(events[1] - events[0])
    verdict = "no difference that one can tell" if abs(gain) <= half else "it helps" if gain < 0 else "it is worse"
    print(f"spread against stock, on equal visitors: {gain:+,.0f} ± {half:,.0f} events: {verdict}.")
    left.set(ylabel="events until decided", ylim=(0, None), xlim=(-0.5, 2.5))
    right.axhline(0, color="0.7", lw=1, zorder=0)
    right.set(xlabel="true mean of an arm", ylabel="bias: mean that the fleet believes − true mean")
    right.set(xticks=range(len(means)), xticklabels=[f"{mean:g}" for mean in means])
    right.legend(frameon=False)
    figure.suptitle(f"{options.trials} trials each, {task.players} sites; bars: 95 % confidence")
    figure.savefig(options.plot, dpi=150)
    print(f"picture: {options.plot}")


if __name__ == "__main__":
    main()
