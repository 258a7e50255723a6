"""The protocol of docs/howto/write-a-protocol.md does what the guide says: traces, delivery, restart.

What it costs in a simulation is in `test_research_guides.py`.
"""

from __future__ import annotations

import json
import random
import sys
from itertools import permutations

import pytest

from docs.blocks import DOCS
from outvote.core import protocols
from outvote.core.errors import MalformedMessage, UnknownPlayer
from outvote.core.messages import Elimination, Vote
from outvote.core.protocols import Player
from outvote.core.task import Task

sys.path.append(str(DOCS))

from howto import one_shot

ARMS = ["red", "green", "blue"]


@pytest.fixture(autouse=True)
def one_shot_is_registered(registered: None) -> None:
    one_shot.register()


def a_task(**options: object) -> Task:
    given = {"arms": ARMS, "players": 2, "epsilon": 0.9, "delta": 0.5, "protocol": "one-shot"}
    return Task(**(given | options))  # type: ignore[arg-type]


def play(player: Player, successes: list[int]) -> list[Vote]:
    """All decisions that are asked for, so many of each arm successful."""
    votes: list[Vote] = []
    for arm, many in enumerate(successes):
        for number in range(one_shot.pulls_needed(a_task())):
            decided, ticket = player.decide()
            assert decided == arm
            votes += player.reward(arm, float(number < many), ticket=ticket)  # type: ignore[arg-type]
    return votes


def test_a_player_votes_once_worst_first_against_what_is_more_than_epsilon_worse() -> None:
    # 2/.9² · ln(2·3·2/.5) = 2.469 · 3.178 = 7.85: 8 pulls of each arm.
    assert one_shot.pulls_needed(a_task()) == 8
    player = protocols.player(a_task(), 0)
    # Means 0, 1, 0: both are more than .9 below 1, equal means in the order of the arms.
    assert play(player, [0, 8, 0]) == [Vote(0, sequence=0), Vote(2, sequence=1)]
    assert player.finished
    assert player.decide()[0] == 1
    assert player.remaining == (0, 1, 2)  # a vote eliminates nothing


def test_with_a_window_what_was_not_answered_counts_0() -> None:
    player = protocols.player(a_task(reward_window=60), 0)
    votes: list[Vote] = []
    for _ in range(24):
        arm, ticket = player.decide()
        if arm == 1:
            votes += player.reward(arm, 1.0, ticket=ticket)  # type: ignore[arg-type]
    assert votes == []
    full = player.take_full()
    assert len(full) == 3
    for ticket in full:
        votes += player.close(ticket)  # type: ignore[arg-type]
    assert [vote.arm for vote in votes] == [0, 2]
    assert player.reward(0, 1.0, ticket=full[0]) == ()  # too late: dropped


@pytest.mark.parametrize("window", [None, 60.0])
def test_a_player_that_is_restored_at_any_moment_goes_on_as_if_nothing_had_been(window: float | None) -> None:
    task, rng = a_task(reward_window=window), random.Random(4)
    player = other = protocols.player(task, "paris")
    for event in range(60):
        other = protocols.restore(task, json.loads(json.dumps(other.snapshot())))  # type: ignore[assignment]
        arm, ticket = player.decide()
        assert other.decide() == (arm, ticket)
        likes = float(rng.random() < (0.1, 0.9, 0.2)[arm])
        assert player.reward(arm, likes, ticket=ticket) == other.reward(arm, likes, ticket=ticket)
        for full in player.take_full():
            assert player.close(full) == other.close(full)
        if event == 40:
            player.receive(Elimination((0,)))
            other.receive(Elimination((0,)))
    assert player.snapshot() == other.snapshot()


def test_the_server_does_not_care_about_order_and_repetition() -> None:
    messages = [("a", Vote(0)), ("b", Vote(2)), ("b", Vote(0, sequence=1)), ("a", Vote(0))]
    for order in permutations(messages):
        server = protocols.server(a_task())
        announced = [each.arms for player, vote in order for each in server.receive(player, vote)]
        assert sorted(announced) == [(0,), (2,)]
        assert server.winner == 1
        assert protocols.restore(a_task(), server.snapshot()).snapshot() == server.snapshot()


def test_the_server_never_removes_the_last_arm_and_refuses_what_cannot_be() -> None:
    server = protocols.server(a_task())
    for arm in range(3):
        server.receive("a", Vote(arm))
    assert server.remaining == (2,)
    server.receive("b", Vote(2))
    with pytest.raises(UnknownPlayer):
        server.receive("c", Vote(0))
    with pytest.raises(MalformedMessage):
        server.receive("a", "drop red")
