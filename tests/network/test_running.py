"""The commands as operators start them: a server with its engine, an edge, a task, events over HTTP, and the end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from outvote.client import Client, EdgeError

DEADLINE = 30.0
RATES = {"red": 20, "green": 80, "blue": 40}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "outvote.cli.main", *arguments]


def started(*arguments: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """A command that runs on, and the line with which it says that it is ready."""
    process = subprocess.Popen(command(*arguments, "--json"), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())


def gone(pid: int) -> bool:
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_server_an_edge_and_a_task_find_the_best_variant_and_leave_nothing_behind(tmp_path: Path) -> None:
    server, ready = started("server", "--store", str(tmp_path / "engine"), "--port", "0", "--engine-port", "0")
    admin, nats = ready["urls"]["server"], ready["urls"]["nats"]
    edge, told = started("edge", "ams", "--nats", nats, "--store", str(tmp_path / "ams.db"), "--port", "0")
    try:
        asked = [
            "--name",
            "shop",
            "--arms",
            "red,green,blue",
            "--players",
            "1",
            "--epsilon",
            "0",
            "--protocol",
            "tally",
        ]
        subprocess.run(command("task", "create", "--server", admin, *asked), check=True, capture_output=True)
        show = command("task", "show", "shop", "--server", admin, "--json")
        deadline = time.monotonic() + DEADLINE
        events, winner = 0, None
        with Client(told["urls"]["edge"]) as client:
            while winner is None:
                assert time.monotonic() < deadline
                try:
                    with client.decision("shop") as decision:
                        events += 1
                        decision.reward((events * 7919) % 100 < RATES[decision.arm])
                except EdgeError as error:
                    if error.status != 404:  # the edge has not heard of the task yet
                        raise
                if events % 200 == 199:
                    winner = json.loads(subprocess.run(show, check=True, capture_output=True).stdout)["winner"]
        assert winner == "green"
    finally:
        for process in (edge, server):
            process.send_signal(signal.SIGTERM)
            process.wait(DEADLINE)
            assert process.stdout is not None
            process.stdout.close()
    assert (edge.returncode, server.returncode) == (0, 0)
    assert all(gone(pid) for pid in (*ready["pids"].values(), *told["pids"].values()))
