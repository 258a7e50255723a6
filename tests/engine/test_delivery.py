"""Every message arrives, whatever the order in which messages come to be: answers to an early tally may come late."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

import pytest

from helpers.audit import log_at, sent
from outvote.core.task import Task
from outvote.edge.site import Edge
from outvote.edge.store import EdgeStore
from outvote.engine.nats_log import NatsLog
from outvote.engine.process import Engine
from outvote.server.sync_server import SyncServer


async def a_server(engine: Engine, *, create: bool = True) -> SyncServer:
    """With one task of Tally: three arms, tallies of three events."""
    server = SyncServer(await NatsLog.connect(engine.url, name="server"))
    await server.start()
    if create:
        await server.create(Task(arms=3, players=["ams"], epsilon=0, delta=1e-9, protocol="tally", name="shop"))
    return server


async def an_edge(engine: Engine, store: EdgeStore) -> Edge:
    edge = Edge("ams", store, clock=time.monotonic)
    await edge.connect(NatsLog(engine.url, name="ams"))
    assert await edge.catch_up()
    return edge


def reward(edge: Edge, decisions: list[tuple[int, int]]) -> None:
    for arm, ticket in decisions:
        edge.reward(edge.find("shop"), arm, 1.0, ticket)


async def in_log(engine: Engine) -> list[int]:
    """The sequences of the tallies in the log, in their order there."""
    return [where.sequence for where, _ in sent(await log_at(engine.url))]


def three_tallies(edge: Edge) -> list[list[tuple[int, int]]]:
    return [[edge.decide(edge.find("shop")) for _ in range(3)] for _ in range(3)]


async def answer(edge: Edge, decisions: list[tuple[int, int]]) -> None:
    """A tally is complete, kept and sent."""
    reward(edge, decisions)
    edge.flush()
    await edge.send()


def test_a_tally_that_is_complete_while_a_later_one_is_being_sent_is_sent_too(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        server = await a_server(engine)
        with EdgeStore(tmp_path / "ams.db") as store:
            edge = await an_edge(engine, store)
            first, second, third = three_tallies(edge)
            link = edge.log
            assert link is not None
            send = link.append

            async def meanwhile(subject: str, payload: bytes) -> bool:
                if subject.endswith(".0"):
                    reward(edge, second)
                    edge.flush()
                return await send(subject, payload)

            monkeypatch.setattr(link, "append", meanwhile)
            reward(edge, first)
            reward(edge, third)
            edge.flush()
            await edge.send()
            await edge.send()
            assert sorted(await in_log(engine)) == [0, 1, 2]
            await edge.stop()
        await server.stop()

    asyncio.run(run())


def test_an_edge_that_starts_again_sends_an_early_tally_that_was_kept_and_not_sent(
    engine: Engine, tmp_path: Path
) -> None:
    async def run() -> None:
        server = await a_server(engine)
        with EdgeStore(tmp_path / "ams.db") as store:
            edge = await an_edge(engine, store)
            first, second, _ = three_tallies(edge)
            await answer(edge, second)
            reward(edge, first)
            await edge.stop()  # kept, and not sent
        assert await in_log(engine) == [1]
        with EdgeStore(tmp_path / "ams.db") as store:
            again = await an_edge(engine, store)
            await again.send()
            assert await in_log(engine) == [1, 0]
            assert await again.catch_up()
            assert not again.tasks["shop"].unsent
            await again.stop()
        await server.stop()

    asyncio.run(run())


def test_an_edge_sends_again_what_an_engine_has_lost(engine: Engine, tmp_path: Path) -> None:
    """The engine's disk is set back to a backup. What the log lacks then is not only what came last."""
    backup = tmp_path / "backup"

    async def run() -> None:
        server = await a_server(engine)
        with EdgeStore(tmp_path / "ams.db") as store:
            edge = await an_edge(engine, store)
            first, second, third = three_tallies(edge)
            await answer(edge, second)
            await asyncio.to_thread(engine.stop)
            shutil.copytree(engine.store, backup)
            engine.start()
            await answer(edge, first)
            await answer(edge, third)
            assert await in_log(engine) == [1, 0, 2]
            await server.stop()
            await asyncio.to_thread(engine.stop)
            shutil.rmtree(engine.store)
            shutil.copytree(backup, engine.store)
            engine.start()
            assert await in_log(engine) == [1]
            server = await a_server(engine, create=False)
            assert await edge.catch_up()
            await edge.send()
            assert await in_log(engine) == [1, 0, 2]
            await edge.stop()
        await server.stop()

    asyncio.run(run())
