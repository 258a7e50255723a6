"""Plans for fleets in which sites may lie: more votes and more events, the promise in words, and what is impossible."""

from __future__ import annotations

from typing import Any

import pytest

from outvote.core.errors import InvalidTask
from outvote.core.task import Task
from outvote.planner import estimate, plan, words
from outvote.planner.question import Question, ask

SMALL: dict[str, Any] = {"means": (0.9, 0.1), "players": 6, "epsilon": 0.7}


def tasks(question: Question) -> dict[str, Task]:
    return {f"{task.protocol} {task.quorum} {task.privacy_budget}": task for task in plan.tasks(question)}


def test_every_option_tolerates_what_was_asked() -> None:
    question = ask(**SMALL, tolerate=1)
    assert question.to_json()["tolerate"] == 1
    assert {task.tolerate for task in plan.tasks(question)} == {1}
    assert {task.tolerate for task in plan.tasks(ask(**SMALL))} == {0}


def test_tolerance_costs_events_and_the_guarantee_says_of_how_many_liars_it_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(estimate, "GUARDED_WORK", 2e4)
    for name in ("dme certified None", "tally paper None"):
        found = {}
        for tolerate in (0, 1):
            question = ask(**SMALL, tolerate=tolerate)
            task = tasks(question)[name]
            of_task = estimate.of_tally if task.protocol == "tally" else estimate.of_votes
            found[tolerate] = of_task(question, task)
            promised = words.guarantee(task, found[tolerate])
            assert ("it holds even if 1 of 6 sites lie" in promised) == bool(tolerate)
        believed, guarded = found[0], found[1]
        assert believed is not None
        assert guarded is not None
        assert guarded.draws > believed.draws
        assert guarded.wrong == 0
        assert "a bound" in guarded.how or "engine core" in guarded.how


def test_what_cannot_be_tolerated_is_refused_with_why() -> None:
    with pytest.raises(InvalidTask, match="tolerate must be a whole number from 0 to 3"):
        ask(players=8, tolerate=4)


def test_votes_that_tolerate_too_few_liars_are_left_out_with_why() -> None:
    question = ask(players=8, tolerate=3)
    assert [task.protocol for task in plan.tasks(question)] == ["edme", "edme", "tally", "tally"]
    [why] = plan.left_out(question)
    assert why.startswith("dme is left out: tolerate 3 needs 4 + 3 votes against an arm, and if 3 of the 8 players")
    assert [task.protocol for task in plan.tasks(ask(players=17, tolerate=8))] == ["tally", "tally"]
    assert not list(plan.left_out(ask(players=8, tolerate=3, active_players=2)))


def test_votes_that_nobody_is_left_to_cast_never_come() -> None:
    question = ask(means=(0.9, 0.1), players=3, epsilon=0.7, tolerate=1, active_players=2)
    task = tasks(question)["dme certified None"]
    assert task.quorums == (2,)
    assert estimate.of_votes(question, task) is not None
    dead = ask(means=(0.9, 0.1), players=4, epsilon=0.7, tolerate=1, traffic=[1, 1, 0, 0], active_players=2)
    assert estimate.of_votes(dead, tasks(dead)["dme certified None"]) is None, "only two of four are ever active"
