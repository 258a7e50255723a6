"""Bugs that were put in on purpose, into real processes of real runs: the checker must find each of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from faults.nursery import Nursery
from faults.one_run import run
from faults.schedule import PULSE, Planned, Schedule

TASKS = (Planned(PULSE, "tally", {"red": 0.5, "green": 0.5}, 0.0, 1e-9),)


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


def test_the_same_run_without_a_bug_is_well(nursery: Nursery, tmp_path: Path) -> None:
    schedule = Schedule(1, 1, ("e1", "e2"), ("s1", "s2"), TASKS)
    result = asyncio.run(run(schedule, tmp_path / "run", nursery))
    assert result.findings == []
    assert result.acknowledged > result.records > 0
