"""What users take down, and what a tally may say of it: every fault of a tally, by hand.

The window is of 10 s. Users ask at 100 and hear at 101: until when exactly a reward counts they do not know.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from faults.told import Notes, Told, Visit, rewards
from outvote.core.decisions import Ticket
from outvote.core.messages import Tally

SOON, DOUBTFUL, LATE = (102.0, 103.0), (109.0, 111.0), (112.0, 113.0)
"""When a reward is sent and answered."""


def visit(place: int, run: str = "AAAAAAAA") -> Visit:
    return Visit(Ticket(run, 5, 0, place, 0), 100.0, 101.0)


def noted(*visits: Visit) -> Notes:
    found = Notes(10.0)
    for each in visits or map(visit, range(3)):
        found.decided(each)
    return found


def verdict(told: Told, successes: int, trials: int = 3, stored: float = 120.0, *, arm: int = 0) -> str:
    return told.verdict(5, [(Tally(arm, successes, trials, 5), stored)])


@pytest.mark.parametrize(
    ("times", "status", "allowed"),
    [
        (SOON, 204, {1}),
        (SOON, 0, {0, 1}),
        (SOON, 409, {0}),
        (DOUBTFUL, 204, {0, 1}),
        (DOUBTFUL, 409, {0}),
        (LATE, 204, {0}),
    ],
)
def test_a_reward_counts_once_if_it_came_in_time(times: tuple[float, float], status: int, allowed: set[int]) -> None:
    notes = noted()
    for _ in range(3):
        notes.rewarded(visit(1), 1.0, *times, status, {1})
        notes.rewarded(visit(2), 0.0, *times, status, {1})
    told = notes.told(restarted=False)
    found = {successes: verdict(told, successes) for successes in range(3)}
    assert {successes for successes, each in found.items() if not each} == allowed
    assert found[2] == "counted twice"
    assert set(told.refused) == (
        {str(visit(1).ticket), str(visit(2).ticket)} if (times, status) == (SOON, 409) else set()
    )


def test_a_tally_speaks_of_all_decisions_and_of_no_more_and_not_before_their_windows_are_over() -> None:
    told = noted().told(restarted=False)
    assert [verdict(told, 0, trials) for trials in (2, 3, 4)] == ["lost", "", "counted twice"]
    assert [verdict(told, 0, stored=stored) for stored in (109.9, 110.0)] == ["wrong", ""]
    assert verdict(told, 0, arm=1) == "wrong"
    assert told.verdict(6, [(Tally(0, 0, 3, 6), 120.0)]) == "counted twice"
    assert told.verdict(5, [(Tally(0, 0, 3, 5), 120.0)] * 2) == "counted twice"


def test_of_an_edge_that_was_started_again_less_is_known() -> None:
    notes = noted()
    notes.rewarded(visit(2), 1.0, *SOON, 409, {1})
    for life in (1, 2):
        notes.rewarded(visit(1), 1.0, *SOON, 204, {life})
    told = notes.told(restarted=True)
    assert told.refused == []
    assert [verdict(told, successes) for successes in range(4)] == ["", "", "", "counted twice"]
    assert [verdict(told, 0, trials) for trials in (1, 4)] == ["", "counted twice"]
    assert verdict(told, 1, 1) == "counted twice"  # it speaks of the first decision alone


def test_a_decision_that_nobody_heard_of_may_be_in_any_tally_and_has_no_reward() -> None:
    notes = noted()
    notes.unseen = 2
    told = notes.told(restarted=False)
    assert [verdict(told, 0, trials) for trials in (2, 3, 5, 6)] == ["", "", "", "counted twice"]
    assert [told.verdict(6, [(Tally(0, successes, 2, 6), 120.0)]) for successes in range(2)] == ["", "counted twice"]


def test_each_of_several_processes_is_believed_once() -> None:
    told = noted().told(restarted=False)
    told.add(noted(visit(0, "BBBBBBBB")).told(restarted=False))
    assert told.verdict(5, [(Tally(0, 0, 3, 5), 120.0), (Tally(0, 0, 1, 5), 120.0)]) == ""
    assert told.verdict(5, [(Tally(0, 0, 1, 5), 120.0), (Tally(0, 0, 3, 5), 120.0)]) == ""
    assert told.verdict(5, [(Tally(0, 0, 3, 5), 120.0)] * 2) == "counted twice"


def test_rewards_are_sent_once_or_again_or_late_or_never_and_the_largest_in_time_is_the_outcome() -> None:
    rng = random.Random(1)
    kinds: Counter[str] = Counter()
    for _ in range(1_000):
        sent = rewards(rng, True)
        kinds["never" if not sent else "late" if sent[0][0] > 1 else f"{len(sent)} times"] += 1
        in_time = [reward for part, reward in sent if part <= 1]
        assert max(in_time, default=1.0) == 1.0
    assert min(kinds.values()) > 20
    assert len(kinds) == 5
