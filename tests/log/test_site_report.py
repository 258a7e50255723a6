"""What a site tells of its decisions and rewards: powers of ten and warnings, and nothing of fewer than a hundred."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from outvote.core.decisions import Decisions
from outvote.core.errors import MalformedMessage
from outvote.core.task import Task
from outvote.edge.site import Edge
from outvote.edge.store import EdgeStore
from outvote.log.catch_up import Question, encode, read_question
from outvote.log.records import task_record
from outvote.log.site_report import LEAST, Level, Notice, SiteReport, report_of, without_rewards

MOST: Final = 1_000_000_000


def seen(
    decisions: int = 1_000,
    rewards: int = 500,
    successes: int = 100,
    late: int = 0,
    refused: int = 0,
    uncounted: int = 0,
) -> Decisions:
    """Of two arms: all but one of everything is of the first."""
    made = Decisions(2, 60.0)
    of = {"decisions": decisions, "rewards": rewards, "successes": successes, "late": late, "refused": refused}
    made.seen.restore({"out": [0, 0], **{name: [count - (count > 0), int(count > 0)] for name, count in of.items()}})
    made.uncounted = uncounted
    return made


def notices(decisions: Decisions, *, window_passed: bool = True) -> tuple[Notice, ...]:
    report = report_of(decisions, window_passed=window_passed)
    assert report is not None
    return report.notices


@pytest.mark.parametrize(
    ("made", "told"), [(100, 100), (999, 100), (1_000, 1_000), (99_999, 10_000), (10**9, MOST), (10**12, MOST)]
)
def test_decisions_are_told_as_a_power_of_ten(made: int, told: Level) -> None:
    assert report_of(seen(made), window_passed=True) == SiteReport(told)


def test_of_fewer_than_a_hundred_decisions_nothing_is_told_whatever_is_wrong() -> None:
    wrong = seen(LEAST - 2, rewards=0, successes=0, late=50, refused=50, uncounted=1)
    assert report_of(wrong, window_passed=True) is None


def test_a_site_that_never_had_memory_is_told_of() -> None:
    assert "no_memory" in notices(seen(0, rewards=0, successes=0, uncounted=LEAST))


def test_a_site_without_rewards_is_told_of_once_they_had_time_to_come() -> None:
    assert notices(seen(rewards=0, successes=0), window_passed=False) == ()
    assert notices(seen(rewards=0, successes=0)) == ("no_rewards",)
    assert notices(seen(rewards=1, successes=0)) == ()


def test_a_site_that_has_seen_successes_only_is_told_of_after_a_hundred_rewards() -> None:
    assert notices(seen(rewards=99, successes=99)) == ()
    assert notices(seen(rewards=100, successes=100)) == ("only_successes",)
    assert notices(seen(rewards=100, successes=99)) == ()


@pytest.mark.parametrize(("kind", "notice"), [("late", "late_rewards"), ("refused", "refused_rewards")])
def test_one_reward_in_twenty_that_is_late_or_refused_is_told(kind: str, notice: Notice) -> None:
    assert notices(seen(rewards=190, **{kind: 9})) == ()
    assert notices(seen(rewards=190, **{kind: 10})) == (notice,)


def test_decisions_that_were_not_counted_are_told() -> None:
    assert notices(seen(uncounted=1)) == ("no_memory",)


# ---- in a question of catch-up

REPORT = {"decisions": 100, "notices": ["no_rewards"]}


def question(**reports: object) -> bytes:
    return json.dumps({"incarnation": "life", "tasks": {}, "reports": reports}).encode()


def test_a_report_arrives_as_it_was_sent_and_a_question_without_one_says_nothing_of_it() -> None:
    asked = Question("life", {"shop-1": 2}, {"shop-1": SiteReport(100, ("no_rewards",)), "web-1": SiteReport(MOST)})
    assert read_question(encode(asked)) == asked
    assert json.loads(encode(asked))["reports"] == {"shop-1": REPORT, "web-1": {"decisions": MOST}}
    assert json.loads(encode(Question("life", {}))) == {"incarnation": "life", "tasks": {}}


@pytest.mark.parametrize(
    "report",
    [
        None,
        7,
        [],
        {},
        *({**REPORT, "decisions": decisions} for decisions in (0, 99, 101, 10**10, -100, 100.5, "100", None, True)),
        *({**REPORT, "notices": notices} for notices in (None, "no_rewards", ["made_up"], [7], ["no_rewards"] * 6)),
        {**REPORT, "rewards": 7},
    ],
)
def test_a_question_with_a_report_that_is_none_is_refused(report: Any) -> None:
    read_question(question(**{"shop-1": REPORT}))
    with pytest.raises(MalformedMessage, match="reports"):
        read_question(question(**{"shop-1": report}))


@pytest.mark.parametrize("task_id", ["", "a.b", "*", "a b", "x" * 81, "shop-1\n"])
def test_a_question_with_a_report_of_what_can_be_no_task_is_refused(task_id: str) -> None:
    with pytest.raises(MalformedMessage, match="reports"):
        read_question(question(**{task_id: REPORT}))


@pytest.mark.parametrize("reports", [None, [], 7, "shop-1"])
def test_a_question_with_reports_that_are_no_object_is_refused(reports: object) -> None:
    with pytest.raises(MalformedMessage, match="reports"):
        read_question(json.dumps({"incarnation": "life", "tasks": {}, "reports": reports}).encode())


def test_of_a_task_with_a_privacy_budget_nothing_is_told_that_depends_on_rewards(tmp_path: Path) -> None:
    """The site itself has every warning."""
    told = []
    for budget in (None, 1.0):
        task = Task(arms=2, players=1, epsilon=0, delta=0.1, protocol="tally", reward_window=1.0, privacy_budget=budget)
        with EdgeStore(tmp_path / f"{budget}.db") as store:
            edge = Edge("paris", store, clock=lambda: 0.0)
            edge.on_record("outvote.live.task-1.task", task_record(task))
            for _ in range(LEAST):
                edge.reward(edge.find("task"), edge.decide(edge.find("task")), 1.0)
            assert (edge.find("task").report(edge.now()) or SiteReport(100)).notices == ("only_successes",)
            told.append(edge._reports()["task-1"])
    assert told == [SiteReport(100, ("only_successes",)), SiteReport(100)]
    every = SiteReport(100, get_args(Notice))
    assert without_rewards(every) == SiteReport(100, ("no_memory",))
