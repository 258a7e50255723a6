"""What lying sites can do, computed: how few take the best arm from a fleet, and how few events they must claim.

Without `tolerate`. With it nothing that f of them say takes the best arm more often than δ allows (docs/liars.md).
"""

from __future__ import annotations

import math
from bisect import bisect_left

from outvote.core.tally.bets import bets, means_bet_on, wealth
from outvote.core.votes.schedule import least_quorum

MOST_ROUNDS = 1_000_000
"""Beyond that nobody claims anything."""


def liars_to_eliminate(active_players: float, honest_votes: int = 0, tolerate: int = 0) -> int:
    """The fewest lying voters that eliminate an arm, where so many honest players vote against it anyway.

    The quorum of Algorithm 3, line 15, less those; where `tolerate` sites are tolerated so many more.
    """
    return max(least_quorum(active_players) + tolerate - honest_votes, 0)


def most_tolerated(players: int, active_players: float | None = None) -> int:
    """The largest `tolerate` of a task: fewer than half of the players, and of votes so few that the others can decide.

    f with ⌈N_γ/2⌉ + f ≤ N − f. Without N_γ: of Tally.
    """
    minority = (players - 1) // 2
    if active_players is None:
        return minority
    return max(min(minority, (players - least_quorum(active_players)) // 2), 0)


def claims_to_refute(
    size: int,
    delta: float,
    *,
    suspect: tuple[int, int] = (0, 0),
    rival: tuple[int, int] = (0, 0),
) -> int | None:
    """Events of each arm that one liar must claim to have the suspect refuted, in tallies of one size; None: too many.

    It says that nothing but failures came of the suspect and nothing but successes of the rival. `suspect` and `rival`
    are the successes and events that honest sites have reported of them before, in rounds against each other. The
    smallest n·size with Σ_i w_i·P_i·(what bet i pays)^n ≥ 1/δ; P_i is what the honest rounds have left of bet i.
    """
    table = bets(size, None, 0.0)
    before = [
        _paid(low, (low + high) / 2, *suspect) + _paid(high, (low + high) / 2, *rival)
        for low, high, _ in means_bet_on(0.0)
    ]
    nothing = [0.0] * len(before)
    least = math.log(1 / delta)

    def reached(rounds: int) -> bool:
        claimed = [rounds * (worse + better) for worse, better in zip(table.worse[0], table.better[size], strict=True)]
        return wealth(table.log_weights, [a + b for a, b in zip(before, claimed, strict=True)], nothing) >= least

    rounds = bisect_left(range(MOST_ROUNDS), True, 1, key=reached)
    return rounds * size if rounds < MOST_ROUNDS else None


def _paid(mean: float, border: float, successes: int, trials: int) -> float:
    """ln p_mean/p_border of what was reported."""
    return successes * math.log(mean / border) + (trials - successes) * math.log((1 - mean) / (1 - border))
