"""Plans for fleets in which sites may lie: more votes and more events, the promise in words, and what is impossible."""

from __future__ import annotations

from typing import Any

import pytest

from outvote.core.task import Task
from outvote.planner import plan, tally
from outvote.planner.families import of
from outvote.planner.question import Question, ask

SMALL: dict[str, Any] = {"means": (0.9, 0.1), "sites": 6, "epsilon": 0.7}


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
    monkeypatch.setattr(tally, "GUARDED_WORK", 2e4)
    for name in ("dme certified None", "tally None None"):
        found = {}
        for tolerate in (0, 1):
            question = ask(**SMALL, tolerate=tolerate)
            task = tasks(question)[name]
            found[tolerate] = of(task).estimate(question, task)
            promised = plan.Option(task, found[tolerate], None).guarantee
            assert ("it holds even if 1 of 6 sites lie" in promised) == bool(tolerate)
        believed, guarded = found[0], found[1]
        assert guarded.draws > believed.draws
        assert guarded.wrong == 0


def test_votes_that_tolerate_too_few_liars_are_left_out_with_why() -> None:
    question = ask(sites=8, tolerate=3)
    assert [task.protocol for task in plan.tasks(question)] == ["edme", "edme", "tally", "tally"]
    [why] = plan.left_out(question)
    assert why.startswith(
        "dme is left out: if the 3 sites that may lie said nothing, the other 5 could not cast enough"
    )
    assert [task.protocol for task in plan.tasks(ask(sites=17, tolerate=8))] == ["tally", "tally"]
    assert not list(plan.left_out(ask(sites=8, tolerate=3, active_sites=2)))


def test_votes_that_nobody_is_left_to_cast_never_come() -> None:
    question = ask(means=(0.9, 0.1), sites=3, epsilon=0.7, tolerate=1, active_sites=2)
    task = tasks(question)["dme certified None"]
    assert task.quorums == (2,)
    assert of(task).estimate(question, task).ends
    dead = ask(means=(0.9, 0.1), sites=4, epsilon=0.7, tolerate=1, activity=[1, 1, 0, 0], active_sites=2)
    assert not of(task).estimate(dead, tasks(dead)["dme certified None"]).ends, "only two of four are ever active"
