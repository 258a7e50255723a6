"""Processes that measure or are measured: started on a core of their own, talked to in lines of JSON, always ended.

A child dies with this process, so that nothing is left behind however a run ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import select
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from outvote.processes import die_with

ROOT = Path(__file__).parents[2]
END_DEADLINE = 15.0
"""Seconds to end in order; then by force."""


class ChildFailed(Exception):
    """A child ended, or was silent for too long."""


class Child:
    """A running process that writes lines of JSON, and may read them."""

    def __init__(self, process: subprocess.Popen[bytes], what: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.pid = process.pid
        self._process = process
        self._to: IO[bytes] = process.stdin
        self._from: IO[bytes] = process.stdout
        self._what = what

    def tell(self, told: dict[str, Any]) -> None:
        self._to.write(json.dumps(told).encode() + b"\n")
        self._to.flush()

    def hear(self, patience: float = 120.0) -> dict[str, Any]:
        """The next line; whoever is silent for longer than `patience` seconds has failed."""
        if not select.select([self._from], [], [], patience)[0]:
            raise ChildFailed(f"{self._what} was silent for {patience:g} s")
        line = self._from.readline()
        if not line:
            raise ChildFailed(f"{self._what} ended with exit code {self._process.wait()}")
        heard: dict[str, Any] = json.loads(line)
        return heard

    def ask(self, told: dict[str, Any], patience: float = 120.0) -> dict[str, Any]:
        self.tell(told)
        return self.hear(patience)


@contextmanager
def program(module: str, *arguments: object, core: int | None = None) -> Iterator[Child]:
    """A module of this package as a program of its own."""
    with command(["-m", f"benchmarks.network.{module}", *map(str, arguments)], module, core=core) as child:
        yield child


@contextmanager
def outvote(*arguments: str) -> Iterator[Child]:
    """One of our commands, as operators start it."""
    with command(["-m", "outvote.cli.main", *arguments], f"outvote {arguments[0]}") as child:
        yield child


@contextmanager
def command(
    arguments: Sequence[str], what: str, *, core: int | None = None, tree: Path | None = None
) -> Iterator[Child]:
    """A program of this Python; with `tree`, another checkout of this repository, its package is the one in there."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT if tree is None else tree,
        env=None if tree is None else {**os.environ, "PYTHONPATH": str(tree / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for us, who end it in order
        preexec_fn=die_with(os.getpid()),
    )
    try:
        if core is not None:
            with suppress(OSError):
                os.sched_setaffinity(process.pid, {core})
        yield Child(process, what)
    finally:
        process.terminate()
        try:
            process.wait(END_DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def cores() -> tuple[int | None, int | None]:
    """A core for who is measured and another for who measures; none where there is only one, or no choice."""
    try:
        allowed = sorted(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return None, None
    return (allowed[0], allowed[-1]) if len(allowed) > 1 else (None, None)


def cpu_seconds(pid: int) -> float:
    """What a process has spent on a core until now: to the nanosecond where Linux tells, else in its clock's ticks."""
    try:
        threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
        return sum(int(each.read_text(encoding="utf-8").split()[0]) for each in threads) / 1e9
    except (OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> dict[str, float]:
    """RSS counts pages that processes share in each of them; PSS divides them among those who share."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    found = {line.partition(":")[0]: line.split()[1] for line in lines if line.endswith("kB")}
    return {"rss_mib": int(found["Rss"]) / 1024, "pss_mib": int(found["Pss"]) / 1024}


def peak_mib() -> float:
    """The most that this process has had; unlike what `getrusage` tells, not what its parent had before it."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def allow_connections(count: int) -> bool:
    """Raise the limit of open files so that there can be so many, here and in what is started from here."""
    needed = count + 200
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed and (hard == resource.RLIM_INFINITY or hard >= needed):
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
        return True
    return soft >= needed


def say_json(told: dict[str, Any]) -> None:
    """A child's line to its parent."""
    print(json.dumps(told), flush=True)


async def answer_lines(play: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> None:
    """A child's work: what its parent tells in lines of JSON it plays one by one, and answers each."""
    say_json({"ready": True})
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        say_json(await play(json.loads(line)))
