"""Bugs put into real processes: the checker must find them by what servers say, and in the log and the stores.

`faults.simulated.planted` has more of them.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from faults.nursery import Nursery
from faults.one_run import run
from faults.operations import Operation
from faults.schedule import PULSE, STANDING, Planned, Schedule

TASKS = (Planned(PULSE, "tally", {"red": 0.5, "green": 0.5}, 0.0, 1e-9),)
TOUCHED = (*TASKS, Planned(STANDING, "tally", {"red": 0.5, "green": 0.5}, 0.0, 1e-9))


def test_a_server_that_counts_twice_is_found(nursery: Nursery, tmp_path: Path) -> None:
    schedule = Schedule(1, 1, ("e1", "e2"), ("s1", "s2"), TASKS, planted={"s2": "faults.planted.counts_twice"})
    result = asyncio.run(run(schedule, tmp_path / "run", nursery, recover=2.0))
    assert "disagreement" in {each.kind for each in result.findings}


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
