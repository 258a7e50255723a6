"""How noisy tallies outbid the means of an arm: the `Outbid` of `outvote.core.tally.confidence` with a privacy budget.

A likelihood costs much here. The one rule: what a line of support is proved by are exact tangents of a convex curve.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from outvote.core.tally.noise import Channel, binomial_law, times_log

GRID = 128
"""Means on which the mixture lies where tallies are noisy."""
_TOUCH = 1e-7
"""How far below the curve a line of support may pass, in parts of its slope times the mean."""
_CLOSE = 1.0 / GRID**2
"""Samples so close have a cubic between them that is as good as exact."""
_FIRST = (-6.0, -4.0, -2.0, 0.0, 2.0, 4.0, 6.0)
"""Where samples start, in standard deviations from the likeliest mean: most lines of support touch there."""
_MOST_SAMPLES = 80
"""At most so many more for one line: far beyond what any needs."""
_UNDERFLOW = 1e-290
"""Less probable than this is impossible: what is divided by it must not overflow."""


class NoisyOutbid:
    """By how much each mean is outbid. Tangents that were computed for a line of support are kept.

    Between two of the kept tangents a convex curve lies above both: so their crossing bounds it from below.
    """

    def __init__(self, counts: Sequence[tuple[int, Sequence[int]]], budget: float) -> None:
        self._reported = [
            (size, Channel(size, budget), [(z, count) for z, count in enumerate(often) if count])
            for size, often in counts
            if any(often)
        ]
        self.known = True
        on_grid = [0.0] * GRID
        for size, _, often in self._reported:
            for index, law in enumerate(_log_laws(size, budget)):
                on_grid[index] += math.fsum([count * law[z] for z, count in often])
        top = max(on_grid)
        self._mixture = top + math.log(math.fsum(math.exp(value - top) for value in on_grid) / GRID)
        self.inside = _grid()[on_grid.index(top)]
        tallies = sum(count for _, _, often in self._reported for _, count in often)
        trials = sum(size * count for size, _, often in self._reported for _, count in often)
        alpha = math.exp(-budget)
        noise = tallies * 2.0 * alpha / (1.0 - alpha) ** 2
        self.deviation = math.sqrt(self.inside * (1.0 - self.inside) * trials + noise) / trials
        self._curve = _Curve()
        near = (self.inside + times * self.deviation for times in _FIRST)
        for mean in (0.0, 1.0, *(mean for mean in near if 0.0 < mean < 1.0)):
            self._curve.add(mean, *self._tangent(mean))

    def __call__(self, mean: float) -> float:
        return self._mixture - self._log_likelihood(mean)

    @functools.cached_property
    def best(self) -> float:
        """Where the slope is 0, to ten digits."""
        for _ in range(_MOST_SAMPLES):
            after = self._curve.after(0.0)
            if after in (0, len(self._curve.means)):
                return self._curve.end(after)[0]
            if self._curve.means[after] - self._curve.means[after - 1] < 1e-5 or not self._sample(0.0, after):
                break
        return self._curve.on_cubic(0.0, after)[0]

    @functools.cached_property
    def least(self) -> float:
        after = self._curve.after(0.0) if self.best else 0
        inner = 0 < after < len(self._curve.means)
        return min((self._curve.crossing(after) if inner else self._curve.end(after))[1], 0.0)

    def support(self, slope: float) -> tuple[float, float]:
        curve = self._curve
        for _ in range(_MOST_SAMPLES):
            after = curve.after(slope)
            if after in (0, len(curve.means)):
                return curve.end(after)
            mean, value = curve.crossing(after)
            height, near = min((curve.values[at] - slope * curve.means[at], at) for at in (after - 1, after))
            if height - (value - slope * mean) <= _TOUCH * abs(slope) * mean or not self._sample(slope, after):
                break
        # Any point of the line will do; the one near which the curve has this slope makes a search smooth.
        close = curve.means[after] - curve.means[after - 1] <= _CLOSE
        point = curve.on_cubic(slope, after)[0] if close else curve.means[near]
        return point, value + slope * (point - mean)

    def _sample(self, slope: float, after: int) -> bool:
        """Reckon the curve once more, nearer to where it has this slope; False if floating point ends here."""
        curve = self._curve
        mean = curve.on_cubic(slope, after)[0]
        if not curve.means[after - 1] < mean < curve.means[after]:
            return False
        curve.add(mean, *self._tangent(mean))
        return True

    def _log_likelihood(self, mean: float) -> float:
        total = 0.0
        for _, channel, often in self._reported:
            law = channel.sent(mean)
            total += math.fsum([times_log(count, law[z]) for z, count in often])
        return total

    def _tangent(self, mean: float) -> tuple[float, float]:
        """The value and the slope; infinite where what was reported is all but impossible.

        P(z | μ) = Σ_s Binomial(t, μ)(s)·P(z | s) is a Bernstein polynomial: its slope is t times the one of degree
        t − 1 with the coefficients P(z | s + 1) − P(z | s).
        """
        value, slope = self._mixture, 0.0
        for size, channel, often in self._reported:
            law = channel.sent(mean)
            logs = []
            weights = [0.0] * (size + 1)
            for z, count in often:
                probability = law[z]
                if probability < _UNDERFLOW:
                    return math.inf, math.inf if mean > self.inside else -math.inf
                logs.append(count * math.log(probability))
                weights[z] = count / probability
            value -= math.fsum(logs)
            spread = channel.expected(weights)
            chances = binomial_law(size - 1, mean)
            slope -= size * math.fsum([p * (b - a) for p, (a, b) in zip(chances, pairwise(spread), strict=True)])
        return value, slope


class _Curve:
    """A convex curve at means in increasing order, with its slopes, which increase too."""

    def __init__(self) -> None:
        self.means: list[float] = []
        self.values: list[float] = []
        self.slopes: list[float] = []

    def add(self, mean: float, value: float, slope: float) -> None:
        at = bisect_left(self.means, mean)
        if at > 0:
            slope = max(slope, self.slopes[at - 1])  # against rounding
        if at < len(self.means):
            slope = min(slope, self.slopes[at])
        self.means.insert(at, mean)
        self.values.insert(at, value)
        self.slopes.insert(at, slope)

    def after(self, slope: float) -> int:
        """The first sample with at least this slope: the curve has it between there and the one before."""
        return bisect_left(self.slopes, slope)

    def end(self, after: int) -> tuple[float, float]:
        """Where all slopes are larger or all are smaller, a line of this slope touches at an end."""
        at = min(after, len(self.means) - 1)
        return self.means[at], self.values[at]

    def crossing(self, after: int) -> tuple[float, float]:
        """Where the tangents at two samples cross: the lowest that the curve could be."""
        a, f, d = self.means[after - 1], self.values[after - 1], self.slopes[after - 1]
        b, g, e = self.means[after], self.values[after], self.slopes[after]
        if math.isinf(d) or math.isinf(e):  # no tangent there: the other one alone, at the far end
            if math.isinf(d) and math.isinf(e):
                return (a + b) / 2, -math.inf
            return (a, g - e * (b - a)) if math.isinf(d) else (b, f + d * (b - a))
        if e <= d:
            return a, f
        mean = min(max(a + (g - f - e * (b - a)) / (d - e), a), b)
        return mean, min(f + d * (mean - a), g - e * (b - mean))

    def on_cubic(self, slope: float, after: int) -> tuple[float, float]:
        """Where the cubic through two samples has this slope, and its value; the middle if it is no convex one."""
        a, f, d = self.means[after - 1], self.values[after - 1], self.slopes[after - 1]
        b, g, e = self.means[after], self.values[after], self.slopes[after]
        width = b - a
        if math.isinf(d) or math.isinf(e):
            return a + width / 2, max(f, g)
        rise = (g - f) / width
        # The slope at a part u of the way is d + linear·u + square·u²
        linear, square = 6.0 * rise - 4.0 * d - 2.0 * e, 3.0 * (d + e) - 6.0 * rise
        if linear < 0.0 or linear + 2.0 * square < 0.0:  # it bends the wrong way: the samples are too far apart
            return a + width / 2, (f + g) / 2
        under = linear + math.sqrt(max(linear * linear - 4.0 * square * (d - slope), 0.0))
        part = min(max(2.0 * (slope - d) / under, 0.0), 1.0) if under > 0.0 else 0.5
        return a + part * width, f + part * width * (d + part * (linear / 2.0 + part * square / 3.0))


@functools.lru_cache(maxsize=64)
def _log_laws(size: int, budget: float) -> list[list[float]]:
    """ln P(z | μ), a row for each mean of the grid."""
    channel = Channel(size, budget)
    return [[times_log(1, p) for p in channel.sent(mean)] for mean in _grid()]


@functools.cache
def _grid() -> list[float]:
    """Means at equal distances on the arc-sine scale: Jeffreys' density."""
    return [math.sin((index + 0.5) * math.pi / (2 * GRID)) ** 2 for index in range(GRID)]
