"""Confidence for people: which means what was reported leaves possible, at all times at once, whatever the sizes.

A mean is possible until the mixture of all means has outbid it by a limit. Without noise the mixture is Jeffreys' and
has a closed form; with noise it is spread over a grid of means with the same density.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from outvote.core.tally.noise import times_log
from outvote.core.tally.noisy_outbid import NoisyOutbid

_PRECISION = 40
"""Halvings of an interval: to twelve digits."""


class Outbid(Protocol):
    """By how much, in logarithms, the mixture has outbid each mean of one arm: the log of an e-process.

    It is convex in the mean: a likelihood of tallies is log-concave, and stays so under noise, whose law is log-concave
    (Bernstein polynomials keep the log-concavity of their coefficients).
    """

    @property
    def known(self) -> bool:
        """Something was reported."""

    @property
    def best(self) -> float:
        """The likeliest mean; ½ while nothing was reported."""

    @property
    def inside(self) -> float:
        """A mean that is in every interval, near the best."""

    @property
    def least(self) -> float:
        """The value at the best mean, or a little less; never above 0."""

    @property
    def deviation(self) -> float:
        """About the standard deviation of the best mean: where to start a search."""

    def __call__(self, mean: float) -> float: ...

    def support(self, slope: float) -> tuple[float, float]:
        """A point (mean, value) such that the line of this slope through it is nowhere above the outbid on [0, 1].

        It touches, or all but: so a bound by such lines is always safe, and is as good as exact.
        """


def outbid(counts: Sequence[tuple[int, Sequence[int]]], budget: float | None) -> Outbid:
    """From how often each result was sent: (size, how often each z) for each size."""
    if budget is not None and any(any(often) for _, often in counts):
        return NoisyOutbid(counts, budget)
    successes = sum(z * count for _, often in counts for z, count in enumerate(often))
    return JeffreysOutbid(successes, sum(size * sum(often) for size, often in counts))


def interval(outbid: Outbid, log_limit: float) -> tuple[float, float]:
    """Where an outbid stays below the limit: it falls towards the best mean and rises beyond it."""
    if not outbid.known:
        return 0.0, 1.0
    ends = []
    for end in (0.0, 1.0):
        inside, outside = outbid.inside, end
        if outbid(end) <= log_limit:
            inside = end
        else:
            for _ in range(_PRECISION):
                middle = (inside + outside) / 2
                inside, outside = (inside, middle) if outbid(middle) > log_limit else (middle, outside)
        ends.append(inside)
    return ends[0], ends[1]


class JeffreysOutbid:
    """ln(m/L(μ)), L(μ) = μ^S·(1 − μ)^(n−S)."""

    def __init__(self, successes: int, trials: int) -> None:
        self._successes, self._failures, self._trials = successes, trials - successes, trials
        self._mixture = _log_beta(successes + 0.5, trials - successes + 0.5) - math.log(math.pi)
        self.known = trials > 0
        self.best = self.inside = successes / trials if trials else 0.5
        self.least = min(self(self.best), 0.0) if trials else 0.0
        share = (successes + 0.5) / (trials + 1)
        self.deviation = math.sqrt(share * (1.0 - share) / (trials + 1))

    def __call__(self, mean: float) -> float:
        return self._value(mean, 1.0 - mean)

    def support(self, slope: float) -> tuple[float, float]:
        """Where (n−S)/(1−μ) − S/μ is the slope: the root of a quadratic, written so that no digits cancel."""
        if slope == 0.0 or not self._trials:
            mean = self.best if slope == 0.0 else float(slope > 0)
            return mean, self.least
        towards = self._failures if slope > 0 else self._successes
        steep = abs(slope)
        both = self._trials + steep
        rest = min(2.0 * towards / (both + math.sqrt(max(both * both - 4.0 * steep * towards, 0.0))), 1.0)
        mean, other = (1.0 - rest, rest) if slope > 0 else (rest, 1.0 - rest)
        return mean, self._value(mean, other)

    def _value(self, mean: float, other: float) -> float:
        return self._mixture - times_log(self._successes, mean) - times_log(self._failures, other)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
