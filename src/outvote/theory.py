"""The paper's lemmas and theorems as functions, each with its place. Exact sums, never big-O."""

from __future__ import annotations

import math

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
