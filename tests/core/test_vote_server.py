"""The vote-counting server: a quorum, refusals, and what it knows of the fleet.

Order, duplicates and lives of a player: `tests/property/test_order_of_delivery.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from core.casting import cast
from outvote.core.errors import MalformedMessage, OutvoteError, UnknownArm, UnknownPlayer
from outvote.core.messages import Elimination, PlayerId, Vote
from outvote.core.task import Task
from outvote.core.votes.server import VoteServer


def new_server(arms: int = 4, players: int | Sequence[str] = 4, **options: Any) -> VoteServer:
    return VoteServer(Task(arms=arms, players=players, epsilon=0.5, delta=0.05, **{"protocol": "dme", **options}))


# ---- decision 8: distinct votes, the quorum, one announcement


def test_an_arm_is_announced_when_half_of_the_active_players_have_voted_it_out() -> None:
    server = new_server(players=4)
    assert server.receive("a", Vote(3), 0) == []
    assert server.receive("b", Vote(3), 0) == [Elimination((3,))]
    assert server.remaining == (0, 1, 2)
    assert server.eliminated == (3,)
    assert server.votes(3) == 2


# ---- decision 8: no more players than declared


def unchanged_but_refused(server: VoteServer, player: PlayerId, message: Any, error: type[OutvoteError]) -> str:
    before = server.snapshot()
    with pytest.raises(error) as caught:
        server.receive(player, message, 0)
    after = server.snapshot()
    assert {**after, "checksum": 0} == {**before, "refused": before["refused"] + 1, "checksum": 0}
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_one_player_more_than_declared_is_refused_and_counted() -> None:
    server = new_server(players=2, active_players=2)
    cast(server, "a", 3)
    cast(server, "b", 2)
    message = unchanged_but_refused(server, "c", Vote(1), UnknownPlayer)
    assert "'c'" in message
    assert "2" in message
    unchanged_but_refused(server, "d", Vote(1), UnknownPlayer)
    assert server.refused == 2
    assert cast(server, "a", 1, first=1) == [1]  # those who were there before go on


def test_only_named_players_may_vote() -> None:
    server = new_server(players=["paris", "rome"])
    message = unchanged_but_refused(server, "berlin", Vote(3), UnknownPlayer)
    assert "'berlin'" in message
    assert "paris" in message
    assert "rome" in message
    unchanged_but_refused(server, 0, Vote(3), UnknownPlayer)
    assert cast(server, "rome", 3) == [3]


def test_a_refused_vote_takes_no_place_among_the_players() -> None:
    server = new_server(players=1)
    unchanged_but_refused(server, "a", Vote(9), UnknownArm)
    cast(server, "b", 3)
    assert server.votes(3) == 1


@pytest.mark.parametrize("arm", [-1, 4, 99, 0.5, "1", None, True, math.nan], ids=repr)
def test_an_unknown_arm_is_refused(arm: Any) -> None:
    message = unchanged_but_refused(new_server(arms=4), "a", Vote(arm), UnknownArm)
    assert message == f"unknown arm: got {arm!r}, allowed is a whole number from 0 to 3"


@pytest.mark.parametrize("instance", [-1, 1, 0.5, 0.0, "0", None], ids=repr)
def test_an_unknown_instance_is_refused(instance: Any) -> None:
    message = unchanged_but_refused(new_server(), "a", Vote(0, instance), MalformedMessage)
    assert repr(instance) in message


@pytest.mark.parametrize("sequence", [-1, 3, 99, 0.5, 0.0, "0", None], ids=repr)
def test_a_sequence_that_no_player_can_reach_is_refused(sequence: Any) -> None:
    # K − 1 = 3 votes of one player at most, numbered from 0
    message = unchanged_but_refused(new_server(arms=4), "a", Vote(0, 0, sequence), MalformedMessage)
    assert repr(sequence) in message


def test_the_votes_of_all_instances_are_one_sequence_that_has_an_end() -> None:
    # M·(K − 1) = 4 votes of one player at most
    server = new_server(arms=3, players=8, protocol="edme", instances=2)
    unchanged_but_refused(server, "a", Vote(0, 0, 4), MalformedMessage)
    unchanged_but_refused(server, "a", Vote(0, 2, 0), MalformedMessage)
    server.receive("a", Vote(0, 1, 3), 0)


def test_what_is_no_vote_is_refused() -> None:
    unchanged_but_refused(new_server(), "a", Elimination((1,)), MalformedMessage)


# ---- what a log says


def test_the_time_is_that_of_the_last_vote_that_was_not_refused() -> None:
    server = new_server(players=8)
    assert server.time == 0
    server.receive("a", Vote(3), 1_700_000_000_000)
    with pytest.raises(UnknownArm):
        server.receive("a", Vote(9), 1_700_000_000_001)
    assert server.time == 1_700_000_000_000
    server.receive("a", Vote(3), 1_700_000_000_002)  # again
    assert server.time == 1_700_000_000_002
    assert VoteServer.restore(server.task, server.snapshot()).time == 1_700_000_000_002


def test_an_elimination_that_was_told_leaves_players_fewer_candidates() -> None:
    server = new_server(arms=3, players=4)
    assert cast(server, "a", 2) == []
    assert cast(server, "b", 1) == []
    assert (server.finished_players(), server.finished) == (0, False)
    server.adopt([1])
    assert server.candidates("a") == (0,)
    assert (server.finished_players(), server.finished) == (1, False)  # b has two left


def test_what_a_server_has_eliminated_besides_stays_so_while_an_arm_is_left() -> None:
    server = new_server(players=1)
    assert cast(server, "a", 3, 1, 2) == [3, 1, 2]
    server.adopt([3, 0])  # the winner, of all
    assert server.eliminated == (3, 0, 1), "the last that it eliminated is the one that is left"
    assert (server.winner, server.finished_players()) == (2, 1)
