"""The Tally player restored from a snapshot goes on as the original."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from typing import Any

import pytest

from core.tally_players import Forbidden, batches, decide, new_player, new_task, overloaded, play
from outvote.core.errors import (
    MalformedSnapshot,
    NoOutstandingDecision,
)
from outvote.core.messages import Elimination
from outvote.core.tally.cycle import Cycle
from outvote.core.tally.player import TallyPlayer


def through_json(player: TallyPlayer) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(player.snapshot(), allow_nan=False))
    return loaded


def go_on(player: TallyPlayer, due: list[int], *, turns: int = 200) -> list[Any]:
    """An application that answers late, out of order or never, and closes what is due; all that the player said."""
    rng = random.Random(2)
    said: list[Any] = []
    unanswered: list[tuple[int, int]] = []
    due = list(due)
    for turn in range(turns):
        unanswered.append(player.decide())
        said.append(unanswered[-1])
        if rng.random() < 0.8:
            arm, ticket = unanswered.pop(rng.randrange(len(unanswered)))
            try:
                said += player.reward(arm, rng.choice([0.0, 0.5, 1.0]), ticket=ticket)
            except NoOutstandingDecision as error:
                said.append(str(error))
        due += player.take_full()
        if due and rng.random() < 0.3:
            said += player.close(due.pop(0))
        if turn == turns // 2:
            player.receive(Elimination((1,)))
    return [*said, player.snapshot()]


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "windowed": {"window": 60.0},
    "private": {"window": 60.0, "privacy_budget": 0.5, "floor": 3},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_player_restored_at_any_step_goes_on_as_the_original(options: dict[str, Any]) -> None:
    task = new_task(3, **options)
    player, rng = TallyPlayer(task, "site", random.Random(3)), random.Random(4)
    unanswered: list[tuple[int, int]] = []
    due: list[int] = []
    for step in range(120):
        unanswered.append(player.decide())
        if rng.random() < 0.6:
            arm, ticket = unanswered.pop(rng.randrange(len(unanswered)))
            if arm in player.remaining:
                with contextlib.suppress(NoOutstandingDecision):  # its tally was resumed
                    player.reward(arm, rng.random(), ticket=ticket)
        due += player.take_full()
        if due and step % 3 == 0:
            player.close(due.pop(0))
        if step == 80:
            player.receive(Elimination((0,)))
        snapshot = player.snapshot()
        restored = TallyPlayer.restore(task, through_json(player), random.Random(5))
        assert restored.snapshot() == snapshot == player.snapshot()
        full = [ticket for ticket, batch in batches(player).items() if task.reward_window and not batch[2]]
        assert restored.take_full() == full
        original = copy.deepcopy(player)
        original._rng = random.Random(5)  # a snapshot holds no generator: both go on with the same draws
        original.take_full()
        assert go_on(restored, full) == go_on(original, full)


def test_a_player_amid_an_uncounted_tally_is_restored() -> None:
    player = overloaded()
    decide(player, 20)
    restored = TallyPlayer.restore(player.task, through_json(player), Forbidden())
    assert restored.snapshot() == player.snapshot()
    assert restored.take_full() == list(range(128))
    for one in (player, restored):
        assert [ticket for _, ticket in decide(one, 44)] == [128] * 43 + [129]
        assert list(one.reward(Cycle(player.task).arm(0, 128), 1.0, ticket=128)) == []
        assert one.dropped_rewards == 1
    assert restored.snapshot() == player.snapshot()


def test_a_finished_player_is_restored() -> None:
    player = new_player(2)
    play(player, 10, (1.0, 0.0))
    player.receive(Elimination((0,)))
    decide(player, 5)
    restored = TallyPlayer.restore(player.task, through_json(player))
    assert restored.snapshot() == player.snapshot()
    assert restored.finished
    assert play(restored, 300, (1.0, 1.0)) == []


def test_without_a_window_a_player_is_a_few_numbers_per_arm() -> None:
    player, rng = new_player(4), random.Random(6)
    for _ in range(20_000):
        arm, ticket = player.decide()
        if rng.random() < 0.6:
            player.reward(arm, 1.0, ticket=ticket)
    assert len(player.snapshot()["batches"]) <= 4
    assert len(json.dumps(player.snapshot())) < 600


def test_a_snapshot_that_was_altered_or_is_of_another_task_is_refused() -> None:
    player = new_player(2)
    snapshot = through_json(player)
    with pytest.raises(MalformedSnapshot, match="cut or altered"):
        TallyPlayer.restore(player.task, {**snapshot, "opened": 0})
    with pytest.raises(MalformedSnapshot, match="task"):
        TallyPlayer.restore(new_task(2, floor=7), snapshot)
