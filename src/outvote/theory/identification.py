"""What no algorithm can do without: the information-theoretic price of naming the best arm."""

from __future__ import annotations

import math
from collections.abc import Sequence


def identification_bound(means: Sequence[float], delta: float) -> float:
    """Draws that no algorithm can do without on average to name the best arm, with error δ at most.

    Garivier and Kaufmann (2016): kl(δ, 1−δ) times the characteristic time of the means, for rewards of 0 and 1.
    """
    best = max(range(len(means)), key=lambda arm: means[arm])
    others = [mean for arm, mean in enumerate(means) if arm != best]
    top = means[best]
    if top in others:
        return math.inf

    def cost(other: float, weight: float) -> tuple[float, float]:
        """What an event of each arm tells, with `weight` events of the other for one of the best."""
        middle = (top + weight * other) / (1 + weight)
        return divergence(top, middle), divergence(other, middle)

    def weight_for(other: float, level: float) -> float:
        low, high = 0.0, 1.0
        while _told(cost(other, high), high) < level:
            high *= 2
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if _told(cost(other, middle), middle) < level else (low, middle)
        return (low + high) / 2

    def balance(level: float) -> float:
        pairs = (cost(other, weight_for(other, level)) for other in others)
        return math.fsum(mine / theirs if theirs > 0 else math.inf for mine, theirs in pairs)

    low, high = 0.0, min(divergence(top, other) for other in others)
    if high == math.inf:  # all others are 0: no level is out of reach
        high = 1.0
        while balance(high) < 1:
            high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if balance(middle) < 1 else (low, middle)
    level = (low + high) / 2
    time = (1 + math.fsum(weight_for(other, level) for other in others)) / level
    return time * divergence(delta, 1 - delta)


def _told(costs: tuple[float, float], weight: float) -> float:
    return costs[0] + weight * costs[1]


def divergence(p: float, q: float) -> float:
    """Kullback and Leibler's divergence of two coins."""
    found = 0.0
    for a, b in ((p, q), (1 - p, 1 - q)):
        if a > 0:
            found += a * math.log(a / b) if b > 0 else math.inf
    return found
