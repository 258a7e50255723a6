"""Tickets, groups and windows, followed by hand; `tests/property/test_decisions.py` has every other course.

The clock starts at 10¹² ms. Windows are of 10 s, so a group closes 1 ms to 1 s after its window.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from collections.abc import Iterable
from typing import Any

import pytest

from outvote.core.decisions import GROUP_COST, LEAST_DELAY, MAX_OPEN, Capacity, Decisions, Group, Ticket
from outvote.core.errors import InvalidReward, InvalidTicket, UnknownDecision

START = 10**12
WINDOW = 10_000
LATEST = WINDOW + LEAST_DELAY
"""So long after its last decision a group is closed at the latest."""


def new(arms: int = 2, *, seed: int = 1, window: float = WINDOW / 1000, binary: bool = False) -> Decisions:
    return Decisions(arms, window, random.Random(seed), binary=binary)


def opened(decisions: Decisions, sizes: dict[int, int], *, number: int | None = None) -> Group:
    group = decisions.open(sizes, number=number)
    assert group is not None
    return group


def filled(decisions: Decisions, arm: int, size: int, now: int = START) -> list[Ticket]:
    """The tickets of a group of one arm, all of one moment."""
    group = opened(decisions, {arm: size})
    return [decisions.place(group, arm, now) for _ in range(size)]


def counts(groups: Iterable[Group]) -> list[tuple[int, dict[int, tuple[int, float]]]]:
    """The number of each group, and decisions and total of its arms."""
    return [(g.number, {arm: (count.decided, count.total) for arm, count in g.counts.items()}) for g in groups]


def restarted(decisions: Decisions, now: int, *, crashed: bool, seed: int = 2, out: Iterable[int] = ()) -> Decisions:
    """What a new process makes of a snapshot."""
    binary = decisions._binary
    again = new(len(decisions.seen.late), seed=seed, window=decisions.window / 1000, binary=binary)
    record = json.loads(json.dumps(decisions.snapshot(), allow_nan=False))
    again.restore(record, out=out)
    assert again.snapshot() == record == decisions.snapshot()
    again.resume(now, crashed=crashed)
    return again


def refused(decisions: Decisions, ticket: Ticket, now: int) -> None:
    """A reward that is not taken: one more is counted as refused, and nothing else changes."""
    before = decisions.snapshot()
    before["seen"]["refused"][ticket.arm] += 1
    with pytest.raises(UnknownDecision) as caught:
        decisions.reward(ticket, 1.0, now)
    assert "\n" not in str(caught.value)
    assert decisions.snapshot() == before


# ---- tickets


@pytest.mark.parametrize(
    "ticket",
    [
        Ticket("AAAAAAAA", 0, 0, 0, 0),
        Ticket("zZ09_-aB", 12, 3, 456, 1_700_000_000_000),
        Ticket("--------", 10**13 - 1, 10**13 - 1, 10**13 - 1, 10**13 - 1),
    ],
)
def test_a_ticket_is_a_short_text_that_can_be_read_again(ticket: Ticket) -> None:
    text = str(ticket)
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", text)
    assert Ticket.parse(text) == ticket
    assert str(Ticket.parse(text)) == text


def test_a_ticket_is_written_like_this() -> None:
    assert str(Ticket("ab_-CD09", 7, 1, 23, 1_700_000_000_123)) == "ab_-CD09.7.1.23.1700000000123"


def test_tickets_of_decisions_can_be_read_again() -> None:
    decisions = new(arms=3)
    tickets = [ticket for arm in range(3) for ticket in filled(decisions, arm, 5, START + arm)]
    assert [Ticket.parse(str(ticket)) for ticket in tickets] == tickets
    assert len(set(map(str, tickets))) == 15


def test_the_text_of_an_uncounted_ticket_says_nothing_else() -> None:
    assert {str(Ticket.uncounted(arm)) for arm in range(9)} == {"uncounted"}
    assert Ticket.uncounted(4).arm == 4
    assert Ticket.parse("uncounted") is None


WHOLE = "ab_-CD09.7.1.23.1700000000123"
MALFORMED: list[object] = [
    *(WHOLE[:length] for length in range(len(WHOLE))),
    *(WHOLE[cut:] for cut in range(1, len(WHOLE))),
    *("uncounted"[:length] for length in range(1, 9)),
    *("Uncounted", "uncounted\n", " uncounted", "uncounted.", "UNCOUNTED"),
    *(WHOLE + more for more in ("\n", " ", "0", ".", ".0", "\0", "é")),
    *(more + WHOLE for more in ("\n", " ", "0", ".")),
    *("A" * 10_000, WHOLE * 400, "9" * 65),
    *(f"ab_-CD09.{numbers}.1700000000123" for numbers in ("07.1.23", "7.01.23", "7.1.023", "-7.1.23", "+7.1.23")),
    *(f"ab_-CD09.{numbers}.1700000000123" for numbers in ("7.1", "7.1.2.3", "7.1.2_3", "7.1.٣", "7..23", "7.1.1e3")),
    *("ab_-CD09.10000000000000.1.2.1700000000123", "ab+-CD09.7.1.23.1700000000123", "ab_-CD0é.7.1.23.1700000000123"),
    *(0, 7, -1, 10**5000, 1.5, math.nan, math.inf, None, True, False, b"uncounted", WHOLE.encode(), [], [WHOLE], {}),
]


@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))
def test_what_is_no_ticket_is_refused_in_one_short_line(text: object) -> None:
    with pytest.raises(InvalidTicket) as caught:
        Ticket.parse(text)
    message = str(caught.value)
    assert message.startswith("must be the ticket that the decision came with, got ")
    assert "\n" not in message
    assert len(message) < 200


def test_something_nested_is_refused_however_deep() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidTicket, match="got list"):
        Ticket.parse(deep)
    while deep:  # taken apart by hand: so deep a list must not be left to the interpreter
        deep = deep.pop()


def test_every_process_has_a_name_of_its_own() -> None:
    runs = {filled(new(seed=seed), 0, 1)[0].run for seed in range(100)}
    assert len(runs) == 100
    assert len({filled(Decisions(2, 10.0), 0, 1)[0].run for _ in range(100)}) == 100  # the system's generator


# ---- the window of a reward


@pytest.mark.parametrize(("after", "counts_as"), [(0, 1.0), (1, 1.0), (WINDOW - 1, 1.0), (WINDOW, 1.0)])
def test_a_reward_counts_until_the_last_millisecond_of_its_window(after: int, counts_as: float) -> None:
    decisions = new()
    (ticket,) = filled(decisions, 0, 1)
    decisions.reward(ticket, 1.0, START + after)
    assert counts(decisions.close_due(START + LATEST)) == [(0, {0: (1, counts_as)})]
    assert (decisions.seen.rewards, decisions.seen.successes, decisions.seen.late) == ([1, 0], [1, 0], [0, 0])


@pytest.mark.parametrize("after", [WINDOW + 1, WINDOW + 500, LATEST, 10 * WINDOW])
def test_a_reward_after_its_window_is_late_and_ignored(after: int) -> None:
    decisions = new()
    (ticket,) = filled(decisions, 0, 1)
    decisions.reward(ticket, 1.0, START + after)
    assert (decisions.seen.late, decisions.seen.rewards) == ([1, 0], [0, 0])
    assert counts(decisions.close_due(START + LATEST)) == [(0, {0: (1, 0.0)})]


def test_a_reward_counts_in_its_last_millisecond_though_groups_close_in_it() -> None:
    for seed in range(3_000):  # some of them draw the shortest delay
        decisions = new(seed=seed)
        (ticket,) = filled(decisions, 0, 1)
        assert decisions.close_due(START + WINDOW) == []
        decisions.reward(ticket, 1.0, START + WINDOW)
        assert decisions.seen.rewards == [1, 0]


def test_the_window_is_that_of_the_decision_whatever_its_group_does() -> None:
    decisions = new()
    group = opened(decisions, {0: 3})
    tickets = [decisions.place(group, 0, START + wait) for wait in (0, 6_000, 12_000)]
    decisions.reward(tickets[0], 1.0, START + WINDOW + 1)  # late, though its group closes in 11 s
    decisions.reward(tickets[1], 1.0, START + 6_000 + WINDOW)
    assert decisions.close_due(START + 12_000 + WINDOW) == []
    assert counts(decisions.close_due(START + 12_000 + LATEST)) == [(0, {0: (3, 1.0)})]
    assert decisions.seen.late == [1, 0]


def test_with_a_window_of_0_a_reward_counts_before_the_clock_moves_on() -> None:
    decisions = new(window=0.0)
    (ticket,) = filled(decisions, 0, 1, 5)
    decisions.reward(ticket, 1.0, 5)
    assert counts(decisions.close_due(5)) == [(0, {0: (1, 1.0)})]
    (ticket,) = filled(decisions, 0, 1, 5)
    decisions.reward(ticket, 1.0, 6)
    assert counts(decisions.close_due(6)) == [(1, {0: (1, 0.0)})]
    assert decisions.seen.late == [1, 0]


# ---- what counts


@pytest.mark.parametrize("order", list(itertools.permutations([0.0, 0.25, 0.75])))
def test_the_largest_reward_counts_in_whatever_order_they_come(order: tuple[float, ...]) -> None:
    decisions = new()
    (ticket,) = filled(decisions, 0, 1)
    for reward in order * 2:
        decisions.reward(ticket, reward, START)
    assert counts(decisions.close_due(START + LATEST)) == [(0, {0: (1, 0.75)})]
    assert (decisions.seen.rewards, decisions.seen.successes) == ([1, 0], [1, 0])


def test_a_larger_reward_that_is_late_does_not_count() -> None:
    decisions = new()
    (ticket,) = filled(decisions, 0, 1)
    decisions.reward(ticket, 0.25, START + WINDOW)
    decisions.reward(ticket, 1.0, START + WINDOW + 1)
    assert counts(decisions.close_due(START + LATEST)) == [(0, {0: (1, 0.25)})]


def test_repeats_change_nothing() -> None:
    decisions = new()
    tickets = filled(decisions, 0, 3)
    for ticket in tickets[:2]:
        decisions.reward(ticket, 0.5, START)
    before = decisions.snapshot()
    for ticket in tickets[:2] * 1_000:
        decisions.reward(ticket, 0.5, START + 1)
        decisions.reward(ticket, 0.25, START + 1)
    assert decisions.snapshot() == before
    assert counts(decisions.close_due(START + LATEST)) == [(0, {0: (3, 1.0)})]


def test_a_reward_of_0_is_a_reward_and_no_success() -> None:
    decisions = new()
    tickets = filled(decisions, 0, 2)
    decisions.reward(tickets[0], 0.0, START)
    assert (decisions.seen.decisions, decisions.seen.rewards, decisions.seen.successes) == ([2, 0], [1, 0], [0, 0])
    assert counts(decisions.close_due(START + LATEST)) == [(0, {0: (2, 0.0)})]


REFUSED_REWARDS = [1.2, 1.0000001, -0.1, -5e-324, math.nan, math.inf, -math.inf, "1", "", None, [], {}, 1j]


@pytest.mark.parametrize("reward", REFUSED_REWARDS, ids=repr)
def test_a_reward_that_is_no_number_from_0_to_1_changes_nothing(reward: Any) -> None:
    decisions = new()
    (ticket,) = filled(decisions, 0, 1)
    before = decisions.snapshot()
    late = ticket._replace(at=0)
    for named in (ticket, late, ticket._replace(place=1), ticket._replace(arm=9), Ticket.uncounted(0)):
        with pytest.raises(InvalidReward) as caught:
            decisions.reward(named, reward, START)
        assert str(caught.value) == f"a reward must be a number from 0 to 1, got {reward!r}"
    assert decisions.snapshot() == before


# ---- what is refused, and what is ignored


def test_a_reward_for_another_run_group_place_or_arm_is_refused() -> None:
    decisions = new(arms=3)
    tickets = filled(decisions, 0, 2)
    other = filled(new(arms=3, seed=5), 0, 2)
    open_one = opened(decisions, {1: 3})
    placed = decisions.place(open_one, 1, START)
    for ticket in (
        other[0],
        tickets[0]._replace(run="AAAAAAAA"),
        tickets[0]._replace(run=""),
        tickets[0]._replace(group=1),
        tickets[0]._replace(group=2),
        tickets[0]._replace(group=10**12),
        tickets[0]._replace(place=2),
        tickets[0]._replace(place=-1),
        tickets[0]._replace(place=10**12),
        tickets[0]._replace(arm=1),
        tickets[0]._replace(arm=2),
        placed._replace(place=1),  # is to come
        placed._replace(arm=0),
    ):
        refused(decisions, ticket, START)
    assert counts(decisions.close_due(START + LATEST)) == [(0, {0: (2, 0.0)})]


@pytest.mark.parametrize("arm", [-1, 2, 10**12])
def test_a_reward_for_an_arm_that_the_task_does_not_have_changes_nothing(arm: int) -> None:
    decisions = new()
    (ticket,) = filled(decisions, 0, 1)
    before = decisions.snapshot()
    for now in (START, START + WINDOW + 1):
        with pytest.raises(UnknownDecision):
            decisions.reward(ticket._replace(arm=arm), 1.0, now)
    assert decisions.snapshot() == before


def test_what_is_unknown_and_late_is_late() -> None:
    decisions = new()
    (ticket,) = filled(decisions, 0, 1)
    decisions.close_due(START + LATEST)
    for late in (ticket, ticket._replace(run="AAAAAAAA"), ticket._replace(group=99), ticket._replace(place=9)):
        decisions.reward(late, 1.0, START + WINDOW + 1)
    assert (decisions.seen.late, decisions.seen.refused) == ([4, 0], [0, 0])


def test_a_reward_for_an_uncounted_decision_is_ignored() -> None:
    decisions = new()
    filled(decisions, 0, 1)
    before = decisions.snapshot()
    decisions.reward(Ticket.uncounted(0), 1.0, START)
    assert decisions.snapshot() == before


def test_a_reward_of_an_arm_that_is_out_is_counted_apart_and_ignored() -> None:
    decisions = new()
    (ticket,) = filled(decisions, 0, 1)
    decisions.drop([0])
    decisions.reward(ticket, 1.0, START + WINDOW)
    assert decisions.seen.out == [1, 0]
    decisions.reward(ticket, 1.0, START + WINDOW + 1)
    assert (decisions.seen.out, decisions.seen.late, decisions.seen.rewards) == ([1, 0], [1, 0], [0, 0])
    refused(decisions, ticket._replace(run="AAAAAAAA"), START)
    assert decisions.close_due(START + LATEST) == []


def test_a_decision_of_before_a_restart_whose_arm_falls_after_it_is_out() -> None:
    decisions = new()
    (ticket,) = filled(decisions, 0, 1)
    for crashed in (False, True):
        again = restarted(decisions, START + 1, crashed=crashed)
        filled(again, 1, 1, START + 2)  # by now it has a name of its own
        again.drop([0])
        again.reward(ticket, 1.0, START + 3)
        assert (again.seen.out, again.seen.refused) == ([1, 0], [0, 0])


# ---- when groups close


def test_a_group_never_closes_before_one_window_after_its_last_decision_and_soon_after_it() -> None:
    for seed in range(300):
        decisions = new(seed=seed)
        group = opened(decisions, {0: 2})
        decisions.place(group, 0, START)
        decisions.reward(decisions.place(group, 0, START + 7_000), 1.0, START + 7_000)
        assert decisions.close_due(START + 7_000 + WINDOW) == []
        assert len(decisions.close_due(START + 7_000 + LATEST)) == 1


@pytest.mark.parametrize("answered", [0, 1, 2, 3])
def test_what_was_answered_does_not_change_when_a_group_closes(answered: int) -> None:
    decisions = new(seed=3)
    tickets = filled(decisions, 0, 3)
    due = decisions.snapshot()["groups"][0][2]
    for ticket in tickets[:answered]:
        decisions.reward(ticket, 1.0, START)
    assert decisions.close_due(due - 1) == []
    assert counts(decisions.close_due(due)) == [(0, {0: (3, answered)})]


@pytest.mark.parametrize(("window", "longest"), [(0.001, 1_000), (1.0, 1_000), (10.0, 1_000), (600.0, 60_000)])
def test_delays_are_spread_from_0_to_a_tenth_of_the_window_or_a_second(window: float, longest: int) -> None:
    decisions = new(window=window)
    for _ in range(500):
        filled(decisions, 0, 1)
    delays = [due - START - round(1000 * window) for _, _, due, _ in decisions.snapshot()["groups"]]
    assert min(delays) > 0
    assert max(delays) <= longest
    # 500 of them: the first and the last twentieth are empty with probability .95^500 < 10^−11
    assert min(delays) < longest / 20
    assert max(delays) > longest * 19 / 20
    assert len(set(delays)) > 250  # of 1000: 393 different ones are expected


def test_an_open_group_never_closes() -> None:
    decisions = new()
    group = opened(decisions, {0: 3})
    for _ in range(2):
        decisions.reward(decisions.place(group, 0, START), 1.0, START)
    assert decisions.close_due(START + 1_000 * WINDOW) == []
    decisions.place(group, 0, START + 2_000 * WINDOW)
    assert decisions.close_due(START + 2_001 * WINDOW) == []
    assert counts(decisions.close_due(START + 2_000 * WINDOW + LATEST)) == [(0, {0: (3, 2.0)})]


def test_groups_close_once_in_the_order_of_their_times() -> None:
    decisions = new(arms=1)
    for wait in (5_000, 0, 2_500):
        filled(decisions, 0, 1, START + wait)
    assert [group.number for group in decisions.close_due(START + 10 * WINDOW)] == [1, 2, 0]
    assert decisions.close_due(START + 10 * WINDOW) == []
    assert list(decisions.groups) == []
    assert decisions.open_decisions == 0


def test_a_group_may_have_several_arms() -> None:
    decisions = new(arms=3)
    group = opened(decisions, {0: 1, 2: 2})
    first = decisions.place(group, 2, START)
    second = decisions.place(group, 0, START)
    assert decisions.close_due(START + 10 * WINDOW) == []  # one is to come
    third = decisions.place(group, 2, START + 1)
    assert [(t.arm, t.place) for t in (first, second, third)] == [(2, 0), (0, 0), (2, 1)]
    for ticket in (second, third):
        decisions.reward(ticket, 1.0, START + 1)
    assert counts(decisions.close_due(START + 1 + LATEST)) == [(0, {0: (1, 1.0), 2: (2, 1.0)})]


def test_arms_that_are_out_leave_their_groups_and_the_others_go_on() -> None:
    decisions = new(arms=3)
    tickets = filled(decisions, 0, 2)
    both = opened(decisions, {0: 2, 1: 1})
    decisions.place(both, 0, START)
    kept = decisions.place(both, 1, START)
    decisions.drop([0])
    decisions.drop([0, 2])
    assert decisions.open_decisions == 1
    decisions.reward(kept, 1.0, START)
    decisions.reward(tickets[0], 1.0, START)
    assert decisions.seen.out == [1, 0, 0]
    # The decision that the group waited for will not come: it waits one window more, from when the clock is next told.
    assert decisions.close_due(START + 1) == []
    assert decisions.close_due(START + 1 + WINDOW) == []
    assert counts(decisions.close_due(START + 1 + LATEST)) == [(1, {1: (1, 1.0)})]
    assert decisions.capacity.used == 0


def test_a_group_whose_last_decisions_fell_out_closes_after_a_restart_too() -> None:
    decisions = new()
    group = opened(decisions, {0: 2, 1: 1})
    decisions.reward(decisions.place(group, 1, START), 1.0, START)
    decisions.drop([0])
    again = restarted(decisions, START + 1, crashed=False, out=[0])
    assert again.close_due(START + WINDOW) == []
    assert counts(again.close_due(START + 1 + LATEST)) == [(0, {1: (1, 1.0)})]


# ---- memory


def test_memory_is_taken_by_groups_and_decisions_and_given_back_when_they_close() -> None:
    decisions = new()
    group = opened(decisions, {0: 3})
    assert decisions.capacity.used == GROUP_COST
    for taken in range(1, 4):
        decisions.place(group, 0, START)
        assert decisions.capacity.used == GROUP_COST + taken
    filled(decisions, 1, 5, START + WINDOW)
    assert decisions.capacity.used == 2 * GROUP_COST + 8
    decisions.close_due(START + LATEST)
    assert decisions.capacity.used == GROUP_COST + 5
    decisions.close_due(START + WINDOW + LATEST)
    assert decisions.capacity.used == 0


def test_memory_is_given_back_when_arms_drop() -> None:
    decisions = new()
    filled(decisions, 0, 3)
    decisions.place(opened(decisions, {0: 3}), 0, START)
    filled(decisions, 1, 5)
    decisions.drop([0])
    assert decisions.capacity.used == GROUP_COST + 5
    decisions.drop([0, 1])
    assert decisions.capacity.used == 0
    assert decisions.close_due(START + LATEST) == []  # nothing is given back twice
    assert decisions.capacity.used == 0


def test_no_group_is_opened_where_memory_is_full_and_again_when_there_is_some() -> None:
    decisions = new()
    decisions.share(Capacity(2 * GROUP_COST))
    filled(decisions, 0, GROUP_COST)
    before = decisions.snapshot()
    assert decisions.open({1: 3}) is None
    assert decisions.snapshot() == before
    decisions.close_due(START + LATEST)
    assert opened(decisions, {1: 3}).number == 1


def test_players_share_memory() -> None:
    capacity, one, other = Capacity(3 * GROUP_COST), new(), new()
    filled(one, 0, 10)  # before they share
    for each in (one, other):
        each.share(capacity)
    assert capacity.used == GROUP_COST + 10
    filled(other, 0, GROUP_COST)
    assert one.open({0: 1}) is None
    assert other.open({0: 1}) is None
    one.close_due(START + LATEST)
    assert one.open({0: 1}) is not None


def test_memory_is_taken_again_after_a_restart() -> None:
    decisions = new()
    filled(decisions, 0, 3)
    decisions.place(opened(decisions, {1: 4}), 1, START)
    for crashed in (False, True):
        again = restarted(decisions, START, crashed=crashed)
        assert again.capacity.used == decisions.capacity.used == 2 * GROUP_COST + 4
        capacity = Capacity()
        again.share(capacity)
        assert (capacity.used, capacity.limit) == (2 * GROUP_COST + 4, MAX_OPEN)


# ---- rewards between 0 and 1 where only successes are counted


def test_a_repeated_reward_is_rounded_as_before() -> None:
    decisions = new(binary=True)
    tickets = filled(decisions, 0, 200)
    for ticket in tickets:
        decisions.reward(ticket, 0.3, START)
    before = decisions.snapshot()
    for ticket in tickets:
        for _ in range(1_000 // 20):
            decisions.reward(ticket, 0.3, START + 1)
    for _ in range(1_000):
        decisions.reward(tickets[0], 0.3, START + 1)
    assert decisions.snapshot() == before


def test_the_mean_of_many_decisions_is_that_of_their_rewards() -> None:
    decisions = new(binary=True)
    tickets = filled(decisions, 0, 20_000)
    for ticket in tickets:
        decisions.reward(ticket, 0.3, START)
    [group] = decisions.close_due(START + LATEST)
    decided, total = group.counts[0].decided, group.counts[0].total
    # Hoeffding: off by more than .02 with probability 2·exp(−2·20000·.02²) < 10^−6
    assert abs(total / decided - 0.3) < 0.02
    assert total == int(total)


def test_of_several_rewards_the_largest_sets_the_chance() -> None:
    decisions = new(binary=True)
    tickets = filled(decisions, 0, 20_000)
    for ticket in tickets:
        for reward in (0.1, 0.3, 0.2):
            decisions.reward(ticket, reward, START)
    [group] = decisions.close_due(START + LATEST)
    decided, total = group.counts[0].decided, group.counts[0].total
    assert abs(total / decided - 0.3) < 0.02  # as above; three tries would give .496


@pytest.mark.parametrize("reward", [0, 1, 0.0, 1.0, -0.0, True, False], ids=repr)
def test_0_and_1_are_themselves(reward: float) -> None:
    decisions = new(binary=True)
    for ticket in filled(decisions, 0, 100):
        decisions.reward(ticket, reward, START)
    assert counts(decisions.close_due(START + LATEST)) == [(0, {0: (100, 100 * reward)})]


def test_where_means_are_counted_nothing_is_rounded() -> None:
    decisions = new()
    for ticket in filled(decisions, 0, 4):
        decisions.reward(ticket, 0.375, START)
    assert counts(decisions.close_due(START + LATEST)) == [(0, {0: (4, 1.5)})]


# ---- restarts


def test_after_a_clean_stop_groups_go_on() -> None:
    decisions = new()
    group = opened(decisions, {0: 3})
    tickets = [decisions.place(group, 0, START) for _ in range(2)]
    decisions.reward(tickets[0], 1.0, START)
    again = restarted(decisions, START + 1, crashed=False)
    (group,) = again.groups
    assert (group.left, group.due) == (1, None)
    third = again.place(group, 0, START + 2)
    assert (third.run, third.place) == (tickets[0].run, 2)
    for ticket in (tickets[1], third):
        again.reward(ticket, 1.0, START + 3)
    assert again.close_due(START + 2 + WINDOW) == []
    assert counts(again.close_due(START + 2 + LATEST)) == [(0, {0: (3, 3.0)})]


def test_after_a_crash_saved_groups_take_no_more_decisions_and_close_one_window_later() -> None:
    decisions = new()
    group = opened(decisions, {0: 3})
    tickets = [decisions.place(group, 0, START) for _ in range(2)]
    again = restarted(decisions, START + 5_000, crashed=True)
    (saved,) = again.groups
    assert saved.left == 0
    again.reward(tickets[0], 1.0, START + WINDOW)
    again.reward(tickets[1], 1.0, START + WINDOW + 1)
    assert again.seen.late == [1, 0]
    assert again.close_due(START + 5_000 + WINDOW) == []
    assert counts(again.close_due(START + 5_000 + LATEST)) == [(0, {0: (2, 1.0)})]


def test_after_a_crash_what_was_not_saved_is_refused() -> None:
    decisions = new()
    group = opened(decisions, {0: 3})
    kept = decisions.place(group, 0, START)
    saved = restarted(decisions, START, crashed=True)
    lost = [decisions.place(group, 0, START), *filled(decisions, 1, 2)]
    filled(saved, 1, 2)  # has the number, the arm and the places of the one that was lost
    for ticket in lost:
        refused(saved, ticket, START)
    saved.reward(kept, 1.0, START)
    assert sorted(counts(saved.close_due(START + LATEST))) == [(0, {0: (1, 1.0)}), (1, {1: (2, 0.0)})]


def test_a_group_that_waits_closes_after_a_restart_when_it_would_have_closed() -> None:
    decisions = new()
    filled(decisions, 0, 1)
    due = decisions.snapshot()["groups"][0][2]
    for crashed in (False, True):
        again = restarted(decisions, START + 5_000, crashed=crashed)
        assert again.close_due(due - 1) == []
        assert len(again.close_due(due)) == 1
    assert len(restarted(decisions, START + 10 * WINDOW, crashed=True).close_due(START + 10 * WINDOW)) == 1


def test_a_reward_that_is_repeated_after_a_restart_may_count_again_but_never_beyond_the_decisions() -> None:
    decisions = new()
    tickets = filled(decisions, 0, 3)
    for ticket in tickets[:2]:
        decisions.reward(ticket, 1.0, START)
    for _ in range(3):
        decisions = restarted(decisions, START, crashed=True)
        decisions.reward(tickets[0], 1.0, START)
    assert counts(decisions.close_due(START + LATEST)) == [(0, {0: (3, 3.0)})]


@pytest.mark.parametrize("crashed", [False, True])
@pytest.mark.parametrize("back", [1, 5_000, WINDOW, 10 * WINDOW, START])
def test_if_the_clock_was_set_back_before_a_restart_groups_close_soon_all_the_same(back: int, crashed: bool) -> None:
    for seed in range(20):
        decisions = new(seed=seed)
        tickets = filled(decisions, 0, 1)
        now = START - back
        again = restarted(decisions, now, crashed=crashed, seed=seed)
        again.reward(tickets[0], 1.0, now)
        assert again.close_due(now + WINDOW) == []
        assert counts(again.close_due(now + LATEST)) == [(0, {0: (1, 1.0)})]
        if now + LATEST <= START + WINDOW:
            refused(again, tickets[0], now + LATEST)
        assert again.close_due(START + 10 * LATEST) == []  # once


def test_if_the_clock_was_set_forward_windows_are_over() -> None:
    decisions = new()
    (ticket,) = filled(decisions, 0, 1)
    again = restarted(decisions, START + 10 * WINDOW, crashed=False)
    again.reward(ticket, 1.0, START + 10 * WINDOW)
    assert again.seen.late == [1, 0]
    assert counts(again.close_due(START + 10 * WINDOW)) == [(0, {0: (1, 0.0)})]


def test_after_a_restart_numbers_and_counters_go_on() -> None:
    decisions = new()
    filled(decisions, 0, 2)
    decisions.uncounted = 7
    again = restarted(decisions, START, crashed=False)
    assert (opened(again, {0: 1}).number, again.uncounted, again.seen.decisions) == (1, 7, [2, 0])
    assert opened(again, {0: 1}, number=40).number == 40
    assert opened(again, {0: 1}).number == 41


# ---- snapshots


def test_a_snapshot_does_not_grow_with_decisions_or_rewards() -> None:
    small, large = new(), new()
    for decisions, size in (small, 10), (large, 10_000):
        group = opened(decisions, {0: 20_000})
        for _ in range(size):
            ticket = decisions.place(group, 0, START)
            for reward in (0.25, 0.5):
                decisions.reward(ticket, reward, START)
    assert len(json.dumps(large.snapshot())) < len(json.dumps(small.snapshot())) + 40  # digits


def test_a_snapshot_holds_counts_and_does_not_tell_which_decision_was_rewarded() -> None:
    records = []
    for rewarded in ((0, 3), (1, 2)):
        decisions = new()
        group = opened(decisions, {0: 5})
        tickets = [decisions.place(group, 0, START + wait) for wait in range(4)]
        for place in rewarded:
            decisions.reward(tickets[place], 1.0, START + 10 * place)
        records.append(decisions.snapshot())
    assert records[0] == records[1]
    assert records[0]["groups"] == [[tickets[0].run, 0, None, [[0, 1, 4, 2.0]]]]


def test_a_snapshot_does_not_change_as_decisions_go_on() -> None:
    decisions = new()
    tickets = filled(decisions, 0, 2)
    snapshot = decisions.snapshot()
    written = json.dumps(snapshot)
    decisions.reward(tickets[0], 1.0, START)
    filled(decisions, 1, 2)
    decisions.drop([0])
    assert json.dumps(snapshot) == written
