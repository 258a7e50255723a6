"""The short form of `make faults`: every kind of fault and all that operators do, once, with fixed seeds; and what must
hold of schedules.

In each run nothing that was acknowledged is lost, nothing counts twice, and all agree; what a fault meets depends on
the machine, what must come of it does not. A winner may be wrong with its δ, and is not looked at here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from faults import spaces
from faults.injection import Injection
from faults.nursery import Nursery
from faults.one_run import Result, run
from faults.operations import NEW, OPERATIONS, Operation
from faults.schedule import KINDS, PULSE, STANDING, Fault, Planned, Schedule, make_schedule

EDGES = ("e1", "e2", "e3", "e4", "e5")
SERVERS = ("s1", "s2")
TASKS = (
    Planned(PULSE, "tally", {"red": 0.5, "green": 0.5, "blue": 0.5}, 0.0, 1e-9),
    Planned("shop", "tally", {"red": 0.1, "green": 0.8, "blue": 0.3}, 0.0, 0.1),
)
OPERATED = (*TASKS, Planned(STANDING, "tally", {"red": 0.5, "green": 0.5}, 0.0, 1e-9, fallback="green"))
LATER = (Planned(NEW, "tally", {"red": 0.2, "green": 0.8}, 0.0, 0.1),)
VOTES = (TASKS[0], Planned("vote", "dme", {"red": 0.9, "green": 0.1}, 0.95, 0.2))
SEVERAL = (TASKS[0], Planned("vote", "edme", {"red": 0.9, "green": 0.1}, 0.95, 0.2))

ALONE = (
    Fault(0.2, "kill-edge", "e1", 0.3),
    Fault(0.4, "drop", "e*|n*", 0.8, 0.5),
    Fault(0.5, "one-way-down", "e2|n1", 0.6, 0.2),
    Fault(0.9, "kill-node", "n1", 0.3),
    Fault(1.3, "repeat", "*|n*", 0.6, 0.7),
    Fault(1.4, "kill-server", "s*", 0.2),
    Fault(1.6, "exchange", "s*|n*", 0.6, 0.7),
    Fault(1.8, "pause-edge", "e3", 0.4),
    Fault(2.0, "one-way-up", "e1|n*", 0.5, 0.8),
    *(Fault(0.3 + 0.37 * turn, "kill-edge", "e2", 0.1) for turn in range(6)),
)
STORES = (
    Fault(0.6, "corrupt-store", "e1", 0.1, 0.1),
    Fault(0.7, "truncate-store", "e2", 0.1, 0.6),
    Fault(0.8, "copied-store", "e3", 0.1),
    Fault(0.3, "set-back-store", "e4", 0.4),
    Fault(0.9, "wipe-edge", "e5", 0.2),
    Fault(1.0, "pause-server", "s1", 0.5),
    Fault(1.2, "cut-server", "s2|n*", 0.5, 0.9),
)
TWINS = (
    Fault(0.4, "twin-edge", "e2", 0.1),
    Fault(0.6, "delay", "*|n*", 0.6, 0.5),
    Fault(0.8, "cut-edge", "e3|n*", 0.6, 0.1),
    Fault(1.0, "pause-node", "n1", 0.4),
)
THREE = (
    Fault(0.4, "kill-leader", "", 0.5),
    Fault(0.6, "kill-together", "e1|s1|n2", 0.4),
    Fault(1.2, "vanish-node", "n3", 0.7),
)
LOST_DISK = (Fault(0.4, "wipe-node", "n2", 0.3),)
PARTED = (
    Fault(0.3, "cut-node", "n1", 0.8),
    Fault(0.4, "cut-edge", "e1|n*", 0.8, 0.9),
    Fault(0.5, "one-way-down", "e2|n*", 0.7, 0.2),
    Fault(0.6, "cut-server", "s1|n*", 0.5, 0.9),
    Fault(1.1, "one-way-up", "e3|n*", 0.6, 0.8),
    Fault(1.3, "one-way-node", "n2", 0.8),
)
FULL = (
    Fault(0.5, "full-disk-edge", "e2", 0.6),
    Fault(0.6, "full-disk-node", "n1", 0.4),
)
IN_TROUBLE = (
    Operation(0.6, "kill-task", STANDING, "s1"),
    Operation(0.9, "stop-task", "shop", "s2", hangs_up=True),
    Operation(1.4, "revive-task", STANDING, "s2"),
    Operation(1.5, "create-task", NEW, "s1"),
)
AWAY = (
    Operation(0.7, "delete-task", STANDING, "s1", hangs_up=True),
    Operation(1.2, "create-task", STANDING, "s2", hangs_up=True),
)
SHUT_OUT = (Operation(0.8, "discount", "e2", "s2"),)
SHORT = {
    "alone": Schedule(1, 1, EDGES[:3], SERVERS, OPERATED, ALONE, operations=IN_TROUBLE, later=LATER),
    "stores": Schedule(2, 1, EDGES, SERVERS, OPERATED, STORES, operations=AWAY),
    "twins": Schedule(3, 1, EDGES[:3], SERVERS, SEVERAL, TWINS),
    "three nodes": Schedule(4, 3, EDGES[:3], SERVERS, VOTES, THREE),
    "three nodes with credentials": Schedule(
        5, 3, EDGES[:3], SERVERS, TASKS, LOST_DISK, secured=True, operations=SHUT_OUT
    ),
}
AS_ROOT = {
    "namespaces": Schedule(6, 3, EDGES[:3], SERVERS, TASKS, PARTED, spaces=True),
    "full disks": Schedule(7, 1, EDGES[:3], SERVERS, TASKS, FULL),
}


def kinds(schedules: Iterable[Schedule]) -> set[str]:
    found = list(schedules)
    return {one.kind for each in found for one in each.faults} | {one.kind for each in found for one in each.operations}


def checked(schedule: Schedule, folder: Path, nursery: Nursery) -> Result:
    result = asyncio.run(run(schedule, folder / "run", nursery, number=schedule.seed))
    assert result.findings == []
    assert sum(result.faults.values()) == len(schedule.faults)
    assert result.operations_acknowledged == len(schedule.operations)  # the fleet was well again in the end
    assert result.operations_repeated >= sum(each.hangs_up for each in schedule.operations)
    assert result.records > 10
    return result


@pytest.mark.parametrize("name", SHORT)
def test_nothing_acknowledged_is_lost_nothing_counts_twice_and_all_agree(
    name: str, nursery: Nursery, tmp_path: Path
) -> None:
    result = checked(SHORT[name], tmp_path, nursery)
    assert (result.acknowledged > result.records) == (not SHORT[name].secured)  # what is ciphered cannot be read


@pytest.mark.parametrize("name", AS_ROOT)
def test_the_same_between_network_namespaces_and_on_full_disks(name: str, nursery: Nursery, tmp_path: Path) -> None:
    cannot_mount = None if spaces.may_mount() else "only who may mount can have a full disk"
    reason = spaces.why_not() if AS_ROOT[name].spaces else cannot_mount
    if reason is not None:
        pytest.skip(reason)
    checked(AS_ROOT[name], tmp_path, nursery)


def test_every_kind_of_fault_is_in_the_short_form_and_in_the_long_one_and_can_be_done() -> None:
    every = {*KINDS, *OPERATIONS}
    assert kinds([*SHORT.values(), *AS_ROOT.values()]) == every
    assert kinds(map(make_schedule, range(300))) == every
    assert all(hasattr(Injection, "_" + kind.replace("-", "_")) for kind in KINDS)


def test_a_seed_gives_the_same_schedule_each_time_and_another_another() -> None:
    assert make_schedule(11) == make_schedule(11) != make_schedule(12)
    assert make_schedule(11).to_json() == make_schedule(11).to_json()


def test_what_no_cluster_survives_is_not_asked_of_one() -> None:
    """While a node that lost its disk copies the log, no other node may be lost."""
    for schedule in map(make_schedule, range(500)):
        of_nodes = [each.kind for each in schedule.faults if each.kind.endswith(("-node", "-leader", "-together"))]
        if "wipe-node" in of_nodes:
            assert of_nodes == ["wipe-node"]


def test_operators_touch_what_is_there_or_what_they_have_created_and_only_a_secured_fleet_can_discount() -> None:
    for schedule in map(make_schedule, range(300)):
        there = {each.name for each in schedule.tasks}
        for each in schedule.operations:
            if each.kind == "discount":
                assert schedule.secured
                assert each.target in schedule.edges
            elif each.kind == "create-task":
                assert each.target not in there
                assert schedule.planned(each.target)
                there.add(each.target)
            else:
                assert each.target in there - {PULSE}
                there -= {each.target} if each.kind == "delete-task" else set()


def test_without_root_nothing_is_asked_for_that_needs_it() -> None:
    for schedule in (make_schedule(seed, disks=False, namespaces=False) for seed in range(200)):
        assert not schedule.spaces
        assert not any(each.kind.startswith("full-disk") for each in schedule.faults)
