"""Tickets, and the reward window that keeps delayed and missing rewards from biasing a player.

The short epochs are those of two or three arms with ε = 8 in place of the task's own and η = .9: for two arms
ln(6/.45) = 2.59: 3 pulls, then 16/9·ln(6/.225) = 5.84: 6, then 256/81·ln(6/.1125) = 12.57: 13; for three arms
ln(9/.45) = 2.99: 3, then 16/9·ln(9/.225) = 6.56: 7.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from outvote.core.errors import BatchNotClosable, UnknownTicket
from outvote.core.task import Task
from outvote.core.votes.player import MedianPlayer
from outvote.core.votes.schedule import Schedule


def new_player(arms: int, *, window: float | None) -> MedianPlayer:
    task = Task(arms=arms, players=2, epsilon=0.8, delta=0.9, reward_window=window, protocol="dme")
    return MedianPlayer(task, "site", schedules=(Schedule(arms, 8.0, math.log(0.9)),))


def decide(player: MedianPlayer, turns: int) -> list[tuple[int, int]]:
    return [player.decide() for _ in range(turns)]


# ---- tickets


@pytest.mark.parametrize("window", [None, 60.0])
def test_the_decisions_of_one_arm_share_a_ticket_until_its_epoch_has_what_it_needs(window: float | None) -> None:
    player = new_player(2, window=window)
    decisions = decide(player, 2 * (3 + 6 + 13))
    assert decisions[:8] == [(0, 0), (1, 1), (0, 0), (1, 1), (0, 0), (1, 1), (0, 2), (1, 3)]
    assert Counter(ticket for _, ticket in decisions) == {0: 3, 1: 3, 2: 6, 3: 6, 4: 13, 5: 13}


def test_a_batch_of_an_arm_that_is_no_candidate_has_the_pulls_that_are_still_missing() -> None:
    # K = 5: epochs of 4, 8 and 16 pulls. Arms 3 and 4 leave with the first, arm 2 with the second.
    player = new_player(5, window=60.0)
    sizes: dict[int, list[int]] = {arm: [] for arm in range(5)}
    for _ in range(5 * (4 + 8 + 16)):
        arm, ticket = player.decide()
        player.reward(arm, 1.0 - arm / 4, ticket=ticket)
        sizes[arm] += [batch[2] for batch in player.snapshot()["batches"] if batch[0] == ticket and not batch[3]]
        for full in player.take_full():
            player.close(full)
    assert [sizes[arm][:3] for arm in range(5)] == [[4, 8, 16]] * 3 + [[4, 8, 8]] * 2


@pytest.mark.parametrize("ticket", [2, 99, -1, "0", 0.5, 0.0, True, math.nan, [], {}], ids=repr)
@pytest.mark.parametrize("window", [None, 60.0])
def test_a_ticket_that_was_never_issued_is_refused(window: float | None, ticket: Any) -> None:
    player = new_player(2, window=window)
    decide(player, 2)  # issues 0 and 1, one batch for each arm
    before = player.snapshot()
    for arm in (0, 1):
        with pytest.raises(UnknownTicket) as caught:
            player.reward(arm, 1.0, ticket=ticket)
        assert str(caught.value) == f"unknown ticket: got {ticket!r}, this player has issued 0 to 1"
    assert player.snapshot() == before


@pytest.mark.parametrize("window", [None, 60.0])
def test_the_ticket_of_another_arm_is_refused(window: float | None) -> None:
    player = new_player(2, window=window)
    decide(player, 2)
    before = player.snapshot()
    with pytest.raises(UnknownTicket, match="ticket 1 belongs to arm 1"):
        player.reward(0, 1.0, ticket=1)
    assert player.snapshot() == before


# ---- without a reward window


def test_without_a_window_nothing_is_full_and_nothing_can_be_closed() -> None:
    player = new_player(2, window=None)
    decide(player, 6)
    assert player.take_full() == []
    before = player.snapshot()
    with pytest.raises(BatchNotClosable, match="no reward_window"):
        player.close(0)
    assert player.snapshot() == before


# ---- with a reward window


@pytest.mark.parametrize("ticket", [4, -1, None, "0", 0.0, True, []], ids=repr)
def test_a_ticket_that_was_never_issued_cannot_be_closed(ticket: Any) -> None:
    player = new_player(2, window=60.0)
    decide(player, 6)  # issues 0 to 3
    before = player.snapshot()
    with pytest.raises(UnknownTicket, match="this player has issued 0 to 3"):
        player.close(ticket)
    assert player.snapshot() == before


def test_nothing_is_left_to_close_when_nothing_is_left_to_learn() -> None:
    player = new_player(2, window=60.0)
    for arm, ticket in decide(player, 6):
        player.reward(arm, 1.0 - arm, ticket=ticket)
    for ticket in player.take_full():
        player.close(ticket)
    assert player.finished
    decide(player, 12)  # the batches that were open run full
    assert player.take_full() == [2, 3]
    (arm, ticket), *_ = decide(player, 10_000)
    assert player.take_full() == []
    assert not player.reward(arm, 1.0, ticket=ticket)
    with pytest.raises(BatchNotClosable, match="still open"):
        player.close(ticket)
