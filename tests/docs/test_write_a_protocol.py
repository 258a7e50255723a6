"""The protocol of docs/howto/write-a-protocol.md does what the guide says: traces, delivery, restart.

What it costs in a simulation is in `test_research_guides.py`.
"""

from __future__ import annotations

import json
import sys
from itertools import permutations

import pytest

from docs.blocks import DOCS
from outvote.core import protocols
from outvote.core.decisions import Ticket
from outvote.core.errors import MalformedMessage, UnknownPlayer
from outvote.core.messages import Elimination, UpMessage, Vote
from outvote.core.protocols import Player
from outvote.core.task import Task

sys.path.append(str(DOCS))

from howto import one_shot

ARMS = ["red", "green", "blue"]
START = 10**12


@pytest.fixture(autouse=True)
def one_shot_is_registered(registered: None) -> None:
    one_shot.register()


def a_task(**options: object) -> Task:
    given = {"arms": ARMS, "players": 2, "epsilon": 0.9, "delta": 0.5, "protocol": "one-shot"}
    return Task(**(given | options))  # type: ignore[arg-type]


def play(player: Player, successes: list[int]) -> list[Vote]:
    """All decisions that are asked for, so many of each arm successful."""
    for arm, many in enumerate(successes):
        for number in range(one_shot.pulls_needed(a_task())):
            ticket = player.decide(0)
            assert ticket.arm == arm
            player.reward(ticket, float(number < many), 0)
    return list(player.tick(0))  # type: ignore[arg-type]


def test_a_player_votes_once_worst_first_against_what_is_more_than_epsilon_worse() -> None:
    # 2/.9² · ln(2·3·2/.5) = 2.469 · 3.178 = 7.85: 8 pulls of each arm.
    assert one_shot.pulls_needed(a_task()) == 8
    player = protocols.player(a_task(), 0)
    # Means 0, 1, 0: both are more than .9 below 1, equal means in the order of the arms.
    assert play(player, [0, 8, 0]) == [Vote(0, sequence=0), Vote(2, sequence=1)]
    assert player.finished
    assert player.decide(1) == Ticket.uncounted(1)
    assert player.tick(1) == ()
    assert player.remaining == (0, 1, 2)  # a vote eliminates nothing


def test_with_a_window_what_was_not_answered_counts_0() -> None:
    player = protocols.player(a_task(reward_window=60), 0)
    for _ in range(24):
        ticket = player.decide(START)
        if ticket.arm == 1:
            player.reward(ticket, 1.0, START)
    assert player.tick(START + 60_000) == ()
    assert [vote.arm for vote in player.tick(START + 70_000) if isinstance(vote, Vote)] == [0, 2]
    player.reward(ticket, 1.0, START + 70_000)
    assert player.decisions.seen.late == [0, 0, 1]


@pytest.mark.parametrize("window", [0.0, 60.0])
def test_a_player_that_is_restored_at_any_moment_goes_on_as_if_nothing_had_been(window: float) -> None:
    """Each event is ten seconds long."""
    task, now = a_task(reward_window=window), START
    player = other = protocols.player(task, "paris")
    votes: list[tuple[list[UpMessage], list[UpMessage]]] = []
    for event in range(60):
        now += 10_000
        other = protocols.restore(task, json.loads(json.dumps(other.snapshot())))  # type: ignore[assignment]
        other.resume(now, crashed=False)
        ticket, same = player.decide(now), other.decide(now)
        assert (ticket.group, ticket.arm, ticket.place) == (same.group, same.arm, same.place)
        player.reward(ticket, float(ticket.arm == 1), now)
        other.reward(same, float(ticket.arm == 1), now)
        votes.append((list(player.tick(now)), list(other.tick(now))))
        if event == 40:
            player.receive(Elimination((0,)))
            other.receive(Elimination((0,)))
    assert [mine for mine, _ in votes if mine] == [others for _, others in votes if others] != []
    assert player.snapshot()["pulls"] == other.snapshot()["pulls"] == [8, 8, 8]
    assert player.snapshot()["totals"] == other.snapshot()["totals"]


def test_what_a_crash_has_cut_off_is_played_again() -> None:
    task = a_task(reward_window=60)
    player = protocols.player(task, 0)
    for _ in range(3):
        player.decide(START)
    again = one_shot.OneShotPlayer.restore(task, player.snapshot())
    again.resume(START, crashed=True)
    tickets = [again.decide(START) for _ in range(5 + 16)]
    assert [ticket.arm for ticket in tickets] == [0] * 5 + [1] * 8 + [2] * 8
    assert again.decide(START) == Ticket.uncounted(0)
    assert again.tick(START + 70_000) == []  # all means are 0
    assert again.snapshot()["pulls"] == [8, 8, 8]


def test_the_server_does_not_care_about_order_and_repetition() -> None:
    messages = [("a", Vote(0)), ("b", Vote(2)), ("b", Vote(0, sequence=1)), ("a", Vote(0))]
    for order in permutations(messages):
        server = protocols.server(a_task())
        announced = [each.arms for player, vote in order for each in server.receive(player, vote, 0)]
        assert sorted(announced) == [(0,), (2,)]
        assert server.winner == 1
        assert protocols.restore(a_task(), server.snapshot()).snapshot() == server.snapshot()


def test_the_server_never_removes_the_last_arm_and_refuses_what_cannot_be() -> None:
    server = protocols.server(a_task())
    for arm in range(3):
        server.receive("a", Vote(arm), 0)
    assert server.remaining == (2,)
    server.receive("b", Vote(2), 0)
    with pytest.raises(UnknownPlayer):
        server.receive("c", Vote(0), 0)
    with pytest.raises(MalformedMessage):
        server.receive("a", "drop red", 0)
