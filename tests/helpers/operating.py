"""A server with its API for operators in this process: in reach of a test's clock and of its log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx

from helpers.processes import comes
from outvote.access.kits import Certificate
from outvote.core.messages import Vote
from outvote.engine.nats_log import NatsLog
from outvote.engine.process import Engine
from outvote.log.log import Log
from outvote.log.memory import MemoryEngine
from outvote.log.records import Coder, UpSubject
from outvote.presenters.task_fields import task_of
from outvote.server.admin.api import make_app
from outvote.server.sync_server import SyncServer
from outvote.web.listener import listen, run_app

TALLY: dict[str, Any] = {
    "name": "shop",
    "protocol": "tally",
    "variants": ["red", "green"],
    "sites": 2,
    "reward_window": 60,
    "epsilon": 0,
    "delta": 0.05,
}
VOTES: dict[str, Any] = {
    "name": "votes",
    "protocol": "dme",
    "variants": 4,
    "sites": 3,
    "reward_window": 60,
    "epsilon": 0.5,
    "delta": 0.05,
}
"""Of three sites, two that vote for a variant are a quorum."""


@asynccontextmanager
async def operated(
    engine: Engine | MemoryEngine, *, clock: Callable[[], float] = time.time, **app: Any
) -> AsyncIterator[tuple[SyncServer, httpx.AsyncClient]]:
    """A server, and a client of its API, which `make_app` makes with these options."""
    if isinstance(engine, MemoryEngine):
        log: Log = engine.connect("server")
    else:
        log = await NatsLog.connect(engine.url, name="server")
    server = SyncServer(log, clock=clock)
    try:
        await server.start()
        transport = httpx.ASGITransport(make_app(server, **app))
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            yield server, client
    finally:
        await server.stop()


@asynccontextmanager
async def on_a_port(server: SyncServer, *, certificate: Certificate | None = None, **app: Any) -> AsyncIterator[int]:
    """The same API on a real socket, as `outvote server` offers it."""
    async with served(make_app(server, **app), closing=server.monitor.changes.close, certificate=certificate) as port:
        yield port


@asynccontextmanager
async def served(app: Any, **options: Any) -> AsyncIterator[int]:
    """An application on a port of its own; `options` are those of `run_app`."""
    with listen("127.0.0.1", 0) as listening:
        serving = asyncio.create_task(run_app(app, listening, **options))
        try:
            yield int(listening.getsockname()[1])
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving


async def vote(server: SyncServer, task_id: str, edge: str, arm: int, *, life: str = "life", sequence: int = 0) -> None:
    """A vote of an edge, stored and read."""
    where = UpSubject(edge, task_id, life, sequence)
    await server.log.append(str(where), Coder(task_of(VOTES)).up(Vote(arm)))
    await comes(lambda: (edge, life) in server.state.tasks[task_id].highest, "the vote is read")
