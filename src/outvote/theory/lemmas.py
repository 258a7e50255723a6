"""The paper's lemmas and theorems: what is printed, and beside it the exact expression behind it.

A function whose name ends in `printed` is an order of magnitude without its constant, as the paper prints it: good for
ratios, never for a plan.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

from outvote.core.votes.schedule import Schedule
from outvote.theory.identification import divergence

MOST_DRAWS = 1 << 60
"""Beyond that nobody waits."""


def candidates_by_epoch(arms: int) -> list[int]:
    """How many candidates each epoch starts with, when no two means are equal: half of them leave, rounded down."""
    sizes = []
    while arms > 1:
        sizes.append(arms)
        arms -= arms // 2
    return sizes


# ---- Lemma 3: pulls of one player


def lemma_3_printed(arms: int, epsilon: float, delta: float, active_players: float) -> float:
    """Lemma 3, as printed and without its constant: K/(ε²·N_γ) · ln(K/δ).

    With η = δ^(2/N_γ), ln(K/η) is ln K + (2/N_γ)·ln(1/δ): the ln K does not shrink with N_γ, and the lemma loses it.
    """
    return arms / epsilon**2 / active_players * math.log(arms / delta)


def pulls_per_player(schedule: Schedule) -> int:
    """The sum behind Lemma 3: pulls of one player until one candidate is left, candidates only."""
    return sum(size * schedule.pulls(epoch) for epoch, size in enumerate(candidates_by_epoch(schedule.arms), start=1))


def pulls_alone(arms: int, epsilon: float, delta: float) -> int:
    """t*: what Median Elimination needs on one player that has the whole δ to itself (η = δ)."""
    return pulls_per_player(Schedule(arms, epsilon, math.log(delta)))


# ---- Theorem 2, Proposition 1: the speed-up


def theorem_2_printed(arms: int, delta: float, players: int) -> float:
    """Theorem 2, as printed: N·ln(1/δ)/ln(K/δ); at least N/(1 + ln K) where δ ≤ 1/e."""
    return players * math.log(1 / delta) / math.log(arms / delta)


def proposition_1(schedule: Schedule, delta: float) -> float:
    """Proposition 1, computed: t*/t_Nγ with both as exact sums.

    With the paper's η it stays below a constant, that of η = 1, whatever N_γ; with the certified η it falls with N, in
    the end below 1.
    """
    return pulls_alone(schedule.arms, schedule.epsilon, delta) / pulls_per_player(schedule)


# ---- Theorem 3: draws of players


def draws_bound(pulls: float, share: float, active_players: float, delta: float) -> float:
    """The last step of Theorem 3's proof: draws within which each player of at least this share has so many pulls.

    T ≤ t/γ + √(t/2 · ln(2N_γ/δ)). The proof takes it from Hoeffding's inequality for a number that has no bound; where
    γ is small it is too short, and `draws_within` is what holds.
    """
    return pulls / share + math.sqrt(pulls / 2 * math.log(2 * active_players / delta))


def draws_within(pulls: int, shares: Sequence[float], delta: float) -> float:
    """Draws within which every one of these players has so many pulls, with probability at least 1 − δ.

    The smallest T with Σ_n exp(−T·kl((t−1)/T, P(n))) ≤ δ: Chernoff's bound for each player, and a union over them.
    """
    if pulls <= 0:
        return 0.0
    if min(shares) <= 0:
        return math.inf

    def enough(draws: int) -> bool:
        """The probability that some player has fewer pulls in so many draws is at most δ."""
        level = (pulls - 1) / draws
        each = (1.0 if level >= share else math.exp(-draws * divergence(level, share)) for share in shares)
        return sum(each) <= delta

    draws = bisect_left(range(MOST_DRAWS), True, pulls, key=enough)
    return float(draws) if draws < MOST_DRAWS else math.inf
