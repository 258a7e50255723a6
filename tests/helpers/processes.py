"""Commands as real processes, for tests that start, ask, kill and await them. Nothing here waits without a deadline."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from outvote.processes import die_with

DEADLINE = 60.0
OUTVOTE = [sys.executable, "-m", "outvote.cli.main"]


class Running:
    """A command that runs until it is told to stop, or is killed."""

    def __init__(self, folder: Path, *arguments: str, log: Path | None = None) -> None:
        """Returns when the command has said that it is ready, in the line that `ready` holds; `log` is a file for what
        it writes to standard error, which else is told when it has ended."""
        with nullcontext(subprocess.PIPE) if log is None else log.open("ab") as errors:
            self.process = subprocess.Popen(
                [*OUTVOTE, *arguments, "--json"],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,  # what goes wrong with it must not reach the tests
                preexec_fn=die_with(os.getpid()),  # nor may it outlive them
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1] if log is None else log.read_text()
        self.ready: dict[str, Any] = json.loads(line)

    def url(self, name: str) -> str:
        return str(self.ready["urls"][name])

    def port(self, name: str) -> str:
        return str(urlsplit(self.url(name)).port)

    def pid(self, name: str) -> int:
        return int(self.ready["pids"][name])

    def end(self, by: signal.Signals) -> tuple[int, str, str]:
        """Its exit code, and what else it wrote."""
        self.process.send_signal(by)
        return self.ended()

    def ended(self) -> tuple[int, str, str]:
        """The same for a command that ends by itself."""
        out, err = self.process.communicate(timeout=DEADLINE)
        return self.process.returncode, out, err

    def kill(self) -> None:
        """End it if it runs still, and let go of it."""
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def complaints(err: str) -> list[str]:
    """What a command wrote to standard error, without what its log says of all being well."""
    return [line for line in err.splitlines() if not re.match(r"\S+Z info ", line)]


Start: TypeAlias = Callable[..., Running]
"""Starts a command and sees to its end: the fixture `start`."""


@contextmanager
def commands(folder: Path) -> Iterator[Start]:
    """What starts commands in one folder; none of them is left behind."""
    started: list[Running] = []

    def begin(*arguments: str, log: Path | None = None) -> Running:
        started.append(Running(folder, *arguments, log=log))
        return started[-1]

    try:
        yield begin
    finally:
        for each in started:
            each.kill()


def an_edge(start: Start, server: Running, name: str, *options: str) -> Running:
    return start("edge", name, "--nats", server.url("nats"), "--port", "0", *options)


def until(condition: Callable[[], bool], what: str = "", *, within: float = DEADLINE) -> None:
    """Wait for something that must come, at most so many seconds."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"not within {within:g} s: {what}"
        time.sleep(0.01)


async def comes(condition: Callable[[], bool], what: str = "", *, within: float = DEADLINE) -> None:
    """The same beside what else the loop does."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"not within {within:g} s: {what}"
        await asyncio.sleep(0.005)


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has asked for yet has ended too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def free_port() -> int:
    """One that nobody has now, for who must name it before it is taken."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def listens(url: str) -> bool:
    parts = urlsplit(url)
    with socket.socket() as client:
        return client.connect_ex((parts.hostname or "", parts.port or 0)) == 0


def request(url: str, body: dict[str, Any] | None = None, *, method: str | None = None) -> dict[str, Any]:
    """What an HTTP request is answered with; a refusal is raised."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data=data, method=method), timeout=DEADLINE) as response:
        return dict(json.loads(response.read() or b"{}"))


def sent_all(edge: Running, task: str = "shop") -> None:
    """Wait until the log has all that an edge has to send."""
    until(lambda: request(f"{edge.url('edge')}/v1/tasks/{task}")["messages_waiting"] == 0, "all is sent")


def well(server: Running) -> bool:
    """Whether a server says that it is well."""
    try:
        return bool(request(server.url("server") + "/healthz")["status"] == "ok")
    except urllib.error.HTTPError as error:
        with error:
            if error.code != 503:
                raise
        return False
