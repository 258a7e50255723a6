"""The Tally player, followed by hand: its cycle, decisions and rewards, eliminations, rounding and noise.

Two arms and a floor of 3: tallies of 3, 7, 15, … events. A player opens K = 2 of 3, until 4K = 8 of 7, until 16K = 32
of 15, and so on.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest

from core.tally_players import Forbidden, Scripted, decide, groups, named, new_player, new_task, play, refused
from outvote.core.errors import InvalidReward, UnknownArm, UnknownDecision
from outvote.core.messages import Elimination, Tally
from outvote.core.tally.cycle import Cycle
from outvote.core.tally.player import TallyPlayer
from outvote.core.task import Task

# ---- the cycle


def test_the_cycle_is_a_shuffle_that_depends_on_the_task_alone() -> None:
    orders = {tuple(Cycle(new_task(5, name=f"task-{number}")).order) for number in range(40)}
    assert all(sorted(order) == [0, 1, 2, 3, 4] for order in orders)
    assert len(orders) > 20  # 40 of 120 orders: with fewer than 20 different ones it would be no shuffle
    assert Cycle(new_task(5)).order == Cycle(Task.from_json(new_task(5).to_json())).order


def test_numbered_players_start_one_after_another() -> None:
    cycle = Cycle(new_task(3))
    assert [cycle.start(player) for player in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    assert [cycle.arm(1, sequence) for sequence in range(4)] == [cycle.order[i] for i in (1, 2, 0, 1)]


def test_declared_players_start_one_after_another_and_others_by_their_name() -> None:
    declared = Cycle(new_task(3, players=["zoe", "adam", "eve", "tom"]))
    assert [declared.start(player) for player in ("zoe", "adam", "eve", "tom")] == [0, 1, 2, 0]
    others = Cycle(new_task(3))
    starts = Counter(others.start(f"site-{number}") for number in range(300))
    assert set(starts) == {0, 1, 2}
    assert min(starts.values()) > 60  # the names are spread, about 100 each
    assert others.start("site-7") == Cycle(new_task(3, name="other")).start("site-7")


def test_a_player_goes_through_the_cycle_from_its_own_start_a_whole_tally_of_each_arm() -> None:
    order = Cycle(new_task(3, window=60.0)).order
    for player in range(4):
        arms = [ticket.arm for ticket in decide(new_player(3, player, window=60.0), 9 + 7)]
        at = [order[(player + place) % 3] for place in range(4)]
        assert arms == [at[0]] * 3 + [at[1]] * 3 + [at[2]] * 3 + [at[3]] * 7


def test_the_group_is_the_place_in_the_cycle_and_the_sequence_of_the_tally() -> None:
    player = new_player(3, 1)
    cycle = Cycle(new_task(3))
    tallies = play(player, 3 * 3 + 9 * 7, (1.0, 1.0, 1.0))
    assert [tally.sequence for tally in tallies] == list(range(12))
    assert player.decide(0).group == 12
    assert all(tally.arm == cycle.arm(1, tally.sequence) for tally in tallies)


def test_players_that_start_at_different_places_fill_all_arms_at_once() -> None:
    first = [decide(new_player(4, player), 1)[0].arm for player in range(4)]
    assert sorted(first) == [0, 1, 2, 3]


def test_tallies_grow_with_the_number_that_was_opened() -> None:
    # K = 2: 2 tallies of 3, 6 of 7 (until 8), 24 of 15 (until 32), then of 31
    tallies = play(new_player(2), 2 * 3 + 6 * 7 + 24 * 15 + 3 * 31, (1.0, 0.0))
    assert [tally.trials for tally in tallies] == [3] * 2 + [7] * 6 + [15] * 24 + [31] * 3


def test_tallies_of_the_last_size_go_on_for_ever() -> None:
    # From 40 to 2·40 + 1 = 81; 163 would be too large
    tallies = play(new_player(2, floor=40), 2 * 40 + 70 * 81, (1.0, 0.0))
    assert [tally.trials for tally in tallies] == [40] * 2 + [81] * 70


# ---- decisions and rewards


def test_a_tally_says_how_many_of_its_events_succeeded() -> None:
    player = new_player(2)
    first, second = Cycle(player.task).order
    outcomes = [1.0, 0.0, 1.0, 0.0, 0.0, 1.0]
    tallies: list[Tally] = []
    for outcome in outcomes:
        player.reward(player.decide(0), outcome, 0)
        tallies += player.tick(0)
    assert tallies == [Tally(first, 2, 3, 0), Tally(second, 1, 3, 1)]


def test_a_reward_counts_for_its_own_decision_in_whatever_order_they_come() -> None:
    player = new_player(2)
    first, second = Cycle(player.task).order
    tickets = decide(player, 5)  # three of the first arm, two of the second
    for index, reward in ((3, 1.0), (0, 0.0), (2, 1.0), (4, 1.0), (1, 1.0)):
        player.reward(tickets[index], reward, 0)
    assert list(player.tick(0)) == [Tally(first, 2, 3, 0)]  # one decision of the other tally is still to come
    last = player.decide(0)
    assert named([last]) == named(tickets[-1:]) == [(second, 1)]
    player.reward(last, 0.0, 0)
    assert list(player.tick(0)) == [Tally(second, 2, 3, 1)]


def test_a_reward_for_an_eliminated_arm_is_counted_apart_and_otherwise_ignored() -> None:
    player = new_player(3)
    order = Cycle(player.task).order
    tickets = decide(player, 4)
    player.receive(Elimination((order[0],)))
    before = player.snapshot()
    for ticket in tickets[:3]:
        player.reward(ticket, 1.0, 0)
    assert player.decisions.seen.out == [3 if arm == order[0] else 0 for arm in range(3)]
    before["decisions"]["seen"]["out"] = player.decisions.seen.out
    assert {**player.snapshot(), "checksum": 0} == {**before, "checksum": 0}


REFUSED_REWARDS = [1.2, 1.0000001, -0.1, -5e-324, math.nan, math.inf, -math.inf, "1", "", None, [], {}, 1j]


@pytest.mark.parametrize("reward", REFUSED_REWARDS, ids=repr)
@pytest.mark.parametrize("window", [0.0, 60.0])
def test_a_reward_that_is_no_number_from_0_to_1_changes_nothing(reward: Any, window: float) -> None:
    player = new_player(2, window=window)
    ticket = player.decide(0)
    message = refused(player, InvalidReward, lambda: player.reward(ticket, reward, 0))
    assert message == f"a reward must be a number from 0 to 1, got {reward!r}"


@pytest.mark.parametrize("arm", [-1, 2, 99])
def test_an_unknown_arm_changes_nothing(arm: int) -> None:
    player = new_player(2)
    ticket = player.decide(0)._replace(arm=arm)
    refused(player, UnknownDecision, lambda: player.reward(ticket, 1.0, 0))


@pytest.mark.parametrize("window", [0.0, 60.0])
def test_a_ticket_that_was_never_issued_counts_for_nobody(window: float) -> None:
    player = new_player(2, window=window)
    tickets = decide(player, 4)  # of the groups 0 and 1
    first, last = tickets[0], tickets[-1]
    before = groups(player)
    forged = [first._replace(group=group) for group in (1, 2, 99)] + [last._replace(group=0)]
    forged += [first._replace(place=place) for place in (-1, 3, 99)] + [last._replace(place=1)]
    forged += [ticket._replace(arm=1 - ticket.arm) for ticket in (first, last)]
    forged += [first._replace(run="AAAAAAAA"), last._replace(run="AAAAAAAA")]
    for ticket in forged:
        with pytest.raises(UnknownDecision, match="no decision with this ticket waits here"):
            player.reward(ticket, 1.0, 0)
    assert sum(player.decisions.seen.refused) == len(forged)
    assert groups(player) == before


@pytest.mark.parametrize("window", [0.0, 60.0])
def test_a_decision_counts_once(window: float) -> None:
    player = new_player(2, window=window)
    ticket = player.decide(0)
    player.reward(ticket, 1.0, 0)
    before = player.snapshot()
    for reward in (1.0, 0.0, 0.5):
        player.reward(ticket, reward, 0)
    assert player.snapshot() == before


def test_neither_decisions_nor_sizes_depend_on_the_rewards() -> None:
    runs = []
    for worth in ((1.0, 0.0), (0.0, 1.0), (0.0, 0.0)):
        player, decisions = new_player(2), []
        for _ in range(200):
            decisions.append(player.decide(0))
            player.reward(decisions[-1], worth[decisions[-1].arm], 0)
            player.tick(0)
        runs.append(decisions)
    assert runs[0] == runs[1] == runs[2]


# ---- eliminations


def test_an_elimination_discards_the_open_tallies_of_its_arm_and_the_others_go_on() -> None:
    player = new_player(3, window=60.0)
    order = Cycle(player.task).order
    play(player, 9 + 2, (1.0, 1.0, 1.0))  # tallies 0, 1, 2 are full, 3 has two decisions
    player.receive(Elimination((order[0],)))
    # The first arm's open tally is broken off: place 4, the second arm, is next.
    assert {number: group[0] for number, group in groups(player).items()} == {1: order[1], 2: order[2], 4: order[1]}
    told = sorted(player.tick(66_000), key=lambda tally: tally.sequence)
    assert told == [Tally(order[1], 3, 3, 1), Tally(order[2], 3, 3, 2)]
    assert [ticket.group for ticket in decide(player, 7 + 7 + 1)] == [4] * 7 + [5] * 7 + [7]
    assert player.remaining == tuple(sorted(order[1:]))


def test_an_elimination_of_another_arm_does_not_break_off_the_current_tally() -> None:
    player = new_player(3)
    order = Cycle(player.task).order
    decide(player, 2)
    player.receive(Elimination((order[1],)))
    assert named([player.decide(0)]) == [(order[0], 0)]
    assert named([player.decide(0)]) == [(order[2], 2)]  # place 1 is skipped
    assert groups(player)[2] == (order[2], 2, 1, 0.0)


def test_an_elimination_again_or_in_parts_changes_nothing() -> None:
    whole, parts = new_player(4), new_player(4)
    for player in (whole, parts):
        play(player, 20, (1.0, 0.0, 1.0, 0.0))
    whole.receive(Elimination((1, 2)))
    before = whole.snapshot()
    whole.receive(Elimination((1, 2)))
    whole.receive(Elimination((2,)))
    assert whole.snapshot() == before
    parts.receive(Elimination((2,)))
    parts.receive(Elimination((1,)))
    assert parts.remaining == whole.remaining == (0, 3)


def test_the_last_arm_is_never_eliminated() -> None:
    for arms in [(0, 1, 2), (2, 1, 0), (1, 2, 0)]:
        player = new_player(3)
        player.receive(Elimination(arms))
        assert player.remaining == (arms[-1],)
        player.receive(Elimination(arms))
        assert player.remaining == (arms[-1],)


@pytest.mark.parametrize("arms", [(3,), (0, -1), (1, 1.0), (True,), ("0",), (1, None)], ids=repr)
def test_an_elimination_of_an_unknown_arm_changes_nothing(arms: Any) -> None:
    player = new_player(3)
    decide(player, 4)
    message = refused(player, UnknownArm, lambda: player.receive(Elimination(arms)))
    assert "from 0 to 2" in message


@pytest.mark.parametrize("window", [0.0, 60.0])
def test_with_one_arm_left_decisions_go_on_without_end_and_nothing_is_sent(window: float) -> None:
    player = new_player(2, window=window)
    first, second = Cycle(player.task).order
    tickets = decide(player, 4)
    player.receive(Elimination((first,)))
    assert (player.finished, player.status, player.remaining) == (True, "finished", (second,))
    assert groups(player) == {}  # the tally that the end cut off is discarded too
    assert play(player, 5_000, (1.0, 1.0)) == []
    assert {(ticket.arm, str(ticket)) for ticket in decide(player, 10)} == {(second, "uncounted")}
    for ticket in tickets:
        player.reward(ticket, 1.0, 0)
    assert (sum(player.decisions.seen.out), sum(player.decisions.seen.late)) == (4, 0)
    assert list(player.tick(10**9)) == []
    assert player.decisions.capacity.used == 0
    assert player.decisions.uncounted == 0  # of those that there was no memory for


def test_all_that_remain_are_candidates() -> None:
    player = new_player(3)
    assert (player.candidates(), player.finished, player.status) == ((0, 1, 2), False, "exploring")
    player.receive(Elimination((1,)))
    assert player.candidates() == player.remaining == (0, 2)
    assert not player.finished


# ---- rounding and noise


def test_a_reward_between_0_and_1_is_a_success_with_that_probability() -> None:
    # 254 coins of .25 succeed 63.5 times; further off than 45 with probability 2·exp(−2·45²/254) < 10^−6
    player = TallyPlayer(new_task(2, floor=127), 0, random.Random(1))
    tallies = play(player, 2 * 127, (0.25, 0.25))
    assert 20 < sum(tally.successes for tally in tallies) < 108


@pytest.mark.parametrize("reward", [0, 1, 0.0, 1.0, -0.0, True, False], ids=repr)
def test_nothing_is_drawn_for_a_0_or_a_1(reward: float) -> None:
    player = TallyPlayer(new_task(2), 0, Forbidden())
    first, _ = Cycle(player.task).order
    assert play(player, 3, (reward, reward)) == [Tally(first, 3 * int(reward), 3, 0)]


def test_nothing_is_drawn_for_a_reward_that_is_refused_or_ignored() -> None:
    player = TallyPlayer(new_task(3), 0, Forbidden())
    order = Cycle(player.task).order
    tickets = decide(player, 9)
    player.receive(Elimination((order[0],)))
    player.reward(tickets[0], 0.5, 0)
    player.reward(tickets[3], 0.5, 1)
    assert (sum(player.decisions.seen.out), sum(player.decisions.seen.late)) == (1, 1)
    with pytest.raises(UnknownDecision):
        player.reward(tickets[3]._replace(group=9), 0.5, 0)


def test_without_a_generator_the_systems_own_is_used() -> None:
    player = TallyPlayer(new_task(2, floor=127), 0)
    tallies = play(player, 2 * 127, (0.5, 0.5))
    # 127 fair coins: all alike with probability 2^−126
    assert all(0 < tally.successes < 127 for tally in tallies)


# The draws of a noise of +1 at budget 1: below 1 is 0; e^0 happens; e^−1 happens (0 < 1, 0 < 1 of 2, not 2 < 1 of 3:
# the third fails, an odd number), and does not again (0 < 1, not 1 < 1 of 2); the sign is 0.
PLUS_ONE: dict[str, list[int]] = {"below": [0, 0, 0, 0, 2, 0, 1], "bits": [0]}


def test_noise_is_drawn_once_when_a_tally_closes() -> None:
    rng = Scripted(**PLUS_ONE)
    player = TallyPlayer(new_task(2, privacy_budget=1.0, floor=3), 0, rng)
    first, _ = Cycle(player.task).order
    for ticket, reward in zip(decide(player, 3), (1.0, 0.0, 0.0), strict=True):
        player.reward(ticket, reward, 0)
    assert rng.below == PLUS_ONE["below"]
    assert list(player.tick(0)) == [Tally(first, 1 + 1, 3, 0)]
    assert rng.used_up
    assert list(player.tick(0)) == []  # no second draw


def test_noise_does_not_lead_out_of_the_tally() -> None:
    player = TallyPlayer(new_task(2, privacy_budget=1.0, floor=3), 0, Scripted(**PLUS_ONE))
    first, _ = Cycle(player.task).order
    assert play(player, 3, (1.0, 1.0)) == [Tally(first, 3, 3, 0)]  # 3 + 1 is clamped


def test_the_budget_is_the_one_of_the_task() -> None:
    # Budget 1/2: below 2 is 0; the rest as above makes one lap of 2, so a noise of (0 + 2·1)/1 = 2.
    player = TallyPlayer(new_task(2, privacy_budget=0.5, floor=3), 0, Scripted(**PLUS_ONE))
    first, _ = Cycle(player.task).order
    assert play(player, 3, (0.0, 0.0)) == [Tally(first, 2, 3, 0)]
