"""The Median Elimination player, followed by hand; `tests/property/test_decisions.py` has every other course.

Most tests give the player epochs that are short enough to write down. With ε = 8 in place of the task's own and
η = .9, 4/ε_l² is 1, 16/9, 256/81 and η_l is .45, .225, .1125, so the pulls of an epoch are:

    K   epoch 1                epoch 2                      epoch 3
    2   ln( 6/.45) = 2.59: 3   16/9·ln( 6/.225) = 5.84: 6   256/81·ln( 6/.1125) = 12.57: 13
    3   ln( 9/.45) = 2.99: 3   16/9·ln( 9/.225) = 6.56: 7   256/81·ln( 9/.1125) = 13.85: 14
    4   ln(12/.45) = 3.28: 4   16/9·ln(12/.225) = 7.07: 8   256/81·ln(12/.1125) = 14.76: 15
    5   ln(15/.45) = 3.51: 4   16/9·ln(15/.225) = 7.47: 8   256/81·ln(15/.1125) = 15.46: 16
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from outvote.core.decisions import Capacity, Ticket
from outvote.core.errors import InvalidEvent, InvalidReward, UnknownArm, UnknownDecision
from outvote.core.messages import Elimination, Vote
from outvote.core.task import Task
from outvote.core.votes.player import MedianPlayer
from outvote.core.votes.schedule import Schedule


def short(arms: int, log_eta: float = math.log(0.9)) -> Schedule:
    return Schedule(arms, 8.0, log_eta)


def new_player(arms: int, *, window: float = 0.0) -> MedianPlayer:
    """A player of `dme` with the short epochs of the table above."""
    task = Task(arms=arms, players=2, epsilon=0.8, delta=0.9, reward_window=window, protocol="dme")
    return MedianPlayer(task, "site", random.Random(1), schedules=(short(arms),))


def play(player: MedianPlayer, turns: int, worth: Sequence[float]) -> list[Vote]:
    """Decide and reward at once; arm k always pays worth[k]."""
    votes: list[Vote] = []
    for _ in range(turns):
        ticket = player.decide(0)
        player.reward(ticket, worth[ticket.arm], 0)
        votes += player.tick(0)
    return votes


def decide(player: MedianPlayer, turns: int, now: int = 0) -> list[Ticket]:
    return [player.decide(now) for _ in range(turns)]


def sizes(player: MedianPlayer) -> list[tuple[int, int, int]]:
    """The arm, decisions to come and decisions made of each group that is not closed."""
    return [(arm, count.left, count.decided) for g in player.decisions.groups for arm, count in g.counts.items()]


def test_the_short_epochs_are_as_long_as_the_table_says() -> None:
    table = {2: [3, 6, 13], 3: [3, 7, 14], 4: [4, 8, 15], 5: [4, 8, 16]}
    assert {arms: [short(arms).pulls(epoch) for epoch in (1, 2, 3)] for arms in table} == table


# ---- decision 3: decisions and rewards are apart

REFUSED_REWARDS = [1.2, 1.0000001, -0.1, -5e-324, math.nan, math.inf, -math.inf, "1", "", None, [], {}, 1j]


@pytest.mark.parametrize("reward", REFUSED_REWARDS, ids=repr)
def test_a_reward_that_is_no_number_from_0_to_1_changes_nothing(reward: Any) -> None:
    player = new_player(3)
    play(player, 8, (1.0, 0.5, 0.0))
    ticket = player.decide(0)  # its reward would end the epoch
    before = player.snapshot()
    with pytest.raises(InvalidReward) as caught:
        player.reward(ticket, reward, 0)
    assert str(caught.value) == f"a reward must be a number from 0 to 1, got {reward!r}"
    assert player.snapshot() == before
    player.reward(ticket, 0.0, 0)
    assert list(player.tick(0)) == [Vote(2, 0, 0)]


@pytest.mark.parametrize("arm", [-1, 3, 100])
def test_a_reward_for_an_unknown_arm_changes_nothing(arm: int) -> None:
    player = new_player(3)
    ticket = player.decide(0)
    before = player.snapshot()
    with pytest.raises(UnknownDecision):
        player.reward(ticket._replace(arm=arm), 1.0, 0)
    assert player.snapshot() == before


def test_a_refused_reward_for_an_eliminated_arm_is_not_even_counted() -> None:
    player = new_player(3)
    ticket = player.decide(0)
    player.receive(Elimination((0,)))
    with pytest.raises(InvalidReward):
        player.reward(ticket, 2.0, 0)
    assert (player.decisions.seen.out, player.decisions.seen.late) == ([0, 0, 0], [0, 0, 0])
    player.reward(ticket, 1.0, 0)
    assert player.decisions.seen.out == [1, 0, 0]


# ---- with a window: groups as long as an epoch needs


def test_the_decisions_of_one_arm_are_one_group_until_its_epoch_has_what_it_needs() -> None:
    player = new_player(2, window=60.0)
    tickets = decide(player, 2 * (3 + 6 + 13))
    named = [(ticket.arm, ticket.group, ticket.place) for ticket in tickets]
    assert named[:8] == [(0, 0, 0), (1, 1, 0), (0, 0, 1), (1, 1, 1), (0, 0, 2), (1, 1, 2), (0, 2, 0), (1, 3, 0)]
    assert Counter(ticket.group for ticket in tickets) == {0: 3, 1: 3, 2: 6, 3: 6, 4: 13, 5: 13}


def test_without_a_window_each_decision_is_counted_by_itself() -> None:
    player = new_player(2)
    assert [(t.arm, t.group, t.place) for t in decide(player, 4)] == [(0, 0, 0), (1, 1, 0), (0, 2, 0), (1, 3, 0)]


def test_a_group_of_an_arm_that_is_no_candidate_has_the_pulls_that_are_still_missing() -> None:
    # K = 5: epochs of 4, 8 and 16 pulls. Arms 3 and 4 leave with the first, arm 2 with the second.
    player = new_player(5, window=60.0)
    opened: dict[int, list[int]] = {arm: [] for arm in range(5)}
    known: set[int] = set()
    now = 0
    for _ in range(5 * (4 + 8 + 16)):
        ticket = player.decide(now)
        if ticket.group not in known and ticket.group >= 0:
            known.add(ticket.group)
            opened[ticket.arm] += [left + made for arm, left, made in sizes(player)[-1:] if arm == ticket.arm]
        player.reward(ticket, 1.0 - ticket.arm / 4, now)
        if all(group.left == 0 for group in player.decisions.groups):  # the others may not begin before these are told
            now += 100_000
            player.tick(now)
    assert [opened[arm][:3] for arm in range(5)] == [[4, 8, 16]] * 3 + [[4, 8, 8]] * 2


def test_a_group_counts_as_a_whole_when_it_closes_and_what_was_not_answered_counts_0() -> None:
    player = new_player(2, window=60.0)
    tickets = decide(player, 6, now=1_000)
    for ticket in tickets[:2]:  # one of arm 0, one of arm 1
        player.reward(ticket, 1.0 - ticket.arm / 2, 1_000)
    assert list(player.tick(61_000)) == []
    assert (player.pulls(0), player.pulls(1)) == (0, 0)
    assert list(player.tick(67_000)) == [Vote(1, 0, 0)]  # 1/3 and .5/3
    assert player.finished
    assert player.snapshot()["pulls"] == [3, 3]
    assert player.snapshot()["totals"] == [1.0, 0.5]


def test_decisions_are_uncounted_when_nothing_is_left_to_learn() -> None:
    player = new_player(2, window=60.0)
    for ticket in decide(player, 6):
        player.reward(ticket, 1.0 - ticket.arm, 0)
    (ahead,) = decide(player, 1)
    assert list(player.tick(66_000)) == [Vote(1, 0, 0)]
    assert player.finished
    assert sizes(player) == []
    assert [str(ticket) for ticket in decide(player, 1_000)] == ["uncounted"] * 1_000
    before = player.snapshot()
    for arm in (0, 1):
        player.reward(Ticket.uncounted(arm), 1.0, 66_000)
    assert player.snapshot() == before
    assert player.decisions.uncounted == 0  # of those that there was no memory for
    player.reward(ahead._replace(at=66_000), 1.0, 66_000)
    assert player.decisions.seen.out == [1, 0]
    assert list(player.tick(10**9)) == []


@pytest.mark.parametrize(("ahead", "pulls"), [(0, [0, 0]), (3 * 7, [0, 7])])
def test_an_epoch_that_an_elimination_completes_ends_with_the_next_group_or_tick(ahead: int, pulls: list[int]) -> None:
    player = new_player(3, window=60.0)
    decide(player, 8)  # arm 2 lacks the last of three
    assert list(player.tick(70_000)) == []
    decide(player, 1 + ahead, now=70_000)  # perhaps also the seven of the next epoch
    player.receive(Elimination((2,)))
    assert (player.epoch(), player.pulls(0), player.pulls(1)) == (1, 3, 3)
    assert list(player.tick(140_000 if ahead else 70_000)) == []
    assert (player.epoch(), [player.pulls(0), player.pulls(1)]) == (2, pulls)


def test_without_memory_decisions_go_on_uncounted_and_count_again_when_there_is_some() -> None:
    player = new_player(2, window=60.0)
    player.decisions.share(Capacity(100))
    tickets = decide(player, 8)
    assert [ticket.group for ticket in tickets] == [0, 1, 0, 1, 0, 1, -1, -1]
    assert [ticket.arm for ticket in tickets] == [0, 1] * 4
    assert player.decisions.uncounted == 2
    for ticket in tickets:
        player.reward(ticket, 0.5, 0)
    assert list(player.tick(66_000)) == []
    assert player.epoch() == 2
    assert [(ticket.group, ticket.place) for ticket in decide(player, 2, now=66_000)] == [(2, 0), (3, 0)]
    assert player.decisions.uncounted == 2


# ---- decision 4: the length of an epoch


def test_an_epoch_of_a_task_is_as_long_as_the_paper_says() -> None:
    # K = 2, ε = .8, δ = .9, N_γ = 2: η = δ^(2/2) = .9, ε_1 = .2, η_1 = .45: 100·ln(6/.45) = 259.03
    # ε_2 = .15, η_2 = .225: 177.78·ln(6/.225) = 583.71
    player = MedianPlayer(Task(arms=2, players=2, epsilon=0.8, delta=0.9, protocol="dme"), 0)
    assert play(player, 2 * 260 - 1, (0.5, 0.5)) == []
    assert (player.epoch(), player.pulls(0), player.pulls(1)) == (1, 260, 259)
    assert play(player, 1, (0.5, 0.5)) == []
    assert (player.epoch(), player.pulls(0), player.pulls(1)) == (2, 0, 0)
    assert play(player, 2 * 584 - 1, (0.5, 0.0)) == []
    assert play(player, 1, (0.5, 0.0)) == [Vote(1, 0, 0)]


# ---- decision 5: the end of an epoch


@pytest.mark.parametrize(
    ("worth", "voted"),
    [
        # odd count: the median is the middle mean, which stays
        ((1.0, 0.5, 0.0), [2]),
        ((0.25, 1.0, 0.0, 0.75, 0.5), [2, 0]),
        # ties at the median stay
        ((1.0, 1.0, 0.0), [2]),
        ((0.5, 1.0, 0.0, 0.5, 0.5), [2]),
        # nobody is strictly below
        ((1.0, 0.0, 0.0), []),
        ((0.5, 0.5, 0.5), []),
        # even count: the median is the mean of the middle two
        ((1.0, 0.0), [1]),
        ((1.0, 0.75, 0.5, 0.25), [3, 2]),
        ((1.0, 0.5, 0.5, 0.0), [3]),
        # equal means leave in the order of their index
        ((0.0, 1.0, 0.0, 1.0), [0, 2]),
        ((0.5, 0.25, 1.0, 0.25, 0.75), [1, 3]),
    ],
)
def test_candidates_strictly_below_the_median_are_voted_out_the_worst_first(
    worth: tuple[float, ...], voted: list[int]
) -> None:
    arms = len(worth)
    player = new_player(arms)
    first = short(arms).pulls(1)
    assert play(player, arms * first - 1, worth) == []
    assert play(player, 1, worth) == [Vote(arm, 0, sequence) for sequence, arm in enumerate(voted)]
    assert player.candidates() == tuple(arm for arm in range(arms) if arm not in voted)
    assert player.epoch() == 2


def test_pulls_restart_for_former_candidates_and_go_on_for_the_others() -> None:
    player = new_player(5)
    worth = (1.0, 0.75, 0.5, 0.25, 0.0)
    # epoch 1: four of each; median .5
    assert play(player, 20, worth) == [Vote(4, 0, 0), Vote(3, 0, 1)]
    assert [player.pulls(arm) for arm in range(5)] == [0, 0, 0, 0, 0]
    assert [player.mean(arm) for arm in range(5)] == [0.0, 0.0, 0.0, 0.0, 0.0]
    # epoch 2: eight of each; candidates 0, 1, 2, median .75
    assert play(player, 40, worth) == [Vote(2, 0, 2)]
    assert [player.pulls(arm) for arm in range(5)] == [0, 0, 0, 8, 8]
    assert [player.mean(arm) for arm in range(5)] == [0.0, 0.0, 0.0, 0.25, 0.0]
    # epoch 3: sixteen of each; 3 and 4 had eight already, so arm 2 is the last to get there
    assert play(player, 77, worth) == []
    assert [player.pulls(arm) for arm in range(5)] == [16, 16, 15, 23, 23]
    assert play(player, 1, worth) == [Vote(1, 0, 3)]
    assert [player.pulls(arm) for arm in range(5)] == [0, 0, 16, 23, 23]
    assert player.finished


# ---- decision 6: votes and eliminations


@pytest.mark.parametrize("arms", [(3,), (-1,), (1, 7), (0.5,), ("1",), (None,)], ids=repr)
def test_an_elimination_of_an_unknown_arm_changes_nothing(arms: Any) -> None:
    player = new_player(3)
    before = player.snapshot()
    with pytest.raises(UnknownArm, match="from 0 to 2"):
        player.receive(Elimination(arms))
    assert player.snapshot() == before


# ---- what people ask


@pytest.mark.parametrize("arm", [-1, 3, True, "0"], ids=repr)
def test_questions_about_unknown_arms_are_refused(arm: Any) -> None:
    player = new_player(3)
    for question in (player.pulls, player.mean, player.arm_state):
        with pytest.raises(InvalidEvent, match="unknown arm"):
            question(arm)
