"""Whole fleets in one process, on a clock of their own: hundreds of schedules of faults, and bugs they must find."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from amounts import FACTOR
from faults.simulated.clock import Standstill
from faults.simulated.clock import run as in_virtual_time
from faults.simulated.planted import BUGS, planted
from faults.simulated.schedule import make_schedule
from faults.simulated.world import run

ROOT = Path(__file__).parents[2]
PARTS = 8
"""Files of tests are shared out by test: so the schedules are in parts."""


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_is_lost_or_counted_twice_and_everybody_agrees(part: int) -> None:
    schedules = [make_schedule(seed) for seed in range(part, max(300, round(800 * FACTOR)), PARTS)]
    results = [run(schedule) for schedule in schedules]
    assert [(result.seed, result.findings) for result in results if result.findings] == []
    for schedule, result in zip(schedules, results, strict=True):  # who is shut out and wiped has no task to serve
        shut_out = {each.target for each in schedule.operations if each.kind == "discount"}
        assert result.decisions >= schedule.decisions * (1 - len(shut_out) / len(schedule.edges))
    assert min(result.faults.total() for result in results) >= 5
    assert sum(result.eliminations > 0 for result in results) >= len(results) / 2


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    with planted(bug):
        found = next((seed for seed in range(200) if run(make_schedule(seed)).findings), None)
    assert found is not None


def test_a_seed_gives_the_same_run_to_the_byte_in_any_process() -> None:
    seeds = (3, 4, 5)
    program = (
        "import sys; from faults.simulated.run import one\nprint(*(one(int(seed)).digest for seed in sys.argv[1:]))"
    )
    path = os.pathsep.join(str(ROOT / part) for part in ("src", "tests", ""))
    environment = os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "12345"}
    told = subprocess.run(
        [sys.executable, "-c", program, *map(str, seeds)], env=environment, capture_output=True, text=True, check=True
    )
    digests = [run(make_schedule(seed)).digest for seed in seeds]
    assert told.stdout.split() == digests
    assert len(set(digests)) == len(seeds)


def test_a_run_in_which_nothing_can_happen_any_more_ends_with_an_error() -> None:
    async def wait_for_ever() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Standstill, match="waits for ever"):
        in_virtual_time(wait_for_ever())
