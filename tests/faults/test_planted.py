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

TASKS = tuple(Planned(name, "tally", {"red": 0.5, "green": 0.5}, 0.0, 1e-9) for name in (PULSE, STANDING, "shop"))


def test_bugs_in_real_processes_are_found(nursery: Nursery, tmp_path: Path) -> None:
    operations = (Operation(0.1, "stop-task", PULSE, "s1"), Operation(0.1, "delete-task", STANDING, "s2"))
    bugs = {"s1": "pretended_stop", "e1": "forgets_nothing", "s2": "counts_twice", "e2": "counts_repeats"}
    planted = {who: f"faults.planted.{bug}" for who, bug in bugs.items()}
    schedule = Schedule(1, 1, ("e1", "e2"), ("s1", "s2"), TASKS, operations=operations, planted=planted)
    result = asyncio.run(run(schedule, tmp_path / "run", nursery, recover=2.0))
    assert {each.kind for each in result.findings} == {"lost", "counted twice", "disagreement"}
    for what in ("stop-task of pulse", "the store of e1 has something of", "s2", "e2 says [(Tally"):
        assert any(what in each.what for each in result.findings)
