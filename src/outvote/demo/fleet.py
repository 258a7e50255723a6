"""A fleet of real processes on this machine: a server with its engine, and edges, in a folder of their own.

Nothing outlives the process that started it, however it ends: children are killed with their parent. They do not see
Ctrl-C, which is for the parent, who stops them in order.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Final

from outvote.core.errors import OutvoteError
from outvote.processes import die_with

START_DEADLINE = 30.0
"""Seconds in which a process must say that it is ready."""
STOP_DEADLINE = 8.0
"""Seconds to end in order; then by force."""
OUTVOTE: Final = ("-m", "outvote.cli.main")
"""What Python runs: the commands that people run."""
_POLL = 0.02


class FleetError(OutvoteError):
    """A process of the fleet did not start, or ended by itself."""


class Member:
    """One command, started again as often as needed, on the same ports."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.ready: dict[str, Any] = {}
        self._folder = folder
        self._said = folder / f"{name}.ready.json"
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def url(self, kind: str) -> str:
        return str(self.ready["urls"][kind])

    def launch(self, *arguments: str, program: Sequence[str] = OUTVOTE) -> None:
        """Start the process; `ready` follows when it says so."""
        self._said.unlink(missing_ok=True)
        command = [sys.executable, *program, *arguments, "--json", str(self._said)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with(os.getpid()),
            )

    async def wait_ready(self) -> None:
        deadline = time.monotonic() + START_DEADLINE
        while not self._said.exists():
            if not self.alive or time.monotonic() > deadline:
                raise FleetError(f"{self.name} did not start: {self._last_words()}")
            await asyncio.sleep(_POLL)
        self.ready = json.loads(self._said.read_text(encoding="utf-8"))

    def kill(self) -> None:
        """As a power failure would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def terminate(self) -> None:
        if self.alive and self._process is not None:
            self._process.terminate()

    def wait(self, deadline: float) -> None:
        """Until it has ended, by force after the deadline."""
        if self._process is None:
            return
        try:
            self._process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            self.kill()

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines() if self._log.exists() else []
        return " ".join(lines[-3:]) or "it said nothing"


class Fleet:
    """The server, and the edges by name."""

    edge_program: ClassVar[Sequence[str]] = OUTVOTE

    def __init__(self, folder: Path, edges: Sequence[str], *, options: Sequence[str] = ()) -> None:
        """`options` are for the server and for every edge."""
        self._folder = folder
        self._options = options
        self.way: str | None = None
        """Where edges find the engine, if not where it is."""
        self.server = Member(folder, "server")
        self.edges = {name: Member(folder, name) for name in edges}

    async def start(self) -> None:
        """All of it, on ports that are free; returns when everybody is ready."""
        await self.start_server()
        await self.start_edges()

    async def start_server(self) -> None:
        self._launch_server("0", "0")
        await self.server.wait_ready()

    async def start_edges(self) -> None:
        for name in self.edges:
            self._launch_edge(name, "0")
        for edge in self.edges.values():
            await edge.wait_ready()

    async def restart_server(self) -> None:
        """On the ports that the others know."""
        self._launch_server(_port(self.server.url("server")), _port(self.server.url("nats")))
        await self.server.wait_ready()

    async def restart_edge(self, name: str) -> None:
        self._launch_edge(name, _port(self.edges[name].url("edge")))
        await self.edges[name].wait_ready()

    def _launch_server(self, port: str, engine_port: str) -> None:
        store = str(self._folder / "engine")
        self.server.launch("server", "--store", store, "--port", port, "--engine-port", engine_port, *self._options)

    def _launch_edge(self, name: str, port: str) -> None:
        store = str(self._folder / f"{name}.db")
        way = self.way or self.server.url("nats")
        arguments = ("edge", name, "--nats", way, "--store", store, "--port", port, *self._options)
        self.edges[name].launch(*arguments, program=self.edge_program)

    async def kill_engine(self) -> None:
        """Returns when the server has ended with it."""
        with suppress(ProcessLookupError):  # it is dead already
            os.kill(self.server.ready["pids"]["engine"], signal.SIGKILL)
        await asyncio.to_thread(self.server.wait, time.monotonic() + STOP_DEADLINE)

    def stop(self) -> None:
        """Everything, in order: edges first."""
        deadline = time.monotonic() + STOP_DEADLINE
        for group in (list(self.edges.values()), [self.server]):
            for member in group:
                member.terminate()
            for member in group:
                member.wait(deadline)


def _port(url: str) -> str:
    return url.rpartition(":")[2]
