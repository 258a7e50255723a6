"""`python -m faults.run` as a user meets it: what it writes, and what Ctrl-C leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from faults.nursery import PATH
from helpers.processes import DEADLINE

# Seed 32: one node, an edge that loses its store, and a task that is killed.
COMMAND = [sys.executable, "-m", "faults.run", "--workers", "1", "--seed", "32"]


def started(out: Path, *more: str) -> subprocess.Popen[str]:
    path = os.pathsep.join(filter(None, (PATH, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [*COMMAND, "--out", str(out), *more],
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_report_is_written_and_a_second_call_goes_on_after_it(tmp_path: Path) -> None:
    for schedules in ("1", "1"):
        said, _ = started(tmp_path, "--schedules", schedules, "--resume").communicate(timeout=4 * DEADLINE)
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["runs"], report["faults"], report["found"]) == (1, {"wipe-edge": 1}, [])
    assert (report["operations"], report["operations_acknowledged"]) == ({"kill-task": 1}, 1)
    assert "[1/1]" not in said  # it was there already
    assert "1 runs from seed 32" in (tmp_path / "report.md").read_text()
