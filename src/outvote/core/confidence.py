"""Confidence intervals for people: valid at all times at once, for all arms together, whatever the tallies' sizes.

An interval holds the means that the mixture of all means has not outbid by 2K/δ. Without noise the mixture is
Jeffreys' and has a closed form; with noise it is spread over a grid of means with the same density.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from outvote.core.noise import Channel

GRID = 128
"""Means on which the mixture lies where tallies are noisy."""
_PRECISION = 60
"""Halvings of an interval: to the last bit."""


def jeffreys_interval(successes: int, trials: int, log_limit: float) -> tuple[float, float]:
    """{μ : n·kl(μ̂, μ) ≤ log_limit + ln(L(μ̂)/m)}, m = B(S + ½, n − S + ½)/B(½, ½)."""
    if not trials:
        return 0.0, 1.0
    failures = trials - successes
    mixture = _log_beta(successes + 0.5, failures + 0.5) - math.log(math.pi)

    def outbid(mean: float) -> float:
        return mixture - _times_log(successes, mean) - _times_log(failures, 1.0 - mean)

    return _interval(outbid, successes / trials, log_limit)


def noisy_interval(counts: Sequence[tuple[int, Sequence[int]]], budget: float, log_limit: float) -> tuple[float, float]:
    """The same from how often each noisy result was sent: (size, how often each z) for each size."""
    if not any(any(often) for _, often in counts):
        return 0.0, 1.0

    def log_likelihood(mean: float) -> float:
        total = 0.0
        for size, often in counts:
            if any(often):
                law = Channel(size, budget).sent(mean)
                total += math.fsum(_times_log(count, p) for count, p in zip(often, law, strict=True))
        return total

    on_grid = [log_likelihood(mean) for mean in _grid()]
    top = max(on_grid)
    mixture = top + math.log(math.fsum(math.exp(value - top) for value in on_grid) / GRID)
    best = _grid()[on_grid.index(top)]
    return _interval(lambda mean: mixture - log_likelihood(mean), best, log_limit)


def _interval(outbid: Callable[[float], float], best: float, log_limit: float) -> tuple[float, float]:
    """Where `outbid` stays below the limit: it falls towards the best mean and rises beyond it."""
    ends = []
    for end in (0.0, 1.0):
        inside, outside = best, end
        if outbid(end) <= log_limit:
            inside = end
        else:
            for _ in range(_PRECISION):
                middle = (inside + outside) / 2
                inside, outside = (inside, middle) if outbid(middle) > log_limit else (middle, outside)
        ends.append(inside)
    return ends[0], ends[1]


@functools.cache
def _grid() -> list[float]:
    """Means at equal distances on the arc-sine scale: Jeffreys' density."""
    return [math.sin((index + 0.5) * math.pi / (2 * GRID)) ** 2 for index in range(GRID)]


def _times_log(count: int, probability: float) -> float:
    if not count:
        return 0.0
    return count * math.log(probability) if probability > 0 else -math.inf


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
