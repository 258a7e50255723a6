"""Where sites lie, the best arm is lost no more often than δ where they are tolerated, and always where they are not.

Seeds are fixed. By the theorem of docs/liars.md the first test raises a false alarm with probability 1e-6 at most in
each of its cases; what the others see happens in all trials or in none.
"""

from __future__ import annotations

from typing import Any

import pytest
from scipy import stats

import outvote
from outvote.simulation import Result

DELTA = 0.2
ALARM = 1e-6
TWINS: dict[str, Any] = {"means": (0.5, 0.5), "players": 4, "delta": DELTA, "seed": 11, "grid": 1}
"""Two arms that are equally good: nothing is lost more easily."""


def lost(result: Result) -> int:
    """Trials in which the first arm, which the liars are against, was eliminated."""
    return round(result.trials * result.eliminations[0].share)


@pytest.mark.parametrize("lie", ["damn", "flood"])
def test_the_best_arm_is_lost_no_more_often_than_delta_with_as_many_liars_as_are_tolerated(lie: str) -> None:
    trials = 40
    result = outvote.simulate(
        protocol="tally", tolerate=1, liars=1, lie=lie, horizon=500, trials=trials, **TWINS
    )  # fmt: skip
    assert lost(result) <= stats.binom.isf(ALARM, trials, DELTA)


@pytest.mark.parametrize(("tolerate", "liars"), [(0, 1), (1, 2)])
def test_those_that_are_not_tolerated_win(tolerate: int, liars: int) -> None:
    result = outvote.simulate(
        protocol="tally", tolerate=tolerate, liars=liars, lie="flood", horizon=100, trials=20, **TWINS
    )  # fmt: skip
    assert lost(result) == 20, "so the test above can fail"


def test_a_fleet_that_tolerates_liars_finds_the_best_arm_against_them() -> None:
    for lie in ("praise", "swap"):
        result = outvote.simulate(
            protocol="tally", means=(0.8, 0.4, 0.2), players=6, tolerate=1, liars=1, lie=lie, horizon=4000, trials=4,
            seed=2, grid=1,
        )  # fmt: skip
        assert result.best == 1


@pytest.mark.parametrize(("tolerate", "remains"), [(0, 0.0), (1, 1.0)])
def test_one_liar_takes_the_best_arm_where_a_single_vote_is_enough_unless_it_is_tolerated(
    tolerate: int, remains: float
) -> None:
    result = outvote.simulate(
        protocol="dme", quorum="certified", means=(0.97, 0.05), players=4, active_players=2, epsilon=0.9, delta=0.5,
        tolerate=tolerate, liars=1, lie="praise", horizon=6000, trials=3, seed=3, grid=1,
    )  # fmt: skip
    assert result.best == remains
    assert result.finished.share == 1
