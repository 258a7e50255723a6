"""The load benchmark: its checker finds what was planted, it says what a machine lacks, and Ctrl-C leaves nothing."""

from __future__ import annotations

import importlib
import random
import resource
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from outvote.core import protocols
from outvote.core.task import Task
from outvote.log.log import Record
from outvote.log.records import Coder, DownSubject, UpSubject, task_record

ROOT = Path(__file__).parents[2]
TASK = Task(arms=2, players=["ams", "fra"], epsilon=0, delta=0.05, protocol="tally", name="shop", reward_window=1)
ID = "shop-00000001"


@pytest.fixture(name="load")
def load_package(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of `benchmarks.load`, by name."""
    monkeypatch.syspath_prepend(str(ROOT))

    def found(name: str) -> ModuleType:
        return importlib.import_module(f"benchmarks.load.{name}")

    return found


class Fleet:
    """A log, and what edges and server say of it: all is well until a test plants something."""

    def __init__(self, check: ModuleType, folder: Path) -> None:
        self.check = check
        self.log = check.Log()
        self.log.take(Record(str(DownSubject(ID, "task")), task_record(TASK), 1, 1.0))
        coder, rng = Coder(TASK), random.Random(1)
        self.lines = []
        counts = dict.fromkeys(TASK.player_names, 0)
        players = {name: protocols.player(TASK, name, rng=rng) for name in counts}
        now = 0
        while min(counts.values()) < 3:
            for name, player in players.items():
                player.reward(player.decide(now), float(rng.random() < 0.5), now)
                now += 5_000  # what is full has closed by then
                for message in player.tick(now):
                    subject, payload = str(UpSubject(name, ID, "life", message.sequence)), coder.up(message)
                    self.log.take(Record(subject, payload, self.log.records + 1, 2.0))
                    self.lines.append(f"{subject} {payload.hex()}")
                    counts[name] += 1
        self.states: dict[str, Any] = {
            name: {"incarnation": "life", "tasks": {ID: [[0, 1], False, count]}} for name, count in counts.items()
        }
        one = {
            "id": ID,
            "remaining": list(TASK.arms),
            "stopped": False,
            "messages": {"up": sum(counts.values())},
            "refused": 0,
        }
        self.tasks: dict[str, Any] = {"tasks": [one]}
        self.edges: dict[str, Any] = {"sites": [{"site": name, "messages": count} for name, count in counts.items()]}
        self._path = folder / "acknowledged.txt"

    def findings(self) -> Any:
        self._path.write_text("\n".join(self.lines), encoding="utf-8")
        found = self.check.Findings()
        self.check.check_acknowledged(found, self.log, [self._path])
        self.check.check_edges(found, self.log, self.states)
        self.check.check_server(found, self.log, self.tasks, self.edges)
        return found


@pytest.fixture
def fleet(load: Any, tmp_path: Path) -> Fleet:
    return Fleet(load("check"), tmp_path)


def test_a_fleet_that_agrees_is_clean(fleet: Fleet) -> None:
    found = fleet.findings()
    assert found.clean, found.examples
    assert found.acknowledged == found.made == found.messages == len(fleet.lines) >= 6
    assert found.states == 3  # at two edges and at the server


def test_what_is_planted_is_found_and_counted(fleet: Fleet) -> None:
    subject = fleet.lines[0].partition(" ")[0]
    fleet.lines.append(f"{UpSubject('ams', ID, 'life', 99)} 58")  # acknowledged, and not in the log
    found = fleet.findings()
    assert (found.lost, found.clean) == (1, False)
    fleet.lines[0] = f"{subject} ff"  # there with other content
    assert fleet.findings().lost == 2
    fleet.states["ams"]["tasks"][ID][2] += 2  # made by an edge, and not in the log
    assert fleet.findings().missing == 2
    fleet.tasks["tasks"][0]["messages"]["up"] += 1  # counted twice by the server, by task and by edge
    assert fleet.findings().twice == 1
    fleet.edges["sites"][0]["messages"] += 1
    assert fleet.findings().twice == 2


def test_a_record_that_is_in_the_log_twice_is_found(fleet: Fleet) -> None:
    subject, _, content = fleet.lines[0].partition(" ")
    fleet.log.take(Record(subject, bytes.fromhex(content), fleet.log.records + 1, 3.0))
    assert fleet.findings().twice >= 1


def test_an_edge_that_thinks_otherwise_or_lacks_a_task_disagrees(fleet: Fleet) -> None:
    fleet.states["ams"]["tasks"][ID][0] = [1]
    assert fleet.findings().disagreements == 1
    del fleet.states["fra"]["tasks"][ID]
    assert fleet.findings().disagreements == 2
    fleet.tasks["tasks"][0]["remaining"] = [TASK.arms[0]]
    assert fleet.findings().disagreements == 3


# ---- the commands


def test_too_few_open_files_are_found_out_before_anything_is_started(
    load: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = load("world")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 1_000))
    with pytest.raises(world.NotEnough, match=r"open files.*1,000.*ulimit -n .*--edges"):
        world.allow_files(world.Size(5_000, tasks=1, processes=4, commands=1, visits=1, events=1, tick=1))
