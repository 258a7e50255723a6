"""How long each epoch of Median Elimination lasts, and when votes are enough. Pure arithmetic on the paper's symbols.

Failure probabilities are kept as logarithms: δ^(2/N_γ) underflows for small N_γ, its logarithm does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from outvote.core.errors import InvalidTask


def paper_log_eta(delta: float, active_players: float, instances: int = 1) -> float:
    """ln η of Algorithms 3 and 4, line 4: η = (δ/M)^(2/N_γ)."""
    return 2.0 / active_players * (math.log(delta) - math.log(instances))


def certified_log_eta(delta: float, players: int, arms: int, instances: int = 1) -> float:
    """ln η such that all N players are accurate in all their epochs with probability at least 1 − δ/M.

    At the paper's epoch lengths a player is ever inaccurate with probability at most p = 2η²/(27K), so
    η = √(27·K·p/2) with (1 − p)^N = 1 − δ/M. It may exceed 1: it only sets how long epochs are.
    """
    log_inaccurate = math.log(delta) - math.log(instances) - math.log(players)  # the limit for small δ
    if delta > 1e-300:
        log_inaccurate = math.log(-math.expm1(math.log1p(-delta / instances) / players))
    return 0.5 * (math.log(27.0 * arms / 2.0) + log_inaccurate)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The epochs of one instance of Median Elimination; epochs count from 1."""

    arms: int
    epsilon: float
    log_eta: float

    def __post_init__(self) -> None:
        if not math.isfinite(self._pulls(1)):
            raise InvalidTask(
                f"must be larger, got {self.epsilon!r}: with ln(eta) {self.log_eta!r} the first epoch would need "
                "infinitely many pulls",
                field="epsilon",
                code="range",
            )

    def epoch_epsilon(self, epoch: int) -> float:
        """ε_l = ε/4 · (3/4)^(l−1)."""
        return self.epsilon / 4.0 * 0.75 ** (epoch - 1)

    def epoch_eta(self, epoch: int) -> float:
        """η_l = η/2^l."""
        return math.exp(self.log_eta - epoch * math.log(2.0))

    def pulls(self, epoch: int) -> int:
        """Pulls that every remaining arm needs: the smallest integer ≥ 4/ε_l² · ln(3K/η_l) (Algorithm 2, line 4)."""
        return math.ceil(self._pulls(epoch))

    def _pulls(self, epoch: int) -> float:
        epsilon = self.epoch_epsilon(epoch)
        log_term = math.log(3.0 * self.arms) + epoch * math.log(2.0) - self.log_eta
        try:
            return 4.0 / epsilon / epsilon * log_term
        except (OverflowError, ZeroDivisionError):
            return math.inf


def least_quorum(active_players: float) -> int:
    """The fewest votes that reach the quorum of Algorithm 3, line 15: Σ_n λ^n_k ≥ N_γ/2."""
    return math.ceil(active_players / 2)
