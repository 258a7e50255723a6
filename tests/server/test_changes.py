"""What changes, told to those who watch: soon, to all of them, many changes as one; and nobody is held up by it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from helpers.operating import VOTES, on_a_port, operated, vote
from helpers.processes import DEADLINE, comes
from outvote.log.catch_up import Question
from outvote.log.memory import MemoryEngine
from outvote.server import changes as module
from outvote.server.changes import FLEET, Changes

QUESTION = Question("life", {})

# ---- without a network


async def begun(changes: Changes) -> AsyncIterator[frozenset[str]]:
    """A watcher that has been told, at once, that nothing has changed."""
    watching = changes.watch()
    assert await anext(watching) == frozenset()
    return watching


def test_many_changes_in_a_short_time_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.05)

    async def run() -> None:
        changes = Changes()
        watching = await begun(changes)
        changes.note("shop-1", FLEET)
        changes.note("shop-1")
        assert await anext(watching) == {"shop-1", FLEET}
        told_at = time.monotonic()
        for number in range(1_000):
            changes.note(f"task-{number % 3}")
        assert await anext(watching) == {"task-0", "task-1", "task-2"}
        assert time.monotonic() - told_at >= 0.05

    asyncio.run(run())


def test_what_changed_before_one_watched_is_not_told() -> None:
    async def run() -> None:
        changes = Changes()
        changes.note("before")
        watching = await begun(changes)
        changes.note("after")
        assert await anext(watching) == {"after"}

    asyncio.run(run())


def test_a_slow_watcher_holds_up_nobody_and_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0)

    async def run() -> None:
        changes = Changes()
        slow, fast = await begun(changes), await begun(changes)
        for number in range(50):
            changes.note(f"task-{number}")
            assert await anext(fast) == {f"task-{number}"}
        assert await anext(slow) == {f"task-{number}" for number in range(50)}
        changes.note("last")
        assert await anext(slow) == await anext(fast) == {"last"}

    asyncio.run(run())


def test_now_and_then_nothing_is_told_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEAT", 0.01)

    async def run() -> None:
        changes = Changes()
        watching = await begun(changes)
        assert [await anext(watching) for _ in range(3)] == [frozenset()] * 3
        changes.note(FLEET)
        assert await anext(watching) == {FLEET}

    asyncio.run(run())


def test_when_it_is_closed_all_who_watch_come_to_their_end() -> None:
    async def run() -> None:
        changes = Changes()
        watching = [await begun(changes) for _ in range(3)]
        waiting = [asyncio.ensure_future(anext(each, None)) for each in watching]
        changes.note("shop-1")
        changes.close()  # what is under way is not told any more
        async with asyncio.timeout(DEADLINE):
            assert await asyncio.gather(*waiting) == [None] * 3
            assert [each async for each in changes.watch()] == [frozenset()]  # who comes too late
        assert changes.watchers == 0

    asyncio.run(run())


# ---- over a real socket


async def get(port: int, method: str = "GET") -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    """A request for events, and the head of what is answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{method} /v1/events HTTP/1.1\r\nHost: server\r\n\r\n".encode())
    return reader, writer, await reader.readuntil(b"\r\n\r\n")


def test_clients_that_go_away_leave_no_watcher(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with operated(memory) as (server, _), on_a_port(server) as port:
            listeners = [await get(port) for _ in range(3)]
            for reader, _, head in listeners:
                assert head.startswith(b"HTTP/1.1 200 ")
                assert b"content-type: text/event-stream" in head
                assert b"cache-control: no-store" in head
                assert await reader.readuntil(b"\n\n") == b"a\r\ndata: []\n\n"
            assert server.monitor.changes.watchers == 3
            for left, (_, writer, _) in enumerate(reversed(listeners)):
                writer.transport.abort() if left else writer.close()  # in order, and as if it had died
                await comes(lambda left=left: server.monitor.changes.watchers == 2 - left)  # type: ignore[misc]

    asyncio.run(run())


def test_who_asks_for_the_head_only_is_answered_and_may_ask_again(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with operated(memory) as (server, _), on_a_port(server) as port:
            reader, writer, head = await get(port, "HEAD")
            assert b"content-type: text/event-stream" in head
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: server\r\n\r\n")
            async with asyncio.timeout(DEADLINE):
                assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200 ")
            assert server.monitor.changes.watchers == 0
            writer.close()

    asyncio.run(run())


def test_every_record_of_a_task_is_told_with_its_id_and_the_fleet(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with operated(memory) as (server, client):
            watching = await begun(server.monitor.changes)
            task_id = (await client.post("/v1/tasks", json=VOTES)).json()["id"]
            assert await anext(watching) == {task_id, FLEET}
            await vote(server, task_id, "ams", 3)
            assert await anext(watching) == {task_id, FLEET}
            await client.put("/v1/tasks/votes/expectation", json={"traffic": 5})
            assert await anext(watching) == {task_id, FLEET}
            server.monitor.on_question("fra", QUESTION)
            assert await anext(watching) == {FLEET}
            server.monitor.on_question("fra", QUESTION)  # alive as before: no news
            await client.delete("/v1/tasks/votes")
            assert await anext(watching) == {task_id, FLEET}

    asyncio.run(run())


def test_a_server_that_is_told_to_stop_ends_all_streams_in_order(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with operated(memory) as (server, client):
            async with on_a_port(server) as port:
                streams = [await get(port) for _ in range(5)]
                await client.post("/v1/tasks", json=VOTES)
                await comes(lambda: server.monitor.changes.watchers == 5)
            for reader, writer, _ in streams:
                assert (await reader.read()).endswith(b"0\r\n\r\n")  # and is not cut off
                writer.close()

    asyncio.run(run())
