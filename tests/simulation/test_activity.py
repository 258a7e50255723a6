"""Who is active: the laws of the paper, weights, traces and players that never wake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outvote.core.errors import InvalidSettings
from outvote.simulation.activity import (
    BLOCK,
    Activity,
    Weighted,
    eighty_twenty,
    read_activity,
    trace,
    uniform,
    weighted,
    with_dead_players,
)
from outvote.simulation.settings import read_settings
from outvote.simulation.stepwise import trial_draws


def drawn(activity: Activity, draws: int, seed: int = 0) -> list[int]:
    """The players that the engine `core` draws."""
    settings = replace(read_settings(players=activity.players), activity=activity, horizon=draws)
    return [player for player, _ in trial_draws(settings, np.random.SeedSequence(seed))]


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "trace.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# ---- decision 13: the laws


@pytest.mark.parametrize(
    ("players", "busy", "busy_share", "rare_share"),
    [
        (1, 1, 1.0, None),
        (2, 1, 0.8, 0.2),
        (4, 1, 0.8, 0.2 / 3),  # round(.8) = 1
        (5, 1, 0.8, 0.2 / 4),
        (64, 13, 0.8 / 13, 0.2 / 51),  # round(12.8) = 13
        (256, 51, 0.8 / 51, 0.2 / 205),  # round(51.2) = 51
    ],
)
def test_the_first_fifth_of_the_players_has_four_fifths_of_the_draws(
    players: int, busy: int, busy_share: float, rare_share: float | None
) -> None:
    activity = eighty_twenty(players)
    assert activity.players == players
    assert activity.active_players == busy
    assert activity.weights[:busy] == pytest.approx((busy_share,) * busy)
    assert activity.weights[busy:] == pytest.approx((rare_share,) * (players - busy))
    assert sum(activity.weights) == pytest.approx(1.0)


@pytest.mark.parametrize("weights", [(0, 1, 1), (1, 0, 1), (1, 2, 0), (0, 0, 1, 0, 2, 0, 0), (0.0, 1e-300)])
def test_a_player_of_weight_0_is_never_drawn(weights: tuple[float, ...]) -> None:
    seen = set(drawn(weighted(weights), 50_000))
    assert seen == {player for player, weight in enumerate(weights) if weight}


def test_there_are_as_many_draws_as_asked_for_though_they_are_prepared_in_blocks() -> None:
    for activity in (uniform(3), weighted((1, 2, 3))):
        for draws in (1, BLOCK, 2 * BLOCK + 5):
            players = drawn(activity, draws)
            assert len(players) == draws
            assert all(type(player) is int for player in players)


def test_the_same_generator_draws_the_same_players() -> None:
    assert drawn(eighty_twenty(64), 1000, seed=3) == drawn(eighty_twenty(64), 1000, seed=3)
    assert drawn(eighty_twenty(64), 1000, seed=3) != drawn(eighty_twenty(64), 1000, seed=4)


@pytest.mark.parametrize(
    ("weights", "part"),
    [
        ((1.0, -1.0), "got -1.0"),
        ((1.0, float("nan")), "got nan"),
        ((1.0, float("inf")), "got inf"),
        ((0.0, 0.0), "got [0.0, 0.0]"),
        ((1e308, 1e308), "got [1e+308, 1e+308]"),
        ((), "got []"),
    ],
)
def test_weights_that_are_no_law_are_refused(weights: tuple[float, ...], part: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        weighted(weights)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- reading


@pytest.mark.parametrize(
    ("text", "name"),
    [("uniform", "uniform"), ("80-20", "80-20"), ("3,1,1,0", "weights 3,1,1,0"), ((3, 1, 0.5, 0), "weights 3,1,0.5,0")],
)
def test_an_activity_is_read_as_it_is_named(text: str | Sequence[float], name: str) -> None:
    activity = read_activity(text, 4)
    assert activity.name == name
    assert activity.players == 4
    assert activity.length == float("inf")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("80-30", ["'uniform'", "'80-20'", "weights", "trace", "got '80-30'"]),
        ("x" * 300, ["'uniform'", "'80-20'", "weights", "trace", "got 'xxx"]),  # too long for a file's name
        ("1,2,x", ["numbers", "got '1,2,x'"]),
        ("1,2,,3", ["numbers", "got '1,2,,3'"]),
        ("1,2,3", ["each of the 4 players", "got 3"]),
        ((1.0, 2.0), ["each of the 4 players", "got 2"]),
        ("1,2,3,-1", ["at least 0", "got -1.0"]),
        ("0,0,0,0", ["a sum above 0"]),
        (Path("no such file"), ["no such file", "cannot be read"]),
    ],
)
def test_an_activity_that_cannot_be_read_is_refused(text: Any, parts: list[str]) -> None:
    with pytest.raises(InvalidSettings) as caught:
        read_activity(text, 4)
    for part in parts:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- traces


def test_a_trace_is_replayed_in_its_order(tmp_path: Path) -> None:
    activity = trace(written(tmp_path, "2\n0\n\n 1 \n2\r\n0"), 3)
    assert (activity.length, activity.players) == (5, 3)
    assert activity.active_players == 3
    assert drawn(activity, 5, seed=0) == drawn(activity, 5, seed=1) == [2, 0, 1, 2, 0]
    assert drawn(activity, 3) == [2, 0, 1]


def test_a_trace_of_several_blocks_is_read_without_a_gap(tmp_path: Path) -> None:
    lines = [number % 7 for number in range(2 * BLOCK + 5)]
    activity = trace(written(tmp_path, "\n".join(map(str, lines))), 7)
    assert drawn(activity, 2 * BLOCK + 3) == lines[: 2 * BLOCK + 3]


@pytest.mark.parametrize(
    ("text", "line", "value"),
    [
        ("0\n1\n3\n", 3, "'3'"),
        ("0\n\n-1\n", 3, "'-1'"),
        ("a\n", 1, "'a'"),
        ("0\n1.0\n", 2, "'1.0'"),
        ("0 1\n", 1, "'0 1'"),
        ("0\n٢\n", 2, "'٢'"),
        ("0\n²\n", 2, "'²'"),
        ("0\n" + "9" * 100, 2, "'" + "9" * 40),
        ("0\n" + "9" * 5000, 2, "'" + "9" * 40),
        ("0\n1e3\n", 2, "'1e3'"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_trace_that_names_an_unknown_player_is_refused(tmp_path: Path, text: str, line: int, value: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InvalidSettings) as caught:
        trace(path, 3)
    message = str(caught.value)
    assert f"line {line} of {path}" in message
    assert value in message
    assert "from 0 to 2" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "part"), [("", "is empty"), ("\n \n\n", "is empty"), (b"\xff\xfe\x00\x81", "is not text")]
)
def test_a_trace_without_players_is_refused(tmp_path: Path, text: str | bytes, part: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InvalidSettings, match=part) as caught:
        trace(path, 3)
    assert str(path) in str(caught.value)


def test_a_trace_that_is_not_there_or_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(InvalidSettings, match="cannot be read") as caught:
            trace(path, 3)
        assert str(path) in str(caught.value)


def test_a_trace_that_has_shrunk_since_it_was_checked_is_refused(tmp_path: Path) -> None:
    activity = trace(written(tmp_path, "0\n1\n2\n0\n"), 3)
    written(tmp_path, "0\n1\n")
    with pytest.raises(InvalidSettings, match="trace"):
        drawn(activity, 4)


# ---- players that never wake


def test_the_last_players_may_be_dead_and_the_others_share_the_draws_as_before() -> None:
    activity = with_dead_players(weighted((4, 2, 1, 3)), 2)
    assert isinstance(activity, Weighted)
    assert activity.players == 4
    assert activity.weights == (4.0, 2.0, 0.0, 0.0)
    assert set(drawn(activity, 30_000)) == {0, 1}


def test_dead_players_do_not_change_how_many_are_meant_to_be_active() -> None:
    assert with_dead_players(uniform(64), 10).active_players == 64
    assert with_dead_players(eighty_twenty(64), 10).active_players == 13


@pytest.mark.parametrize("dead", [4, 5, -1])
def test_some_player_must_live(dead: int) -> None:
    with pytest.raises(InvalidSettings) as caught:
        with_dead_players(uniform(4), dead)
    assert "from 0 to players - 1 = 3" in str(caught.value)
    assert f"got {dead}" in str(caught.value)


def test_the_living_must_have_some_weight() -> None:
    with pytest.raises(InvalidSettings):
        with_dead_players(weighted((0, 0, 1)), 1)


def test_dead_players_need_weights(tmp_path: Path) -> None:
    recorded = trace(written(tmp_path, "0\n1\n"), 2)
    assert with_dead_players(recorded, 0) is recorded
    with pytest.raises(InvalidSettings, match="got 1 with 'trace "):
        with_dead_players(recorded, 1)
