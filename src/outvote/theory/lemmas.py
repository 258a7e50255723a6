"""The paper's lemmas, theorems and Definition 4: what is printed, and beside it the exact expression behind it.

A function whose name ends in `printed` is an order of magnitude without its constant, as the paper prints it: good for
ratios, never for a plan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from outvote.core.codes import fixed_width
from outvote.core.schedule import Schedule


def candidates_by_epoch(arms: int) -> list[int]:
    """How many candidates each epoch starts with, when no two means are equal: half of them leave, rounded down."""
    sizes = []
    while arms > 1:
        sizes.append(arms)
        arms -= arms // 2
    return sizes


# ---- Lemma 1: the answer


def lemma_1_error(eta: float, active_players: float) -> float:
    """Lemma 1, as printed: η^(N_γ/2), which η = δ^(2/N_γ) makes δ.

    It multiplies over one fixed set of N_γ/2 voters, and takes it that those who do not fail agree. Neither holds: any
    quorum may eliminate, and players who each keep one of several good arms may split. See `accuracy` for what does.
    """
    return math.exp(active_players / 2 * math.log(eta))


# ---- Lemma 2 and Theorems 1 and 4: bits


def lemma_2_bits(arms: int, players: int) -> int:
    """Lemma 2: 2N(K−1)⌈log₂K⌉. Exact as a bound; with N_γ = N three quarters of it are sent (docs/reproduction.md)."""
    return theorem_4_bits(arms, players, 1)


def theorem_1_bits(arms: int, players: int) -> int:
    """Theorem 1: the same number, claimed as a lower bound for a speed-up in O(N).

    It is none: its last step does not follow, and Tally decides with less than half of it (docs/tally.md).
    """
    return lemma_2_bits(arms, players)


def theorem_4_bits(arms: int, players: int, instances: int) -> int:
    """Theorem 4: 2NM(K−1)⌈log₂K⌉. The bits that name the instance of a vote are not in it."""
    return 2 * players * instances * (arms - 1) * fixed_width(arms)


# ---- Lemma 3: pulls of one player


def lemma_3_printed(arms: int, epsilon: float, delta: float, active_players: float) -> float:
    """Lemma 3, as printed and without its constant: K/(ε²·N_γ) · ln(K/δ).

    With η = δ^(2/N_γ), ln(K/η) is ln K + (2/N_γ)·ln(1/δ): the ln K does not shrink with N_γ, and the lemma loses it.
    """
    return arms / epsilon**2 / active_players * math.log(arms / delta)


def lemma_3_series(schedule: Schedule) -> float:
    """The second line of Lemma 3's proof, with all its constants: 64K/ε² · Σ_l (8/9)^(l−1) · (l·ln 2 + ln(3K/η)).

    For K a power of two it is the sum itself before pulls are rounded up, so less than 2K below `pulls_per_player`; any
    other K halves more slowly, and needs more.
    """
    arms, log_eta = schedule.arms, schedule.log_eta
    epochs = max(math.ceil(math.log2(arms)), 1)
    terms = (
        (8 / 9) ** (epoch - 1) * (epoch * math.log(2) + math.log(3 * arms) - log_eta) for epoch in range(1, epochs + 1)
    )
    return 64 * arms / schedule.epsilon**2 * sum(terms)


def pulls_per_player(schedule: Schedule) -> int:
    """The sum behind Lemma 3: pulls of one player until one candidate is left, candidates only."""
    return sum(size * schedule.pulls(epoch) for epoch, size in enumerate(candidates_by_epoch(schedule.arms), start=1))


def pulls_alone(arms: int, epsilon: float, delta: float) -> int:
    """t*: what Median Elimination needs on one player that has the whole δ to itself (η = δ)."""
    return pulls_per_player(Schedule(arms, epsilon, math.log(delta)))


# ---- Theorem 2, Proposition 1 and Definition 4: the speed-up


def theorem_2_printed(arms: int, delta: float, players: int) -> float:
    """Theorem 2, as printed: N·ln(1/δ)/ln(K/δ); at least N/(1 + ln K) where δ ≤ 1/e."""
    return players * math.log(1 / delta) / math.log(arms / delta)


def proposition_1(schedule: Schedule, delta: float) -> float:
    """Proposition 1, computed: t*/t_Nγ with both as exact sums.

    With the paper's η it stays below a constant, that of η = 1, whatever N_γ; with the certified η it falls with N, in
    the end below 1.
    """
    return pulls_alone(schedule.arms, schedule.epsilon, delta) / pulls_per_player(schedule)


def speed_up(schedule: Schedule, delta: float, shares: Sequence[float], active_players: float) -> float:
    """Definition 4, computed: max_n T*_n / T_Nγ, with T*_n = t*/P(n) and T_Nγ = t_Nγ/γ.

    γ is the share of the least active of the ⌈N_γ⌉ most active players. Infinite if a player is never drawn.
    """
    gamma = sorted(shares, reverse=True)[math.ceil(active_players) - 1]
    least = min(shares)
    if least == 0:
        return math.inf if gamma > 0 else math.nan
    return proposition_1(schedule, delta) * gamma / least


# ---- Theorems 3 and 4: draws of players


def theorem_3_printed(arms: int, epsilon: float, delta: float, active_players: float, gamma: float) -> float:
    """Theorem 3, as printed and without its constant: (K/(ε²γN_γ) + √(K/(ε²N_γ)))·ln(KN_γ/δ)."""
    pulls = arms / epsilon**2 / active_players
    return (pulls / gamma + math.sqrt(pulls)) * math.log(arms * active_players / delta)


def theorem_4_printed(
    arms: int, epsilon: float, delta: float, instances: Sequence[float], gammas: Sequence[float]
) -> float:
    """Theorem 4, as printed and without its constant: the least over the instances, with δ/M each."""
    split = delta / len(instances)
    awake = (
        theorem_3_printed(arms, epsilon, split, active, gamma)
        for active, gamma in zip(instances, gammas, strict=True)
        if gamma > 0
    )
    return min(awake, default=math.inf)


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
    low, high = pulls - 1, pulls
    while _too_few(high, pulls, shares) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _too_few(middle, pulls, shares) <= delta else (middle, high)
    return float(high)


def _too_few(draws: int, pulls: int, shares: Sequence[float]) -> float:
    """A bound on the probability that some player has fewer pulls in so many draws."""
    level = (pulls - 1) / draws
    return sum(1.0 if level >= share else math.exp(-draws * _kl(level, share)) for share in shares)


def _kl(p: float, q: float) -> float:
    """Of two Bernoulli variables."""
    if q >= 1:
        return math.inf if p < 1 else 0.0
    first = p * math.log(p / q) if p > 0 else 0.0
    return first + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)
