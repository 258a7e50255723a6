"""A fleet of real processes on this machine: a server with its engine, and edges, in a folder of their own.

Nothing outlives the process that started it, however it ends: children are killed with their parent. They do not see
Ctrl-C, which is for the parent, who stops them in order.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
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
    """One command that runs as a process."""

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
        store = str(self._folder / "engine")
        self.server.launch("server", "--store", store, "--port", "0", "--engine-port", "0", *self._options)
        await self.server.wait_ready()

    async def start_edges(self) -> None:
        way = self.way or self.server.url("nats")
        for name, edge in self.edges.items():
            store = str(self._folder / f"{name}.db")
            arguments = ("edge", name, "--nats", way, "--store", store, "--port", "0", *self._options)
            edge.launch(*arguments, program=self.edge_program)
        for edge in self.edges.values():
            await edge.wait_ready()

    def stop(self) -> None:
        """Everything, in order: edges first."""
        deadline = time.monotonic() + STOP_DEADLINE
        for group in (list(self.edges.values()), [self.server]):
            for member in group:
                member.terminate()
            for member in group:
                member.wait(deadline)
