"""The Tally player and answers that come late or never: with and without a reward window, and with too many waiting."""

from __future__ import annotations

import json
import random
from functools import partial
from typing import Any

import pytest

from core.tally_players import batches, decide, new_player, overloaded, play, refused
from outvote.core.errors import (
    BatchNotClosable,
    NoOutstandingDecision,
    UnknownTicket,
)
from outvote.core.messages import Tally
from outvote.core.tally.cycle import Cycle
from outvote.core.tally.player import TallyPlayer

# ---- without a window: what is not answered is asked again


def test_without_a_window_a_tally_that_misses_answers_is_resumed_on_the_next_lap() -> None:
    player = new_player(2)
    first, second = Cycle(player.task).order
    decide(player, 3)
    player.reward(first, 1.0, ticket=0)  # two of three are not answered
    assert play(player, 3, (1.0, 1.0)) == [Tally(second, 3, 3, 1)]
    # Place 2 is the first arm again: the same ticket, and as many decisions as answers are missing.
    assert player.decide() == (first, 0)
    assert list(player.reward(first, 0.0, ticket=0)) == []
    assert player.decide() == (first, 0)
    assert list(player.reward(first, 1.0, ticket=0)) == [Tally(first, 2, 3, 0)]
    # Place 3: the third tally that was opened, so of 7 events.
    assert {player.decide() for _ in range(7)} == {(second, 3)}
    assert player.decide()[0] == first


def test_a_resumed_tally_is_resumed_as_often_as_it_needs() -> None:
    player = new_player(2)
    first, second = Cycle(player.task).order
    worth = (1.0, 1.0)
    decide(player, 3)
    play(player, 3, worth)
    for lap in range(1, 4):
        assert decide(player, 3) == [(first, 0)] * 3  # never answered
        (tally,) = play(player, 7, worth)
        assert (tally.arm, tally.sequence) == (second, 2 * lap + 1)
    assert play(player, 3, worth) == [Tally(first, 3, 3, 0)]


def test_an_answer_that_was_given_up_still_counts_and_saves_a_decision() -> None:
    player = new_player(2)
    first, second = Cycle(player.task).order
    decide(player, 6)  # the sixth decision completes the lap, so the first tally, of 3, is asked again
    assert list(player.reward(first, 1.0, ticket=0)) == []  # one of the three comes after all: two are left to ask
    assert batches(player)[0][1:] == (3, 2, 0, 1)
    assert [player.decide()[0] for _ in range(3)] == [first, first, second]
    assert list(player.reward(first, 1.0, ticket=0)) == []
    assert list(player.reward(first, 0.0, ticket=0)) == [Tally(first, 2, 3, 0)]
    refused(player, NoOutstandingDecision, lambda: player.reward(first, 1.0, ticket=0))


def test_late_answers_alone_can_complete_a_tally_that_is_asked_again() -> None:
    player = new_player(2)
    first, second = Cycle(player.task).order
    decide(player, 6)
    assert list(player.reward(first, 1.0, ticket=0)) == []
    assert list(player.reward(first, 1.0, ticket=0)) == []
    restored = TallyPlayer.restore(player.task, json.loads(json.dumps(player.snapshot())))
    for each in (player, restored):
        assert list(each.reward(first, 1.0, ticket=0)) == [Tally(first, 3, 3, 0)]
        assert each.decide()[0] == second  # it has gone on
        refused(each, NoOutstandingDecision, partial(each.reward, first, 1.0, ticket=0))


def test_without_a_window_there_is_at_most_one_open_tally_per_arm_and_it_counts_its_size() -> None:
    player, rng = new_player(4), random.Random(1)
    unanswered: list[tuple[int, int]] = []
    sent: list[Tally] = []
    for _ in range(5_000):
        unanswered.append(player.decide())
        if rng.random() < 0.7:
            arm, ticket = unanswered.pop(rng.randrange(len(unanswered)))
            try:
                sent += player.reward(arm, float(rng.randrange(2)), ticket=ticket)
            except NoOutstandingDecision:
                continue  # its tally was resumed, and others have answered in its place
        open_ones = batches(player)
        assert len({batch[0] for batch in open_ones.values()}) == len(open_ones) <= 4
        for _, size, left, waiting, successes in open_ones.values():
            assert 0 <= successes <= size - left - waiting
    assert len(sent) > 50
    assert len({tally.sequence for tally in sent}) == len(sent)
    assert all(0 <= tally.successes <= tally.trials for tally in sent)


def test_without_a_window_nothing_is_full_and_nothing_can_be_closed() -> None:
    player = new_player(2)
    decide(player, 6)
    assert player.take_full() == []
    message = refused(player, BatchNotClosable, lambda: player.close(0))
    assert message == "got ticket 0, but the task has no reward_window: nothing is ever closed"


# ---- with a window


def test_with_a_window_no_reward_sends_a_tally_and_its_close_does() -> None:
    player = new_player(2, window=60.0)
    first, second = Cycle(player.task).order
    assert play(player, 6, (1.0, 1.0)) == []
    assert player.take_full() == [0, 1]
    assert list(player.close(1)) == [Tally(second, 3, 3, 1)]
    assert list(player.close(0)) == [Tally(first, 3, 3, 0)]


def test_what_is_not_answered_counts_0() -> None:
    player = new_player(2, window=60.0)
    first, second = Cycle(player.task).order
    decide(player, 6)
    player.reward(first, 1.0, ticket=0)  # one of three
    assert list(player.close(0)) == [Tally(first, 1, 3, 0)]
    assert list(player.close(1)) == [Tally(second, 0, 3, 1)]  # none of three


def test_with_a_window_nothing_is_asked_again() -> None:
    player = new_player(2, window=60.0)
    decide(player, 6)
    assert [ticket for _, ticket in decide(player, 14)] == [2] * 7 + [3] * 7
    assert sorted(batches(player)) == [0, 1, 2, 3, 4]


def test_a_full_tally_is_named_once() -> None:
    player = new_player(2, window=60.0)
    decide(player, 2)
    assert player.take_full() == []
    decide(player, 1)
    assert player.take_full() == [0]
    assert player.take_full() == []
    decide(player, 3 + 7)
    assert player.take_full() == [1, 2]


def test_closing_again_changes_nothing() -> None:
    player = new_player(2, window=60.0)
    play(player, 6, (1.0, 0.0))
    assert len(player.close(0)) == 1
    before = player.snapshot()
    assert list(player.close(0)) == []
    assert player.snapshot() == before


def test_an_open_tally_cannot_be_closed() -> None:
    player = new_player(2, window=60.0)
    play(player, 5, (1.0, 0.0))
    message = refused(player, BatchNotClosable, lambda: player.close(1))
    assert message == "the batch of ticket 1 is still open: close it after its last decision"


@pytest.mark.parametrize("ticket", [3, -1, None, "0", 0.0, True, []], ids=repr)
def test_a_ticket_that_was_never_issued_cannot_be_closed(ticket: Any) -> None:
    player = new_player(2, window=60.0)
    decide(player, 6)  # issues 0 to 2
    message = refused(player, UnknownTicket, lambda: player.close(ticket))
    assert message == f"unknown ticket: got {ticket!r}, this player has issued 0 to 2"


def test_a_reward_for_a_closed_tally_is_counted_as_dropped_and_otherwise_ignored() -> None:
    player = new_player(2, window=60.0)
    first, _ = Cycle(player.task).order
    decide(player, 6)
    player.close(0)
    before = player.snapshot()
    assert list(player.reward(first, 1.0, ticket=0)) == []
    assert player.dropped_rewards == 1
    assert {**player.snapshot(), "checksum": 0} == {**before, "dropped_rewards": 1, "checksum": 0}


# ---- more tallies wait for their window than a player keeps


def test_beyond_the_most_that_may_wait_decisions_are_served_and_not_counted() -> None:
    player = overloaded()
    arm, ticket = player.decide()
    assert (arm, ticket) == (Cycle(player.task).arm(0, 128), 128)
    assert list(player.reward(arm, 1.0, ticket=ticket)) == []
    assert player.dropped_rewards == 1
    assert len(batches(player)) == 128
    # 128 were opened: the next would have 63 events
    assert {ticket for _, ticket in decide(player, 62)} == {128}
    assert player.decide() == (Cycle(player.task).arm(0, 129), 129)
    assert player.take_full() == []
    before = player.snapshot()
    assert list(player.close(128)) == []
    assert player.snapshot() == before


def test_when_there_is_room_again_the_next_tally_counts() -> None:
    player = overloaded()
    player.decide()
    assert len(player.close(5)) == 1
    # What was begun uncounted stays so: whether a tally counts is settled before its first decision.
    assert {ticket for _, ticket in decide(player, 62)} == {128}
    arm, ticket = player.decide()
    assert ticket == 129
    assert list(player.reward(arm, 1.0, ticket=ticket)) == []
    assert batches(player)[129] == (arm, 63, 62, 0, 1.0)
    assert (len(batches(player)), player.dropped_rewards) == (128, 0)


def test_uncounted_tallies_use_up_no_small_sizes() -> None:
    player = overloaded()
    decide(player, 10 * 63)
    assert player.snapshot()["opened"] == 128
