"""What several files of this folder start from."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser.conftest import chromium
from helpers.processes import Running, Start, an_edge, commands, request

__all__ = ["chromium"]

ROOT = Path(__file__).parents[2]
JS = Path(__file__).parent / "js"


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("server")
    with commands(folder) as begin:
        yield begin("server", "--port", "0", "--engine-port", "0", log=folder / "server.log")


@pytest.fixture
def server(shared_server: Running) -> Iterator[Running]:
    """One for all tests of a process; a test finds no tasks, and leaves none behind."""
    yield shared_server
    tasks = f"{shared_server.url('server')}/v1/tasks"
    for task in request(tasks)["tasks"]:
        request(f"{tasks}/{task['id']}", method="DELETE")


@pytest.fixture
def ams(start: Start, server: Running) -> Running:
    return an_edge(start, server, "ams")


@pytest.fixture(scope="session")
def node_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of package.json, unmodified from the registry: kept for the next run."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}: install Debian's packages nodejs and npm")
    kept = ROOT / ".venv"
    folder = (kept if kept.is_dir() else tmp_path_factory.getbasetemp().parent) / "js"
    folder.mkdir(exist_ok=True)
    wanted, there = (JS / "package.json").read_text(), folder / "package.json"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes run tests
        if not (folder / "done").exists() or there.read_text() != wanted:
            (folder / "done").unlink(missing_ok=True)
            there.write_text(wanted)
            install = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
            installed = subprocess.run(install, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
            if installed.returncode:
                pytest.skip(f"npm cannot install what package.json names: {installed.stderr.strip()[-200:]}")
            (folder / "done").touch()
    return folder
