"""`python -m faults.run` as a user meets it: what it writes, and what Ctrl-C leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from faults.nursery import TESTS
from network.processes import DEADLINE, until

# Seed 32: one node, an edge that loses its store, and a task that is killed.
COMMAND = [sys.executable, "-m", "faults.run", "--workers", "1", "--seed", "32"]


def started(out: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "--out", str(out), *more],
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def at_work_in(folder: Path) -> list[str]:
    """The commands of all processes that name this folder."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            command = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(folder) in command:
                found.append(command)
    return found


def test_a_report_is_written_and_a_second_call_goes_on_after_it(tmp_path: Path) -> None:
    for schedules in ("1", "1"):
        said, _ = started(tmp_path, "--schedules", schedules, "--resume").communicate(timeout=4 * DEADLINE)
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["runs"], report["faults"], report["found"]) == (1, {"wipe-edge": 1}, [])
    assert (report["operations"], report["operations_acknowledged"]) == ({"kill-task": 1}, 1)
    assert "[1/1]" not in said  # it was there already
    assert "1 runs from seed 32" in (tmp_path / "report.md").read_text()


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    running = started(tmp_path, "--schedules", "50")
    until(lambda: (tmp_path / "run-32" / "e1.db").exists(), "a run is under way")
    running.send_signal(signal.SIGINT)
    said, _ = running.communicate(timeout=4 * DEADLINE)
    assert "interrupted: the report is of the runs so far" in said
    assert list(tmp_path.glob("run-*")) == []
    until(lambda: at_work_in(tmp_path) == [], f"nobody is left: {at_work_in(tmp_path)}")
    assert json.loads((tmp_path / "report.json").read_text())["runs"] == 0
