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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from outvote import OutvoteError, Tally, Task, protocols

MOST_EVENTS = 5_000  # of a trial; then it is given up
Choice = tuple[int, int | None]  # an arm, and the ticket for its reward
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Site:
    number: int
    player: protocols.Player
    open: list[list[float]]  # what is in each arm's open tally: nobody's business but the player's
    turn: int = 0  # tallies sent since the last announcement

    def take(self, arms: Sequence[int]) -> Choice:
        """Another arm with each tally; `expose` gives a ticket for any arm, whosever turn it is."""
        arm = arms[(self.number + self.turn) % len(arms)]
        return arm, self.player.expose(arm)


def stock(site: Site) -> Choice:
    return site.player.decide()


def spread(site: Site) -> Choice:
    return site.take(site.player.remaining)


def impatient(site: Site) -> Choice:
    return site.take([arm for arm in site.player.remaining if site.open[arm] != [0, 0]] or site.player.remaining)


def run(choose: Callable[[Site], Choice], task: Task, means: list[float], seed: int) -> tuple[int, bool, Array]:
    """Events until one arm is left, whether it is the best, and all that was reported."""
    rng, told = random.Random(seed), np.zeros((len(means), 2))
    sites = [Site(number, protocols.player(task, number), [[] for _ in means]) for number in range(task.players)]
    server, events = protocols.server(task), 0
    while not server.finished and events < MOST_EVENTS:
        events += 1
        site, uniform = rng.choice(sites), rng.random()
        arm, ticket = choose(site)
        site.open[arm].append(float(uniform < means[arm]))
        for tally in site.player.reward(arm, site.open[arm][-1], ticket=ticket):
            assert isinstance(tally, Tally)
            told[arm] += tally.successes, tally.trials
            site.open[arm], site.turn = [], site.turn + 1
            for news in server.receive(site.number, tally):
                for each in sites:
                    each.player.receive(news)
                    each.turn = 0
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
    for choose, colour in ((stock, "#000000"), (spread, "#0072B2"), (impatient, "#D55E00")):
        trials = [run(choose, task, means, seed) for seed in range(options.trials)]
        events.append(np.array([each for each, _, _ in trials]))
        mean, half = mean_and_half(events[-1])
        successes, reported = np.sum([told for _, _, told in trials], axis=0).T
        shares = successes / reported
        widths = 1.96 * np.sqrt(shares * (1 - shares) / reported)
        found = np.mean([best for _, best, _ in trials])
        print(f"{choose.__name__:10} {mean:11,.0f} ± {half:6,.0f} {found:11.0%}   ", end="")
        print("  ".join(f"{share:.3f} ± {width:.3f}" for share, width in zip(shares, widths, strict=True)))
        left.errorbar([choose.__name__], [mean], yerr=[half], fmt="o", capsize=4, color=colour)
        places = np.arange(len(means)) + 0.2 * (len(events) - 2)
        right.errorbar(places, shares - means, yerr=widths, fmt="o", capsize=4, color=colour, label=choose.__name__)
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
