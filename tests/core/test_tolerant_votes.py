"""Votes where some are lies: f more are needed, and an arm waits for those that its voters dropped before it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from core.casting import cast
from outvote.core.messages import Vote
from outvote.core.task import Task
from outvote.core.votes.server import VoteServer


def new_server(arms: int = 3, players: int = 8, tolerate: int = 1, **options: Any) -> VoteServer:
    return VoteServer(
        Task(arms=arms, players=players, epsilon=0.5, delta=0.05, tolerate=tolerate, **{"protocol": "dme", **options})
    )


@pytest.mark.parametrize(("tolerate", "needed"), [(0, 2), (1, 3), (2, 4)])
def test_f_votes_more_are_needed(tolerate: int, needed: int) -> None:
    server = new_server(active_players=4, tolerate=tolerate)
    assert [cast(server, player, 2) for player in range(needed)] == [[]] * (needed - 1) + [[2]]


def test_f_liars_cannot_leave_behind_what_honest_players_dropped_first() -> None:
    """Arm 0 is best, arm 1 nearly as good, arm 2 bad. Honest players drop 2 first, then 0 or 1, and two keep arm 1.

    The liar votes against arm 0 alone: it then has 3 votes, as many as are needed, and arm 2 has 2.
    """
    server = new_server(active_players=4)
    assert cast(server, "liar", 0) == []
    assert cast(server, "a", 2, 0) == []
    assert cast(server, "b", 2, 0) == [], "arm 0 waits for arm 2, which all of its voters but one dropped before"
    assert server.votes(0) == 3
    assert cast(server, "c", 2) == [2, 0], "arm 2 falls, and then nothing is waited for"
    assert server.winner == 1


def test_without_tolerance_the_same_votes_leave_the_bad_arm() -> None:
    server = new_server(active_players=6, tolerate=0)  # the same quorum
    assert [cast(server, player, *arms) for player, arms in (("liar", [0]), ("a", [2, 0]), ("b", [2, 0]))] == [
        [],
        [],
        [0],
    ]
    assert server.remaining == (1, 2)


def test_liars_alone_make_nothing_wait_once_more_honest_players_than_liars_have_voted() -> None:
    server = new_server(active_players=4)
    assert cast(server, "liar", 0, 2) == []
    assert [cast(server, player, 2) for player in "ab"] == [[], [2]]


def test_a_player_has_one_vote_for_an_arm_in_all_its_lives() -> None:
    server = new_server(active_players=4)
    for life in range(10):
        assert cast(server, "liar", 0, 1, incarnation=f"life-{life}") == []
    assert (server.votes(0), server.votes(1)) == (1, 1)


def test_instances_wait_each_for_its_own_and_fall_together() -> None:
    task = Task(arms=3, players=8, epsilon=0.5, delta=0.05, protocol="edme", instances=[2, 4], tolerate=1)
    assert task.quorums == (2, 3)
    server = VoteServer(task)
    for player, votes in (("liar", [(0, 1)]), ("a", [(2, 1), (0, 1)]), ("b", [(2, 1), (0, 1)])):
        for sequence, (arm, instance) in enumerate(votes):
            assert server.receive(player, Vote(arm, instance, sequence), 0) == []
    assert server.receive("c", Vote(2, 0, 0), 0) == []
    announced = server.receive("d", Vote(2, 0, 0), 0)  # the other instance drops arm 2: arm 0 need not wait for it
    assert [each.arms for each in announced] == [(2,), (0,)]


@pytest.mark.parametrize("cut", range(6))
def test_a_server_that_is_restored_remembers_the_order_of_votes(cut: int) -> None:
    votes: Sequence[tuple[str, int, int]] = [
        ("liar", 0, 0), ("a", 2, 0), ("a", 0, 1), ("b", 2, 0), ("b", 0, 1), ("c", 2, 0),
    ]  # fmt: skip
    server = new_server(active_players=4)
    for player, arm, sequence in votes[:cut]:
        server.receive(player, Vote(arm, 0, sequence), 0)
    twin = VoteServer.restore(server.task, json.loads(json.dumps(server.snapshot())))
    for player, arm, sequence in votes[cut:]:
        assert server.receive(player, Vote(arm, 0, sequence), 0) == twin.receive(player, Vote(arm, 0, sequence), 0)
    assert twin.eliminated == server.eliminated == (2, 0)
    assert twin.snapshot() == server.snapshot()


def test_what_waited_falls_when_others_have_eliminated_what_it_waited_for() -> None:
    server = new_server(active_players=4)
    for player, arms in (("liar", [0]), ("a", [2, 0]), ("b", [2, 0])):
        cast(server, player, *arms)
    server.adopt([2])
    assert server.eliminated == (2, 0)


def test_those_that_may_only_pretend_to_have_finished_are_not_enough() -> None:
    server = new_server(active_players=2, players=8)
    cast(server, "liar", 0, 1)
    cast(server, "a", 2, 1)
    assert (server.finished_players(), server.finished) == (2, False)
