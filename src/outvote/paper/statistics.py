"""Intervals for what was measured: 95 %, from the trials themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import betaincinv, stdtrit


@dataclass(frozen=True)
class Estimate:
    """A number with its interval; the same three times where nothing is random."""

    value: float
    low: float
    high: float


def exactly(value: float) -> Estimate:
    return Estimate(value, value, value)


def share(successes: int, trials: int) -> Estimate:
    """A proportion with the interval of Clopper and Pearson."""
    low = 0.0 if successes == 0 else float(betaincinv(successes, trials - successes + 1, 0.025))
    high = 1.0 if successes == trials else float(betaincinv(successes + 1, trials - successes, 0.975))
    return Estimate(successes / trials, low, high)


def mean(values: Sequence[float]) -> Estimate:
    """A mean with Student's interval; without one for a single value."""
    centre, error = _mean_and_error(values)
    half = float(stdtrit(len(values) - 1, 0.975)) * error if len(values) > 1 else 0.0
    return Estimate(centre, centre - half, centre + half)


def ratio(top: Sequence[float], bottom: Sequence[float]) -> Estimate:
    """A ratio of two independent means, by the delta method."""
    a, a_error = _mean_and_error(top)
    b, b_error = _mean_and_error(bottom)
    value = a / b
    half = 1.96 * value * math.hypot(a_error / a, b_error / b) if a else 0.0
    return Estimate(value, value - half, value + half)


def difference(left: Sequence[float], right: Sequence[float]) -> Estimate:
    """A difference of two independent means."""
    a, a_error = _mean_and_error(left)
    b, b_error = _mean_and_error(right)
    half = 1.96 * math.hypot(a_error, b_error)
    return Estimate(a - b, a - b - half, a - b + half)


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    centre = math.fsum(values) / len(values)
    if len(values) == 1:
        return centre, 0.0
    variance = math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)
    return centre, math.sqrt(variance / len(values))
