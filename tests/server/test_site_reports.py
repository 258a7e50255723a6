"""What edges report of their rewards with their questions: kept of tasks that there are, one of an edge and task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from helpers.operating import VOTES, operated
from helpers.processes import comes
from outvote.edge.site import Edge
from outvote.engine.nats_log import NatsLog
from outvote.engine.process import Engine
from outvote.log.catch_up import Question
from outvote.log.memory import MemoryEngine
from outvote.log.records import SYNC
from outvote.log.site_report import SiteReport
from outvote.server import liveness
from outvote.server.changes import FLEET
from outvote.server.monitor import Monitor
from outvote.server.sync_server import SyncServer

FEW, MANY = SiteReport(100, ("no_rewards",)), SiteReport(1_000)


@asynccontextmanager
async def watched(memory: MemoryEngine) -> AsyncIterator[tuple[SyncServer, Monitor, str]]:
    """A server with one task, and its id."""
    async with operated(memory) as (server, client):
        task_id = str((await client.post("/v1/tasks", json=VOTES)).json()["id"])
        yield server, server.monitor, task_id


def test_the_last_report_of_each_edge_is_kept_by_name(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with watched(memory) as (_, monitor, task_id):
            assert monitor.reports_of(task_id) == {}
            monitor.on_question("fra", Question("life", {}, {task_id: FEW}))
            monitor.on_question("ams", Question("life", {}, {task_id: FEW}))
            assert list(monitor.reports_of(task_id).items()) == [("ams", FEW), ("fra", FEW)]
            monitor.on_question("fra", Question("another life", {}, {task_id: MANY}))
            assert monitor.reports_of(task_id) == {"ams": FEW, "fra": MANY}
            monitor.on_question("ams", Question("life", {}))
            assert monitor.reports_of(task_id) == {"fra": MANY}, "it has nothing to tell any more"

    asyncio.run(run())


def test_of_tasks_that_there_are_not_nothing_is_kept(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with watched(memory) as (server, monitor, task_id):
            made_up = {f"task-{number}": FEW for number in range(1_000)}
            monitor.on_question("ams", Question("life", {}, {**made_up, task_id: FEW}))
            assert monitor._reports == {"ams": {task_id: FEW}}
            await server.delete_task(task_id)
            monitor.on_question("ams", Question("life", {}, {**made_up, task_id: FEW}))
            assert monitor._reports == {"ams": {}}

    asyncio.run(run())


def test_of_edges_that_are_not_remembered_no_reports_are(memory: MemoryEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "MOST_EDGES", 2)

    async def run() -> None:
        async with watched(memory) as (_, monitor, task_id):
            for name in ("ams", "a.b", "fra", "lis", "x" * 65):
                monitor.on_question(name, Question("life", {}, {task_id: FEW}))
            assert monitor.reports_of(task_id) == {"ams": FEW, "fra": FEW}

    asyncio.run(run())


def test_who_watches_is_told_when_a_report_says_something_else(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with watched(memory) as (_, monitor, task_id):
            watching = monitor.changes.watch()
            assert await anext(watching) == frozenset()
            for report, told in ((FEW, {task_id, FLEET}), (MANY, {task_id})):
                for _ in range(2):  # the second says nothing new
                    monitor.on_question("ams", Question("life", {}, {task_id: report}))
                assert await anext(watching) == told
            monitor.on_question("ams", Question("life", {}, {task_id: MANY}))
            monitor.changes.note("last")
            assert await anext(watching) == {"last"}

    asyncio.run(run())


def test_an_edge_reports_with_each_question_what_it_has_seen_and_every_server_hears_it(
    memory: MemoryEngine, edge: Edge
) -> None:
    async def run() -> None:
        async with operated(memory) as (first, client), operated(memory) as (second, _):
            made = (await client.post("/v1/tasks", json={**VOTES, "name": "shop"})).json()["id"]
            await client.post("/v1/tasks", json={**VOTES, "name": "quiet"})
            await edge.connect(memory.connect("ams"))
            assert await edge.catch_up()
            shop = edge.find("shop")
            for _ in range(99):
                edge.reward(shop, edge.decide(shop), 1.0)
            assert await edge.catch_up()
            assert first.monitor.reports_of(made) == {}
            edge.reward(shop, edge.decide(shop), 1.0)
            assert await edge.catch_up()
            for server in (first, second):
                await comes(lambda each=server: bool(each.monitor.reports_of(made)), "it has heard")  # type: ignore[misc]
                assert server.monitor._reports == {"ams": {made: SiteReport(100, ("only_successes",))}}
            await client.post("/v1/tasks/shop/stop")
            await comes(lambda: shop.stopped, "the edge has stopped")
            assert await edge.catch_up()
            assert first.monitor.reports_of(made) == {}, "a stopped task is nothing to look at"
            await edge.stop()

    asyncio.run(run())


def test_a_question_that_is_none_is_no_sign_of_life_and_does_not_keep_others_from_being_heard(engine: Engine) -> None:
    async def run() -> None:
        async with operated(engine) as (server, client):
            task_id = (await client.post("/v1/tasks", json=VOTES)).json()["id"]
            async with await NatsLog.connect(engine.url, name="ams") as log:
                for payload in (b"", b"{", b'{"incarnation": "life", "tasks": {}, "reports": {"shop-1": {}}}'):
                    await log._client.publish(f"{SYNC}.mallory", payload)
                answer = await log.ask("ams", Question("life", {}, {task_id: FEW}))
                assert answer is not None
                await comes(lambda: bool(server.monitor.reports_of(task_id)), "it has heard")
            assert list(server.monitor.liveness.last) == ["ams"]

    asyncio.run(run())
