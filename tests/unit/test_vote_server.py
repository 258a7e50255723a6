"""The vote-counting server: quorums, order, duplicates, refusals, and what it knows of the fleet."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest

from outvote.core.errors import MalformedMessage, OutvoteError, UnknownArm, UnknownPlayer
from outvote.core.messages import Elimination, PlayerId, Vote
from outvote.core.task import Task
from outvote.core.votes import VoteServer
from unit.casting import cast


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


@pytest.mark.parametrize(
    ("active", "needed"),
    [(0.5, 1), (1, 1), (2, 1), (2.5, 2), (3, 2), (4, 2), (4.5, 3), (5, 3), (6, 3)],
)
def test_the_quorum_compares_real_numbers(active: float, needed: int) -> None:
    server = new_server(players=6, active_players=active)
    for player in range(needed - 1):
        assert cast(server, player, 1) == []
    assert cast(server, needed - 1, 1) == [1]


def test_an_arm_is_announced_once() -> None:
    server = new_server(players=4)
    assert [cast(server, player, 2) for player in range(4)] == [[], [2], [], []]
    assert server.votes(2) == 4
    assert server.eliminated == (2,)


def test_votes_for_different_arms_do_not_add_up() -> None:
    server = new_server(players=4)
    assert [cast(server, player, player) for player in range(4)] == [[], [], [], []]
    assert [server.votes(arm) for arm in range(4)] == [1, 1, 1, 1]


def test_a_second_vote_of_one_player_for_one_arm_does_not_count() -> None:
    server = new_server(players=4)
    assert cast(server, "a", 1, 1, 1) == []
    assert server.votes(1) == 1
    assert cast(server, "b", 1) == [1]


def test_a_vote_that_is_received_again_is_counted_as_a_duplicate() -> None:
    server = new_server(players=4)
    for _ in range(3):
        assert server.receive("a", Vote(1, 0, 0)) == []
    assert (server.duplicates, server.votes(1)) == (2, 1)
    server.receive("a", Vote(2, 0, 2))  # held
    server.receive("a", Vote(2, 0, 2))
    assert (server.duplicates, server.votes(2)) == (3, 0)
    assert server.refused == 0


def test_the_last_remaining_arm_is_never_announced() -> None:
    server = new_server(arms=3, players=2)  # one vote is a quorum
    assert cast(server, "a", 2, 1) == [2, 1]
    assert cast(server, "b", 0) == []
    assert server.remaining == (0,)
    assert server.winner == 0
    assert server.votes(0) == 1


def test_at_most_all_arms_but_one_are_announced_whoever_votes_for_what() -> None:
    for orders in permutations(permutations(range(3)), 2):
        server = new_server(arms=3, players=2)
        announced = [arm for player, order in enumerate(orders) for arm in cast(server, player, *order[:2])]
        assert len(announced) == len(set(announced)) <= 2
        assert set(announced) | set(server.remaining) == {0, 1, 2}
        assert server.remaining


def test_votes_that_come_after_the_end_still_count() -> None:
    server = new_server(arms=2, players=2)
    assert cast(server, "a", 1) == [1]
    assert server.finished
    assert cast(server, "b", 1) == []
    assert server.votes(1) == 2


# ---- decision 5, at the server: a player's votes are applied in the order in which it sent them


def test_votes_that_come_too_early_are_held() -> None:
    server = new_server(arms=4, players=2)
    assert server.receive("a", Vote(2, 0, 2)) == []
    assert server.receive("a", Vote(1, 0, 1)) == []
    assert server.remaining == (0, 1, 2, 3)
    assert [server.votes(arm) for arm in range(4)] == [0, 0, 0, 0]
    assert server.receive("a", Vote(3, 0, 0)) == [Elimination((3,)), Elimination((1,)), Elimination((2,))]
    assert server.eliminated == (3, 1, 2)


def test_only_what_follows_without_a_gap_is_applied() -> None:
    server = new_server(arms=4, players=2)
    server.receive("a", Vote(2, 0, 2))
    assert server.receive("a", Vote(3, 0, 0)) == [Elimination((3,))]
    assert server.remaining == (0, 1, 2)
    assert server.receive("a", Vote(1, 0, 1)) == [Elimination((1,)), Elimination((2,))]


def test_the_order_of_sending_decides_which_arm_survives_whatever_the_order_of_arrival() -> None:
    # One vote is a quorum, and only two of three arms can go. Player a finds arm 2 the worst, then arm 0; player b
    # finds arm 1 the worst. Were a's votes counted as they arrive, arms 0 and 1 would go and arm 2 would survive.
    server = new_server(arms=3, players=2)
    assert server.receive("a", Vote(0, 0, 1)) == []
    assert server.receive("b", Vote(1, 0, 0)) == [Elimination((1,))]
    assert server.receive("a", Vote(2, 0, 0)) == [Elimination((2,))]
    assert server.remaining == (0,)


def test_one_late_vote_of_a_player_holds_up_only_its_own() -> None:
    server = new_server(arms=3, players=2)
    server.receive("a", Vote(0, 0, 1))
    assert cast(server, "b", 1) == [1]
    assert server.remaining == (0, 2)


def test_every_order_of_arrival_ends_in_the_same_votes() -> None:
    votes = [
        ("a", Vote(3, 0, 0)),
        ("a", Vote(2, 0, 1)),
        ("a", Vote(1, 0, 2)),
        ("b", Vote(3, 0, 0)),
        ("b", Vote(0, 0, 1)),
    ]
    for order in permutations(votes):
        server = new_server(arms=4, players=4)
        for player, vote in order:
            server.receive(player, vote)
        assert [server.votes(arm) for arm in range(4)] == [1, 1, 1, 2]
        assert server.remaining == (0, 1, 2)
        assert server.duplicates == 0


# ---- a player that lost its memory


def test_a_player_that_lost_its_memory_votes_again_and_counts_once() -> None:
    server = new_server(players=4)
    assert cast(server, "a", 3, 2, incarnation="first life") == []
    assert cast(server, "a", 2, 1, incarnation="second life") == []
    assert [server.votes(arm) for arm in range(4)] == [0, 1, 1, 1]
    assert server.duplicates == 0
    assert server.candidates("a") == (0,)
    assert cast(server, "b", 2) == [2]


def test_each_life_of_a_player_has_an_order_of_its_own() -> None:
    server = new_server(arms=3, players=2)
    server.receive("a", Vote(0, 0, 1), incarnation="x")
    assert server.receive("a", Vote(1, 0, 0), incarnation="y") == [Elimination((1,))]
    assert server.receive("a", Vote(2, 0, 0), incarnation="x") == [Elimination((2,))]
    assert server.remaining == (0,)


def test_the_lives_of_a_player_are_one_player() -> None:
    server = new_server(players=1)
    cast(server, "a", 3, incarnation="x")
    cast(server, "a", 3, incarnation="y")
    assert server.refused == 0
    assert server.votes(3) == 1


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


def test_a_new_task_is_not_finished_and_has_no_winner() -> None:
    server = new_server(arms=3)
    assert not server.finished
    assert server.winner is None
    assert server.remaining == (0, 1, 2)
    assert server.candidates("a") == (0, 1, 2)
    assert server.finished_players() == 0


def test_the_candidates_of_a_player_are_what_it_and_the_fleet_left() -> None:
    server = new_server(arms=4, players=4)
    cast(server, "a", 3)
    assert server.candidates("a") == (0, 1, 2)
    cast(server, "b", 3)  # eliminated
    cast(server, "b", 2, first=1)
    assert server.candidates("a") == (0, 1, 2)
    assert server.candidates("b") == (0, 1)
    assert server.candidates("never heard of") == (0, 1, 2)


def test_finished_players_are_counted_though_they_keep_different_arms() -> None:
    server = new_server(arms=4, players=5)  # quorum 2.5: three votes
    assert cast(server, "a", 3, 2, 1) == []
    assert (server.finished_players(), server.finished) == (1, False)
    assert cast(server, "b", 3, 2, 0) == []
    assert cast(server, "c", 3, 0, 1) == [3]
    assert (server.finished_players(), server.finished) == (3, False)
    assert server.remaining == (0, 1, 2)


def test_a_fractional_number_of_active_players_is_reached_by_the_next_whole_one() -> None:
    server = new_server(arms=2, players=6, active_players=4.5)  # quorum 2.25: three votes
    for player, arm in enumerate((0, 1, 0, 1)):
        assert cast(server, player, arm) == []
        assert not server.finished
    assert server.finished_players() == 4
    assert cast(server, 4, 0) == [0]
    assert server.finished
    assert server.winner == 1


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


def test_an_elimination_can_finish_other_players() -> None:
    server = new_server(arms=3, players=4)  # quorum 2
    cast(server, "a", 2)  # candidates 0, 1
    cast(server, "b", 2)  # 2 is eliminated
    cast(server, "b", 1, first=1)
    assert (server.candidates("a"), server.candidates("b")) == ((0, 1), (0,))
    assert server.finished_players() == 1
    assert cast(server, "c", 1) == [1]
    assert server.candidates("a") == (0,)
    assert server.finished_players() >= 2
    assert server.winner == 0


def test_a_player_whose_favourite_was_eliminated_has_no_candidate_and_is_finished() -> None:
    server = new_server(arms=3, players=4)  # quorum 2
    cast(server, "a", 1, 2)  # keeps 0
    assert server.candidates("a") == (0,)
    cast(server, "b", 0)
    cast(server, "c", 0)
    assert server.remaining == (1, 2)
    assert server.candidates("a") == ()
    assert server.finished_players() == 1
    assert not server.finished


# ---- decision 10: several instances


def test_a_quorum_in_any_instance_eliminates_for_all() -> None:
    # N_γ = 2, 4, 6, 8: quorums 1, 2, 3, 4
    server = new_server(arms=3, players=8, protocol="edme", instances=4)
    assert server.receive("a", Vote(2, 3, 0)) == []
    assert server.receive("a", Vote(2, 1, 1)) == []
    assert server.receive("b", Vote(2, 3, 0)) == []
    assert server.receive("b", Vote(2, 1, 1)) == [Elimination((2,))]
    assert server.remaining == (0, 1)
    assert server.candidates("c", 0) == (0, 1)
    assert [server.votes(2, instance) for instance in range(4)] == [0, 2, 0, 2]


def test_votes_of_different_instances_do_not_add_up() -> None:
    # N_γ = 3, 6: quorums 2, 3
    server = new_server(arms=3, players=6, protocol="edme", instances=2)
    assert server.receive("a", Vote(2, 0, 0)) == []
    assert server.receive("a", Vote(2, 1, 1)) == []
    assert server.receive("b", Vote(2, 1, 0)) == []
    assert server.remaining == (0, 1, 2)
    assert server.receive("b", Vote(2, 0, 1)) == [Elimination((2,))]


def test_an_arm_is_announced_once_for_all_instances() -> None:
    # N_γ = 1, 2: one vote is a quorum in both
    server = new_server(arms=3, players=2, protocol="edme", instances=2)
    assert server.receive("a", Vote(2, 1, 0)) == [Elimination((2,))]
    assert server.receive("a", Vote(2, 0, 1)) == []
    assert server.votes(2, 0) == server.votes(2, 1) == 1


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
