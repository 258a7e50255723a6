"""A child ends with its parent, and a file is held by one process at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from outvote.processes import die_with, lock


def opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def test_a_child_whose_parent_died_before_it_could_ask_ends_itself() -> None:
    not_the_parent = 1 if os.getpid() != 1 else 2
    done = subprocess.run(["true"], preexec_fn=die_with(not_the_parent), check=False)
    assert done.returncode == -signal.SIGKILL


def test_a_child_ends_with_the_thread_that_started_it() -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        started.append(subprocess.Popen(["sleep", "600"], preexec_fn=die_with(os.getpid())))

    starter = threading.Thread(target=start)
    starter.start()
    starter.join()
    assert started[0].wait(timeout=30) == -signal.SIGKILL


def test_a_file_is_held_once_until_it_is_closed(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "lock"), opened(tmp_path / "lock")
    assert lock(first)
    assert not lock(second)
    assert not lock(second, seconds=0.05)
    os.close(first)
    assert lock(second)
    os.close(second)


def test_who_waits_gets_the_file_when_it_is_let_go(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "lock"), opened(tmp_path / "lock")
    assert lock(first)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(lock, second, seconds=30)
        os.close(first)
        assert waiting.result()
    os.close(second)
