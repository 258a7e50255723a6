"""The ends of a trial (decision 9) and the delivery of eliminations (decision 11), on traces that are easy to follow.

Two arms that always pay 1 and 0, ε = .8, δ = .9, N_γ = 2: 100·ln(6/.45) = 259.03, so a player votes arm 1 out with
its 520th draw, and one vote is a quorum.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from outvote import Result, simulate

VOTE = 520


def run(folder: Path, players: list[int], **options: Any) -> Result:
    """One trial by the engine `core`, which drives the very objects of the core."""
    trace = folder / "trace.txt"
    trace.write_text("\n".join(map(str, players)), encoding="utf-8")
    choices: dict[str, Any] = {"means": (1.0, 0.0), "players": 2, "epsilon": 0.8, "delta": 0.9, **options}
    return simulate(activity=trace, horizon=len(players), grid=len(players), trials=1, engine="core", **choices)


def test_an_elimination_reaches_a_player_at_its_next_draw(tmp_path: Path) -> None:
    result = run(tmp_path, [0] * VOTE + [0] * 5 + [1] + [0])
    assert result.first_elimination.mean == VOTE
    assert result.finished.mean == VOTE  # the server knows at once
    # Player 1 still has both arms until it is drawn: only then are all remaining arms of all players good.
    assert result.solved.mean == VOTE + 6
    assert result.all_finished.mean == VOTE + 6


def test_the_player_that_voted_hears_of_the_elimination_at_its_next_draw_too(tmp_path: Path) -> None:
    result = run(tmp_path, [1] + [0] * VOTE + [1] * 3 + [0])
    assert result.finished.mean == 1 + VOTE
    assert result.all_finished.mean == 1 + VOTE + 1  # player 0 has voted, player 1 has heard: one candidate each
    assert result.solved.mean == 1 + VOTE + 4


def test_a_player_that_hears_of_an_elimination_does_not_play_the_arm_in_that_draw(tmp_path: Path) -> None:
    # Player 1 has played arm 0 once; arm 1 would be its next.
    result = run(tmp_path, [1] + [0] * VOTE + [1, 1, 0])
    assert result.regret.mean[VOTE] == VOTE / 2
    assert result.regret.mean[VOTE + 1 :] == [VOTE / 2] * 3


def test_with_a_player_that_never_wakes_all_finished_and_solved_never_come(tmp_path: Path) -> None:
    result = run(tmp_path, [0] * (VOTE + 100))
    assert result.finished.mean == VOTE
    assert result.all_finished.mean is None
    assert result.solved.mean is None
    assert result.correct == 1  # what remains at the server
    assert result.best == 1


def test_when_all_arms_are_good_the_first_draw_solves_the_task(tmp_path: Path) -> None:
    result = run(tmp_path, [0, 1, 0], means=(0.9, 0.2))
    assert result.solved.mean == 1
    assert result.finished.mean is None


def test_equal_arms_never_finish(tmp_path: Path) -> None:
    result = run(tmp_path, [0] * 5 * VOTE + [1] * 5 * VOTE, means=(1.0, 1.0))
    assert result.finished.mean is None
    assert result.messages.up == 0


@pytest.mark.parametrize(("active", "pulls"), [(2, 260), (1.5, 263), (1, 270)])
def test_finished_and_all_finished_are_different_moments(tmp_path: Path, active: float, pulls: int) -> None:
    # Longer epochs for fewer active players: N_γ = 1.5: 100·(ln 12 + 4/3·.10536) = 262.54; N_γ = 1: 269.56
    result = run(tmp_path, [0] * 2 * pulls + [1], active_players=active)
    assert result.finished.mean == 2 * pulls
    assert result.all_finished.mean == 2 * pulls + 1
