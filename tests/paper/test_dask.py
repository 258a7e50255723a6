"""A real Dask scheduler and real workers give the results of one process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from outvote.cli.main import main
from outvote.simulation.executors import open_executor
from outvote.simulation.settings import read_settings
from outvote.simulation.sweep import sweep

DASK = [sys.executable, "-m", "dask"]


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("dask")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, "cwd": folder}
    local = ["--host", "127.0.0.1"]
    with subprocess.Popen([*DASK, "scheduler", *local, "--port", "0", "--no-dashboard"], **quiet) as process:  # type: ignore[call-overload]
        assert process.stderr is not None
        address = ""
        for line in process.stderr:
            if "Scheduler at:" in line:
                address = line.split()[-1]
                break
        assert address.startswith("tcp://")
        with subprocess.Popen(
            [*DASK, "worker", address, *local, "--nworkers", "2", "--nthreads", "1", "--no-dashboard"], **quiet
        ) as workers:  # type: ignore[call-overload]
            try:
                yield address
            finally:
                workers.terminate()
                process.terminate()


def test_a_cluster_gives_what_one_process_gives(scheduler: str) -> None:
    cells = [
        read_settings(protocol=protocol, players=4, horizon=20_000, trials=12, grid=4, epsilon=0.9)
        for protocol in ("dme", "me-local", "ucb-unlimited")
    ]
    with open_executor(dask=scheduler) as executor:
        assert executor is not None
        there = sweep(cells, executor=executor)
    here = sweep(cells)
    assert [r.to_json(per_trial=True) | {"seconds": 0} for r in there] == [
        r.to_json(per_trial=True) | {"seconds": 0} for r in here
    ]


def test_the_command_line_takes_an_address(scheduler: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--horizon", "1e4", "--trials", "4", "--dask", scheduler, "--json"]) == 0
    assert '"trials": 4' in capsys.readouterr().out
