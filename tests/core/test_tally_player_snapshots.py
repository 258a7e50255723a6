"""The Tally player restored from a snapshot goes on as the original."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from core.tally_players import decide, new_player, new_task, play
from outvote.core.decisions import Ticket
from outvote.core.errors import MalformedSnapshot
from outvote.core.messages import Elimination
from outvote.core.tally.player import TallyPlayer


def through_json(player: TallyPlayer) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(player.snapshot(), allow_nan=False))
    return loaded


def twins(player: TallyPlayer) -> tuple[TallyPlayer, TallyPlayer]:
    """A player restored from a snapshot, and the original: a snapshot has no generator, so both get the same draws."""
    restored, original = TallyPlayer.restore(player.task, through_json(player)), copy.deepcopy(player)
    for each in (restored, original):
        each._rng = each.decisions._rng = random.Random(5)
        each.decisions._run, each.decisions._key = "AAAAAAAA", b"key"
        each.decisions._runs = {*player.decisions._runs, each.decisions._run}
    return restored, original


def go_on(player: TallyPlayer, now: int, *, turns: int = 150) -> list[Any]:
    """An application that answers late, out of order or never; all that the player said."""
    rng = random.Random(2)
    said: list[Any] = []
    unanswered: list[Ticket] = []
    for turn in range(turns):
        now += rng.choice([0, 1, 10_000])
        unanswered.append(player.decide(now))
        said.append(unanswered[-1])
        if rng.random() < 0.8:
            player.reward(unanswered.pop(rng.randrange(len(unanswered))), rng.choice([0.0, 0.5, 1.0]), now)
        said += player.tick(now)
        if turn == turns // 2:
            player.receive(Elimination((1,)))
    return [*said, player.snapshot()]


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"window": 60.0},
    "private": {"window": 60.0, "privacy_budget": 0.5, "floor": 3},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_player_restored_at_any_step_goes_on_as_the_original(options: dict[str, Any]) -> None:
    player, rng = TallyPlayer(new_task(3, **options), "site", random.Random(3)), random.Random(4)
    unanswered: list[Ticket] = []
    now = 0
    for step in range(120):
        now += rng.choice([0, 1, 5_000])
        unanswered.append(player.decide(now))
        if rng.random() < 0.6:
            player.reward(unanswered.pop(rng.randrange(len(unanswered))), rng.random(), now)
        player.tick(now)
        if step == 80:
            player.receive(Elimination((0,)))
        snapshot = player.snapshot()
        restored, original = twins(player)
        assert restored.snapshot() == snapshot == player.snapshot()
        restored.resume(now, crashed=False)
        assert go_on(restored, now) == go_on(original, now)


def test_a_finished_player_is_restored() -> None:
    player = new_player(2)
    play(player, 10, (1.0, 0.0))
    player.receive(Elimination((0,)))
    decide(player, 5)
    restored = TallyPlayer.restore(player.task, through_json(player))
    assert restored.snapshot() == player.snapshot()
    assert restored.finished
    assert play(restored, 300, (1.0, 1.0)) == []


def test_a_snapshot_that_was_altered_or_is_of_another_task_is_refused() -> None:
    player = new_player(2)
    snapshot = through_json(player)
    with pytest.raises(MalformedSnapshot, match="cut or altered"):
        TallyPlayer.restore(player.task, {**snapshot, "opened": 0})
    with pytest.raises(MalformedSnapshot, match="task"):
        TallyPlayer.restore(new_task(2, floor=7), snapshot)
