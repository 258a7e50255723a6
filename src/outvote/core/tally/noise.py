"""Geometric noise for differential privacy: how it is drawn, and what it does to probabilities.

A tally of s successes in t trials is sent as z = clamp(s + G, 0, t) with P(G = g) ∝ α^|g|, α = exp(−budget). Changing
one reward moves s by one, and every probability P(z | s) by a factor of at most exp(budget).

Drawing is exact: integers only, no floating point (the discrete Laplace sampler of Canonne, Kamath and Steinke, 2020).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from fractions import Fraction


def noisy(successes: int, trials: int, budget: Fraction, rng: random.Random) -> int:
    """What is sent in place of the successes."""
    return min(max(successes + two_sided_geometric(budget, rng), 0), trials)


def two_sided_geometric(budget: Fraction, rng: random.Random) -> int:
    """G with P(G = g) proportional to exp(−budget·|g|)."""
    whole, part = budget.denominator, budget.numerator
    while True:
        rest = rng.randrange(whole)
        if not _happens(rest, whole, rng):
            continue
        laps = 0
        while _happens(1, 1, rng):
            laps += 1
        size = (rest + whole * laps) // part
        negative = rng.getrandbits(1)
        if size or not negative:  # −0 and 0 are one number: take it once
            return -size if negative else size


def _happens(numerator: int, denominator: int, rng: random.Random) -> bool:
    """True with probability exp(−numerator/denominator), for a fraction of at most 1.

    Von Neumann's way: the first k at which an event of probability fraction/k fails is odd with that probability.
    """
    k = 1
    while rng.randrange(denominator * k) < numerator:
        k += 1
    return k % 2 == 1


class Channel:
    """From the number of successes to what is sent: the identity without a budget."""

    def __init__(self, trials: int, budget: float | None) -> None:
        self.trials = trials
        self.alpha = 0.0 if budget is None else math.exp(-budget)

    def sent(self, mean: float) -> list[float]:
        """P(z | mean) for z from 0 to `trials`: the noisy likelihood."""
        return self._spread(binomial_law(self.trials, mean), ends_collect=True)

    def expected(self, values: Sequence[float]) -> list[float]:
        """E[values[z] | s] for s from 0 to `trials`."""
        return self._spread(values, ends_collect=False)

    def matrix(self) -> list[list[float]]:
        """P(z | s): a row for each s."""
        size = self.trials + 1
        rows = []
        for successes in range(size):
            certain = [0.0] * size
            certain[successes] = 1.0
            rows.append(self._spread(certain, ends_collect=True))
        return rows

    def _spread(self, values: Sequence[float], *, ends_collect: bool) -> list[float]:
        """Σ_x values[x]·P(x → y), or its transpose, in one pass up and one down.

        Between the ends the weight is (1−α)/(1+α)·α^|x−y|; the ends stand for all beyond them as well, which makes
        their weight 1/(1−α) times that.
        """
        alpha, last = self.alpha, self.trials
        if alpha == 0.0:
            return list(values)
        taken = list(values)
        if not ends_collect:
            taken[0] /= 1.0 - alpha
            taken[last] /= 1.0 - alpha
        found = [0.0] * (last + 1)
        below = above = 0.0
        for index in range(last + 1):
            below = below * alpha + taken[index]
            found[index] += below
            other = last - index
            found[other] += above * alpha
            above = above * alpha + taken[other]
        scale = (1.0 - alpha) / (1.0 + alpha)
        found = [value * scale for value in found]
        if ends_collect:
            found[0] /= 1.0 - alpha
            found[last] /= 1.0 - alpha
        return found


def binomial_law(trials: int, mean: float) -> list[float]:
    """P(s) for s from 0 to `trials`."""
    if mean <= 0.0 or mean >= 1.0:
        certain = [0.0] * (trials + 1)
        certain[0 if mean <= 0.0 else trials] = 1.0
        return certain
    yes, no = math.log(mean), math.log1p(-mean)
    return [math.exp(ways + s * yes + (trials - s) * no) for s, ways in enumerate(_log_ways(trials))]


def times_log(count: int, probability: float) -> float:
    """count·ln(probability), 0 for nothing."""
    if not count:
        return 0.0
    return count * math.log(probability) if probability > 0 else -math.inf


@functools.cache
def _log_ways(trials: int) -> list[float]:
    return [math.lgamma(trials + 1) - math.lgamma(s + 1) - math.lgamma(trials - s + 1) for s in range(trials + 1)]
