"""The vote-counting server: a quorum, refusals, and what it knows of the fleet.

Order, duplicates and lives of a player: `tests/property/test_order_of_delivery.py`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

from core.casting import cast
from outvote.core.errors import MalformedMessage, OutvoteError, UnknownArm, UnknownPlayer
from outvote.core.messages import Elimination, PlayerId, Vote
from outvote.core.task import Task
from outvote.core.votes.server import VoteServer


def new_server(arms: int = 4, players: int | Sequence[str] = 4, **options: Any) -> VoteServer:
    return VoteServer(Task(arms=arms, players=players, epsilon=0.5, delta=0.05, **options))


# ---- decision 8: distinct votes, the quorum, one announcement


def test_an_arm_is_announced_when_half_of_the_active_players_have_voted_it_out() -> None:
    server = new_server(players=4)
    assert server.receive("a", Vote(3)) == []
    assert server.receive("b", Vote(3)) == [Elimination((3,))]
    assert server.remaining == (0, 1, 2)
    assert server.eliminated == (3,)
    assert server.votes(3) == 2


# ---- decision 5, at the server: a player's votes are applied in the order in which it sent them


def test_the_order_of_sending_decides_which_arm_survives_whatever_the_order_of_arrival() -> None:
    # One vote is a quorum, and only two of three arms can go. Player a finds arm 2 the worst, then arm 0; player b
    # finds arm 1 the worst. Were a's votes counted as they arrive, arms 0 and 1 would go and arm 2 would survive.
    server = new_server(arms=3, players=2)
    assert server.receive("a", Vote(0, 0, 1)) == []
    assert server.receive("b", Vote(1, 0, 0)) == [Elimination((1,))]
    assert server.receive("a", Vote(2, 0, 0)) == [Elimination((2,))]
    assert server.remaining == (0,)


# ---- decision 8: no more players than declared


def unchanged_but_refused(server: VoteServer, player: PlayerId, message: Any, error: type[OutvoteError]) -> str:
    before = server.snapshot()
    with pytest.raises(error) as caught:
        server.receive(player, message)
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


def test_what_is_no_vote_is_refused() -> None:
    unchanged_but_refused(new_server(), "a", Elimination((1,)), MalformedMessage)


# ---- decision 9: the end, computed from votes and eliminations


@pytest.mark.parametrize("active", [1, 2.5, 3, 5])
def test_the_end_follows_from_votes_and_eliminations(active: float) -> None:
    rng = random.Random(0)
    ended = 0
    for _ in range(200):
        server = new_server(arms=4, players=5, active_players=active)
        to_come = {player: rng.sample(range(4), 3) for player in range(5)}
        voted: dict[int, set[int]] = {player: set() for player in range(5)}
        gone: set[int] = set()
        while any(to_come.values()):
            player = rng.choice([player for player in range(5) if to_come[player]])
            arm = to_come[player].pop(0)
            cast(server, player, arm, first=len(voted[player]))
            voted[player].add(arm)
            votes = sum(arm in arms for arms in voted.values())
            if votes >= active / 2 and len(gone | {arm}) < 4:
                gone.add(arm)
            remaining = {0, 1, 2, 3} - gone
            done = sum(len(remaining - arms) <= 1 for arms in voted.values())
            assert set(server.remaining) == remaining
            assert all(set(server.candidates(n)) == remaining - voted[n] for n in range(5))
            assert server.finished == (done >= active or len(remaining) == 1)
            assert server.winner == (next(iter(remaining)) if len(remaining) == 1 else None)
            if len(remaining) > 1:
                assert server.finished_players() == done
        ended += server.finished
    assert ended


# ---- decision 10: several instances


def test_the_votes_of_all_instances_of_a_player_are_one_sequence() -> None:
    # M·(K − 1) = 4 votes of one player at most
    server = new_server(arms=3, players=8, protocol="edme", instances=2)
    server.receive("a", Vote(1, 1, 3))
    server.receive("a", Vote(2, 1, 1))
    assert [server.votes(arm, 1) for arm in range(3)] == [0, 0, 0]
    server.receive("a", Vote(2, 0, 0))
    assert [server.votes(arm, 1) for arm in range(3)] == [0, 0, 1]
    server.receive("a", Vote(1, 0, 2))
    assert [server.votes(arm, 1) for arm in range(3)] == [0, 1, 1]
    unchanged_but_refused(server, "a", Vote(0, 0, 4), MalformedMessage)
    unchanged_but_refused(server, "a", Vote(0, 2, 0), MalformedMessage)


def test_each_instance_of_edme_has_finished_players_of_its_own() -> None:
    server = new_server(arms=4, players=3, protocol="edme", instances=[2.5, 3])  # two votes in both
    for sequence, arm in enumerate((3, 2, 1)):
        server.receive("a", Vote(arm, 0, sequence))
    assert server.finished_players(0) == 1
    assert server.finished_players(1) == 0
    assert server.candidates("a", 0) == (0,)
    assert server.candidates("a", 1) == (0, 1, 2, 3)
    assert not server.finished
    for sequence, arm in enumerate((3, 2, 0)):
        server.receive("b", Vote(arm, 0, sequence))
    assert server.remaining == (0, 1)
    assert (server.finished_players(0), server.finished) == (2, False)
    server.receive("c", Vote(1, 1, 0))  # of another instance
    assert (server.finished_players(0), server.finished_players(1), server.finished) == (2, 1, False)


# ---- what a log says


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
