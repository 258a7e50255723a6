"""The log on NATS: a stream that is not ours, an engine that is killed, and a log that was replaced."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from helpers.operating import TALLY
from helpers.processes import DEADLINE, comes
from outvote.engine.connection import EngineUnreachable
from outvote.engine.follower import LogReplaced
from outvote.engine.nats_log import NatsLog
from outvote.engine.process import Engine
from outvote.presenters.task_fields import task_of
from outvote.server.sync_server import SyncServer


@asynccontextmanager
async def a_server(engine: Engine) -> AsyncIterator[tuple[SyncServer, str]]:
    """With one task."""
    server = SyncServer(await NatsLog.connect(engine.url, name="server"))
    await server.start()
    yield server, await server.create(task_of(TALLY))
    await server.stop()


def test_a_stream_that_is_not_ours_is_refused_with_what_differs(engine: Engine) -> None:
    async def run() -> None:
        import nats
        from nats.js.api import StreamConfig

        client = await nats.connect(engine.url)
        await client.jetstream().add_stream(StreamConfig(name="OUTVOTE", subjects=["outvote.up.>"]))
        await client.close()
        async with await NatsLog.connect(engine.url, name="server") as link:
            with pytest.raises(EngineUnreachable, match=r"subjects is .*max_msgs_per_subject is -1, needed is 1"):
                await link.prepare()

    asyncio.run(run())


def test_no_engine_is_an_error_that_says_so() -> None:
    async def run() -> None:
        with pytest.raises(EngineUnreachable, match=r"no NATS answers at nats://127\.0\.0\.1:9"):
            await NatsLog.connect("nats://127.0.0.1:9", name="server", patience=0.5)

    asyncio.run(run())


def test_a_server_reads_on_soon_after_its_engine_was_killed(engine: Engine) -> None:
    async def run() -> None:
        async with a_server(engine) as (server, task_id):
            assert server.ready
            await asyncio.to_thread(engine.stop, 0.0)
            await comes(lambda: not server.ready)
            engine.start()
            await comes(lambda: server.ready)
            began = time.monotonic()
            await server.stop_task(task_id)
            assert server.state.tasks[task_id].stopped
            assert time.monotonic() - began < 10  # left to itself, the client is silent for 20 s

    asyncio.run(run())


def test_a_server_whose_log_was_replaced_says_so_and_ends(engine: Engine) -> None:
    async def run() -> None:
        async with a_server(engine) as (server, task_id):
            await server.stop_task(task_id)
            await asyncio.to_thread(engine.stop)
            shutil.rmtree(engine.store)
            engine.start()
            async with await NatsLog.connect(engine.url, name="other") as link:
                await link.prepare()
            with pytest.raises(LogReplaced, match="2 records were read of the log OUTVOTE, which now ends at 0"):
                await asyncio.wait_for(server.watch(), DEADLINE)

    asyncio.run(run())
