"""Lemmas and theorems as functions, each with its place: the paper's, and what the field knows. Exact, never big-O."""

from __future__ import annotations

import math
from collections.abc import Sequence

from outvote.core.schedule import Schedule


def candidates_by_epoch(arms: int) -> list[int]:
    """How many candidates each epoch starts with, when no two means are equal: half of them leave, rounded down."""
    sizes = []
    while arms > 1:
        sizes.append(arms)
        arms -= arms // 2
    return sizes


def pulls_per_player(schedule: Schedule) -> int:
    """The sum behind Lemma 3: pulls of one player until one candidate is left, candidates only."""
    return sum(size * schedule.pulls(epoch) for epoch, size in enumerate(candidates_by_epoch(schedule.arms), start=1))


def draws_bound(pulls: float, share: float, active_players: float, delta: float) -> float:
    """The last step of Theorem 3's proof: draws within which each player of at least this share has so many pulls.

    T ≤ t/γ + √(t/2 · ln(2N_γ/δ)).
    """
    return pulls / share + math.sqrt(pulls / 2 * math.log(2 * active_players / delta))


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
        return _kl(top, middle), _kl(other, middle)

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
        return math.fsum(mine / theirs for mine, theirs in pairs)

    low, high = 0.0, min(_kl(top, other) for other in others)
    for _ in range(100):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if balance(middle) < 1 else (low, middle)
    level = (low + high) / 2
    time = (1 + math.fsum(weight_for(other, level) for other in others)) / level
    return time * _kl(delta, 1 - delta)


def _told(costs: tuple[float, float], weight: float) -> float:
    return costs[0] + weight * costs[1]


def _kl(p: float, q: float) -> float:
    """Kullback and Leibler's divergence of two coins."""
    found = 0.0
    for a, b in ((p, q), (1 - p, 1 - q)):
        if a > 0:
            found += a * math.log(a / b) if b > 0 else math.inf
    return found
