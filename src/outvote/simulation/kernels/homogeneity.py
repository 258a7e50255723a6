"""Do the sites differ? The score of `outvote.core.tally.homogeneity` on arrays."""

from __future__ import annotations

import math

import numpy as np

from outvote.simulation.arrays import Floats, FloatTable, Integers
from outvote.simulation.kernels.compiling import compiled

ORDERS = 6
"""Cumulants that are kept: mean, variance, third to sixth."""


@compiled
def sent_law(trials: int, mean: float, alpha: float, law: Floats) -> None:
    """P(z | mean) of one tally, as it is sent."""
    yes, no = math.log(mean), math.log1p(-mean)
    for s in range(trials + 1):
        ways = math.lgamma(trials + 1.0) - math.lgamma(s + 1.0) - math.lgamma(trials - s + 1.0)
        law[s] = math.exp(ways + s * yes + (trials - s) * no)
    if alpha == 0.0:
        return
    exact = law[: trials + 1].copy()
    below = above = 0.0
    law[: trials + 1] = 0.0
    for index in range(trials + 1):
        below = below * alpha + exact[index]
        law[index] += below
        other = trials - index
        law[other] += above * alpha
        above = above * alpha + exact[other]
    for index in range(trials + 1):
        law[index] *= (1.0 - alpha) / (1.0 + alpha)
    law[0] /= 1.0 - alpha
    law[trials] /= 1.0 - alpha


@compiled
def cumulants(trials: int, mean: float, alpha: float, law: Floats, found: Floats) -> None:
    """Of one tally of a size."""
    sent_law(trials, mean, alpha, law)
    centre = 0.0
    for z in range(trials + 1):
        centre += z * law[z]
    second = third = fourth = fifth = sixth = 0.0
    for z in range(trials + 1):
        d = z - centre
        square = d * d
        second += square * law[z]
        third += square * d * law[z]
        fourth += square * square * law[z]
        fifth += square * square * d * law[z]
        sixth += square * square * square * law[z]
    found[0] = centre
    found[1] = second
    found[2] = third
    found[3] = fourth - 3 * second**2
    found[4] = fifth - 10 * third * second
    found[5] = sixth - 15 * fourth * second - 10 * third**2 + 30 * second**3


@compiled
def _cumulants_of_sizes(
    sizes: Integers, totals: Integers, mean: float, alpha: float, law: Floats, found: FloatTable
) -> None:
    for index in range(len(sizes)):
        if totals[index] > 0:
            cumulants(sizes[index], mean, alpha, law, found[index])
        else:
            found[index] = 0.0


@compiled
def score(sizes: Integers, alpha: float, sums: np.ndarray, tallies: np.ndarray) -> float:
    """How many standard deviations the sites differ more than chance would have it.

    `sums[arm, site]` are successes, `tallies[arm, site, size]` how many tallies they come from.
    """
    arms, players = sums.shape
    kinds = len(sizes)
    law = np.empty(sizes.max() + 1)
    at, above = np.empty((kinds, ORDERS)), np.empty((kinds, ORDERS))
    totals = np.empty(kinds, np.int64)
    whole, of_cell = np.empty(ORDERS), np.empty(ORDERS)
    excess = variance = third = 0.0
    for arm in range(arms):
        totals[:] = 0
        successes = trials = 0
        cells = 0
        for n in range(players):
            seen = False
            for index in range(kinds):
                count = tallies[arm, n, index]
                if count > 0:
                    seen = True
                    totals[index] += count
                    trials += count * sizes[index]
            successes += sums[arm, n]
            cells += seen
        if cells < 2 or successes <= 0 or successes >= trials:
            continue
        if alpha == 0.0:
            mean = successes / trials
        else:
            low, high = 1e-6, 1 - 1e-6
            for _ in range(50):
                mean = (low + high) / 2
                _cumulants_of_sizes(sizes, totals, mean, alpha, law, at)
                if (totals * at[:, 0]).sum() < successes:
                    low = mean
                else:
                    high = mean
            mean = (low + high) / 2
        step = 1e-4 * min(mean, 1 - mean)
        _cumulants_of_sizes(sizes, totals, mean, alpha, law, at)
        _cumulants_of_sizes(sizes, totals, mean + step, alpha, law, above)
        for order in range(ORDERS):
            whole[order] = (totals * at[:, order]).sum()
        slope = ((totals * above[:, 0]).sum() - whole[0]) / step
        bend = ((totals * above[:, 1]).sum() - whole[1]) / step / slope
        unit = whole[1] / trials
        part = -unit
        part_variance = part_third = 0.0
        for n in range(players):
            of_cell[:] = 0.0
            share = 0.0
            for index in range(kinds):
                count = tallies[arm, n, index]
                if count > 0:
                    share += count * (above[index, 0] - at[index, 0]) / step / slope
                    for order in range(ORDERS):
                        of_cell[order] += count * at[index, order]
            if share == 0.0:
                continue
            second, skew, kurt = of_cell[1], of_cell[2], of_cell[3]
            part += (sums[arm, n] - of_cell[0]) ** 2 - second * (1 - share)
            part_variance += 2 * second**2 + kurt - 2 * bend * skew + bend**2 * second
            part_third += (
                (8 * second**3 + 12 * second * kurt + 10 * skew**2 + of_cell[5])
                - 3 * bend * (of_cell[4] + 8 * second * skew)
                + 3 * bend**2 * (kurt + 2 * second**2)
                - bend**3 * skew
            )
        excess += part / unit
        variance += part_variance / unit**2
        third += part_third / unit**3
    if variance <= 0:
        return 0.0
    found = excess / math.sqrt(variance)
    skewness = third / variance / math.sqrt(variance)
    if skewness < 1e-6:
        return found
    shape = 4 / skewness**2
    root = max(1 + found / math.sqrt(shape), 0.0) ** (1.0 / 3.0)
    return 3 * math.sqrt(shape) * (root - 1 + 1 / (9 * shape))
