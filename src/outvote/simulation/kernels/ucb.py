"""UCB1 fed by all draws, many plays of the leader at once.

Why it is exact. Let the arm with the highest index at time t have n pulls and S successes, and let c = √(2 ln t).
Whatever the rewards of its next m plays, its own index stays at least S/(n + m) + c/√(n + m): its mean is lowest if all
of them fail, its width is smallest with all m counted, and the factor √(2 ln ·) only grows. That factor is concave, so
within m plays it grows by at most m/(t·c), and every other arm's index by at most that times the arm's width, because
its data do not change. If the first bound exceeds the second for every other arm, the leader is played m times in a row
whatever happens, so its successes are Binomial(m, mean) and may be drawn at once. Otherwise fewer plays are tried, and
at last a single one.
"""

from __future__ import annotations

import math

import numpy as np

from outvote.simulation.arrays import Floats, FloatTable, Integers
from outvote.simulation.kernels.compiling import compiled
from outvote.simulation.kernels.samplers import binomial

WORTH_SKIPPING = 4
"""Below so many plays one at a time is as fast."""


@compiled
def ucb_trials(rng: np.random.Generator, means: Floats, grid: Integers, regret: FloatTable) -> None:
    """Run as many trials as `regret` has rows: regret at the grid points."""
    arms = len(means)
    gaps = means.max() - means
    pulls = np.empty(arms)
    totals = np.empty(arms)
    averages = np.empty(arms)
    widths = np.empty(arms)
    for trial in range(len(regret)):
        total_regret = 0.0
        plays = 0
        for point in range(len(grid)):
            while plays < grid[point]:
                if plays < arms:
                    arm = plays
                    totals[arm] = 0.0
                    pulls[arm] = 0.0
                else:
                    scale = math.sqrt(2.0 * math.log(plays))
                    arm = 0
                    best = averages[0] + scale * widths[0]
                    second = -1.0
                    widest = 0.0  # of all but the leader; the leader's own may be in it, which only makes it larger
                    for k in range(1, arms):
                        index = averages[k] + scale * widths[k]
                        if index > best:
                            second = best
                            widest = max(widest, widths[arm])
                            best, arm = index, k
                        else:
                            second = max(second, index)
                            widest = max(widest, widths[k])
                    growth = widest / (scale * plays)  # of the highest rival's index, per play
                    # how soon the leader's index could fall to the second's, were all its plays to fail
                    slope = (averages[arm] + 0.5 * scale * widths[arm]) / pulls[arm] + growth
                    many = min(int(0.98 * (best - second) / slope), grid[point] - plays)
                    skipped = False
                    while many >= WORTH_SKIPPING:
                        after = pulls[arm] + many
                        safe = second + growth * many < totals[arm] / after + scale / math.sqrt(after)
                        if safe:
                            totals[arm] += binomial(rng, many, means[arm])
                            pulls[arm] += many
                            plays += many
                            total_regret += many * gaps[arm]
                            skipped = True
                            break
                        many = many * 3 // 4
                    if skipped:
                        averages[arm] = totals[arm] / pulls[arm]
                        widths[arm] = 1.0 / math.sqrt(pulls[arm])
                        continue
                if rng.random() < means[arm]:
                    totals[arm] += 1.0
                pulls[arm] += 1.0
                averages[arm] = totals[arm] / pulls[arm]
                widths[arm] = 1.0 / math.sqrt(pulls[arm])
                total_regret += gaps[arm]
                plays += 1
            regret[trial, point] = total_regret
