"""Bugs that were put in on purpose, into real processes of real runs: the checker must find each of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from faults.nursery import Nursery
from faults.one_run import run
from faults.operations import Operation
from faults.schedule import PULSE, STANDING, Planned, Schedule

TASKS = (Planned(PULSE, "tally", {"red": 0.5, "green": 0.5}, 0.0, 1e-9),)
TOUCHED = (*TASKS, Planned(STANDING, "tally", {"red": 0.5, "green": 0.5}, 0.0, 1e-9))


@pytest.mark.parametrize(
    ("who", "bug", "found"),
    [
        ("e1", "early_acknowledgement", "lost"),
        ("e1", "sent_twice", "counted twice"),
        ("s2", "counts_twice", "disagreement"),
    ],
)
def test_a_planted_bug_is_found(nursery: Nursery, tmp_path: Path, who: str, bug: str, found: str) -> None:
    schedule = Schedule(1, 1, ("e1", "e2"), ("s1", "s2"), TASKS, planted={who: f"faults.planted.{bug}"})
    result = asyncio.run(run(schedule, tmp_path / "run", nursery, recover=2.0))
    assert found in {each.kind for each in result.findings}


def test_a_stop_that_was_only_pretended_and_a_task_that_is_not_forgotten_are_found(
    nursery: Nursery, tmp_path: Path
) -> None:
    operations = (Operation(0.1, "stop-task", PULSE, "s1"), Operation(0.1, "delete-task", STANDING, "s2"))
    planted = {"s1": "faults.planted.pretended_stop", "e1": "faults.planted.forgets_nothing"}
    schedule = Schedule(1, 1, ("e1", "e2"), ("s1", "s2"), TOUCHED, operations=operations, planted=planted)
    result = asyncio.run(run(schedule, tmp_path / "run", nursery, recover=2.0))
    assert {each.kind for each in result.findings} == {"lost", "disagreement"}
    assert any("stop-task of pulse" in each.what for each in result.findings)
    assert any("the store of e1 has something of" in each.what for each in result.findings)


def test_the_same_run_without_a_bug_is_well(nursery: Nursery, tmp_path: Path) -> None:
    schedule = Schedule(1, 1, ("e1", "e2"), ("s1", "s2"), TASKS)
    result = asyncio.run(run(schedule, tmp_path / "run", nursery))
    assert result.findings == []
    assert result.acknowledged > result.records > 0
