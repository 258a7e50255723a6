"""A whole fleet over a real engine: the same events give what core objects give, and nothing is lost or counted twice.

Edges and servers run in this process; the engine is a real NATS server, and edges keep real stores on disk.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from outvote.core import protocols
from outvote.core.errors import InvalidReward, InvalidTask, UnknownArm, UnknownTask
from outvote.core.messages import Elimination, UpMessage
from outvote.core.task import Task
from outvote.edge.site import NO_TICKET, Edge
from outvote.edge.store import EdgeStore
from outvote.engine.connection import EngineUnreachable
from outvote.engine.follower import LogReplaced
from outvote.engine.nats_log import NatsLog
from outvote.engine.process import Engine
from outvote.log.catch_up import Answer, TaskUpdate
from outvote.log.records import UpSubject, task_record
from outvote.server.sync_server import NameTaken, SyncServer

EDGES = ("ams", "fra", "lis")
MEANS = (0.9, 0.5, 0.2)
DEADLINE = 20.0
Fleet: TypeAlias = tuple[SyncServer, dict[str, Edge], str]
"""A server, edges by name, and the id of their task."""


def task(protocol: str, **options: Any) -> Task:
    epsilon = 0 if protocol == "tally" else 0.95
    chosen = {"arms": 3, "players": EDGES, "epsilon": epsilon, "delta": 0.3, "protocol": protocol, "name": "shop"}
    return Task(**{**chosen, **options})


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that must come."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.002)


async def new_server(url: str) -> SyncServer:
    server = SyncServer(await NatsLog.connect(url, name="server"))
    await server.start()
    return server


@asynccontextmanager
async def fleet(
    engine: Engine, folder: Path, described: Task
) -> AsyncIterator[tuple[SyncServer, dict[str, Edge], str]]:
    """A server with one task, and edges that have heard of it."""
    server = await new_server(engine.url)
    task_id = await server.create(described)
    edges = {}
    for name in EDGES:
        edges[name] = Edge(name, EdgeStore(folder / f"{name}.db"), clock=time.monotonic, rng=random.Random(name))
        await edges[name].connect(NatsLog(engine.url, name=name))
        assert await edges[name].catch_up()
    yield server, edges, task_id
    for edge in edges.values():
        await end(edge)
    await server.stop()


async def end(edge: Edge) -> None:
    await edge.stop()
    assert isinstance(edge.store, EdgeStore)
    edge.store.close()


async def settle(server: SyncServer, edges: dict[str, Edge], task_id: str) -> None:
    """What was sent is read, what follows from it is stored, and everybody has heard of it."""
    for edge in edges.values():
        edge.flush()
        await edge.send()
    link = next(iter(edges.values())).log
    assert link is not None
    while True:
        last = await link.log_end()
        await until(lambda last=last: server.state.read >= last)  # type: ignore[misc]
        if server.state.tasks[task_id].proposal() is None and await link.log_end() == last:
            break
        await asyncio.sleep(0.002)
    known = len(server.state.tasks[task_id].eliminations)
    await until(lambda: all(edge.tasks["shop"].eliminations == known for edge in edges.values()))


def by_core(described: Task, events: list[tuple[str, float]]) -> tuple[list[tuple[str, UpMessage]], list[Elimination]]:
    """The step-wise simulation of the same events: what players send, and what the server announces."""
    players = {name: protocols.player(described, name, rng=random.Random(name)) for name in EDGES}
    server = protocols.server(described)
    sent: list[tuple[str, UpMessage]] = []
    announced: list[Elimination] = []
    for name, uniform in events:
        arm, ticket = players[name].decide()
        for message in players[name].reward(arm, float(uniform < MEANS[arm]), ticket=ticket):
            sent.append((name, message))
            for elimination in server.receive(name, message):
                announced.append(elimination)
                for player in players.values():
                    player.receive(elimination)
    return sent, announced


@pytest.mark.parametrize("protocol", ["dme", "edme", "tally"])
def test_the_same_events_give_the_same_messages_and_eliminations_as_the_simulation(
    protocol: str, engine: Engine, tmp_path: Path
) -> None:
    described = task(protocol, **({"instances": 2} if protocol == "edme" else {}))
    rng = random.Random(1)
    count = 1_500 if protocol == "tally" else 12_000
    events = [(rng.choice(EDGES), rng.random()) for _ in range(count)]
    sent, announced = by_core(described, events)
    assert announced

    async def run() -> None:
        async with fleet(engine, tmp_path, described) as (server, edges, task_id):
            for name, uniform in events:
                arm, ticket = edges[name].decide(edges[name].find("shop"))
                edges[name].reward(edges[name].find("shop"), arm, float(uniform < MEANS[arm]), ticket)
                if edges[name].tasks["shop"].new:
                    await settle(server, edges, task_id)
            folded = server.state.tasks[task_id]
            assert folded.eliminations == announced
            assert folded.ledger.up_messages == len(sent)
            link = edges["ams"].log
            assert isinstance(link, NatsLog)
            for name, message in sent:
                where = UpSubject(name, task_id, edges[name].store.incarnation, message.sequence)
                assert await link.stored(str(where)) == folded.coder.up(message)

    asyncio.run(run())


def test_an_engine_killed_and_started_again_loses_nothing_and_counts_nothing_twice(
    engine: Engine, tmp_path: Path
) -> None:
    described = task("tally", players=["ams", "fra", "lis", "late"])

    async def run() -> None:
        async with fleet(engine, tmp_path, described) as (server, edges, task_id):
            rng = random.Random(2)
            pid = engine.pid
            assert pid is not None
            for round_ in range(6):
                for _ in range(40):
                    name = rng.choice(EDGES)
                    arm, ticket = edges[name].decide(edges[name].find("shop"))
                    edges[name].reward(edges[name].find("shop"), arm, float(rng.random() < 0.5), ticket)
                sending = [asyncio.create_task(flush(edge)) for edge in edges.values()]
                if round_ in (1, 3):
                    engine.stop(deadline=0.0)  # killed in the middle of it
                    engine.start()
                await asyncio.gather(*sending)
            await settle(server, edges, task_id)
            folded = server.state.tasks[task_id]
            kept = sum(len(edge.store.messages(task_id)) for edge in edges.values())
            assert folded.ledger.up_messages == kept > 20
            assert getattr(folded.server, "duplicates", 0) == 0
            fresh = await new_server(engine.url)  # a second server that reads the whole log
            assert fresh.state.tasks[task_id].server.snapshot() == folded.server.snapshot()
            await fresh.stop()

    asyncio.run(run())


async def flush(edge: Edge) -> None:
    edge.flush()
    await edge.send()


def test_an_edge_that_was_offline_for_the_whole_task_catches_up_in_one_exchange(engine: Engine, tmp_path: Path) -> None:
    described = task("tally", players=["ams", "fra", "lis", "late"])

    async def run() -> None:
        async with fleet(engine, tmp_path, described) as (server, edges, task_id):
            rng = random.Random(3)
            while server.state.tasks[task_id].running:
                for _ in range(30):
                    name = rng.choice(EDGES)
                    arm, ticket = edges[name].decide(edges[name].find("shop"))
                    edges[name].reward(edges[name].find("shop"), arm, float(rng.random() < MEANS[arm]), ticket)
                await settle(server, edges, task_id)
            late = Edge("late", EdgeStore(tmp_path / "late.db"), clock=time.monotonic)
            with pytest.raises(UnknownTask, match="'shop', this edge hosts none"):
                late.decide(late.find("shop"))
            await late.connect(NatsLog(engine.url, name="late"))
            assert await late.catch_up()
            assert late.tasks["shop"].player.remaining == (server.state.tasks[task_id].winner,) == (0,)
            assert late.decide(late.find("shop"))[0] == 0
            await late.stop()

    asyncio.run(run())


def test_an_edge_that_restarts_goes_on_where_it_was_and_a_wiped_one_starts_a_new_life(
    engine: Engine, tmp_path: Path
) -> None:
    described = task("tally")

    async def run() -> None:
        async with fleet(engine, tmp_path, described) as (server, edges, task_id):
            edge = edges["ams"]
            for _ in range(10):
                arm, ticket = edge.decide(edge.find("shop"))
                edge.reward(edge.find("shop"), arm, 1.0, ticket)
            await settle(server, edges, task_id)
            sent = server.state.tasks[task_id].ledger.up_messages
            assert sent == 3  # 10 events are 3 tallies of 3, and 1 in an open one of 7
            before = edge.tasks["shop"].player.snapshot()
            await end(edge)
            again = Edge("ams", EdgeStore(tmp_path / "ams.db"), clock=time.monotonic)
            assert again.tasks["shop"].player.snapshot() == before
            await again.connect(NatsLog(engine.url, name="ams"))
            assert await again.catch_up()
            await again.send()
            assert not again.tasks["shop"].unsent
            for _ in range(6):
                arm, ticket = again.decide(again.find("shop"))
                again.reward(again.find("shop"), arm, 1.0, ticket)
            edges["ams"] = again
            await settle(server, edges, task_id)
            assert server.state.tasks[task_id].ledger.up_messages == sent + 1
            await end(again)
            (tmp_path / "ams.db").unlink()
            for rest in tmp_path.glob("ams.db-*"):
                rest.unlink()
            wiped = Edge("ams", EdgeStore(tmp_path / "ams.db"), clock=time.monotonic)
            await wiped.connect(NatsLog(engine.url, name="ams"))
            assert await wiped.catch_up()
            for _ in range(3):
                arm, ticket = wiped.decide(wiped.find("shop"))
                wiped.reward(wiped.find("shop"), arm, 1.0, ticket)
            edges["ams"] = wiped
            await settle(server, edges, task_id)
            folded = server.state.tasks[task_id]
            assert folded.ledger.up_messages == sent + 2
            assert len([key for key in folded.highest if key[0] == "ams"]) == 2

    asyncio.run(run())


def test_tasks_appear_stop_and_disappear_while_edges_run(engine: Engine, tmp_path: Path) -> None:
    async def run() -> None:
        async with fleet(engine, tmp_path, task("tally")) as (server, edges, task_id):
            with pytest.raises(InvalidTask, match=r"'shop' exists already .*: delta is 0.3, asked is 0.1"):
                await server.create(task("tally", delta=0.1))
            other = await server.create(task("dme", name="banner"))
            await until(lambda: all("banner" in edge.tasks for edge in edges.values()))
            await server.stop_task(other)
            await until(lambda: all(edge.tasks["banner"].stopped for edge in edges.values()))
            await server.delete_task(other)
            await until(lambda: all("banner" not in edge.tasks for edge in edges.values()))
            assert all(set(edge.store.tasks()) == {task_id} for edge in edges.values())
            with pytest.raises(InvalidTask, match="unknown task"):
                await server.delete_task(other)
            again = await server.create(task("dme", name="banner"))
            assert again != other

    asyncio.run(run())


def test_an_edge_keeps_a_task_that_a_server_has_not_read_of_yet(tmp_path: Path) -> None:
    with EdgeStore(tmp_path / "ams.db") as store:
        edge = Edge("ams", store, clock=time.monotonic)
        edge.on_record("outvote.live.shop-1.task", task_record(task("tally")))
        for _ in range(3):
            arm, ticket = edge.decide(edge.find("shop"))
            edge.reward(edge.find("shop"), arm, 1.0, ticket)
        edge.flush()
        edge.apply_catch_up(Answer(read=0, tasks={}))
        assert len(edge.store.messages("shop-1")) == 1
        edge.apply_catch_up(Answer(read=9, tasks={}, deleted=("shop-1",)))
        assert not edge.tasks
        assert not edge.store.messages("shop-1")


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


def test_a_stopped_task_serves_its_fallback_learns_nothing_and_sends_nothing(tmp_path: Path) -> None:
    now = [0.0]
    with EdgeStore(tmp_path / "ams.db") as store:
        edge = Edge("ams", store, clock=lambda: now[0])
        described = task("tally", arms=["red", "green", "blue"], fallback="blue", reward_window=10.0)
        edge.on_record("outvote.live.shop-1.task", task_record(described))
        decided = [edge.decide(edge.find("shop")) for _ in range(3)]
        assert len(edge.tasks["shop"].windows) == 1
        before = edge.tasks["shop"].player.snapshot()
        edge.on_record("outvote.live.shop-1.stop", b"{}")
        assert {edge.decide(edge.find("shop")) for _ in range(5)} == {(2, NO_TICKET)}
        arm, ticket = decided[0]
        edge.reward(edge.find("shop"), arm, 1.0, ticket)  # it came late, and is no error
        with pytest.raises(InvalidReward):
            edge.reward(edge.find("shop"), arm, 2.0, ticket)
        with pytest.raises(UnknownArm):
            edge.reward(edge.find("shop"), 3, 1.0, ticket)
        now[0] = 11.0  # the window passes
        edge.flush()
        assert edge.tasks["shop"].player.snapshot() == before
        assert not store.messages("shop-1")
        again = Edge("ams", store, clock=lambda: now[0])
        assert again.decide(again.find("shop")) == (2, NO_TICKET)


def test_a_name_that_is_used_again_is_a_new_task_even_for_an_edge_that_was_away(engine: Engine, tmp_path: Path) -> None:
    async def run() -> None:
        async with fleet(engine, tmp_path, task("tally")) as (server, edges, task_id):
            away = edges["ams"]
            for _ in range(12):
                arm, ticket = away.decide(away.find("shop"))
                away.reward(away.find("shop"), arm, 1.0, ticket)
            away.flush()  # three messages that nobody has seen
            assert away.log is not None
            await away.log.close()
            await server.delete_task(task_id)
            renewed = await server.create(task("tally", delta=0.1))
            await until(
                lambda: edges["fra"].tasks.get("shop") is not None and edges["fra"].tasks["shop"].task_id == renewed
            )
            away.on_record(f"outvote.live.{renewed}.task", task_record(task("tally", delta=0.1)))
            assert away.missed.is_set()  # it hosts one of that name: it must ask, not guess
            assert away.tasks["shop"].task_id == task_id
            await away.connect(NatsLog(engine.url, name="ams"))
            assert await away.catch_up()
            await away.send()
            assert away.tasks["shop"].task_id == renewed
            await settle(server, edges, renewed)
            assert server.state.tasks[renewed].ledger.up_messages == 0
            assert server.state.unknown == 0

    asyncio.run(run())


def test_two_servers_that_create_one_name_at_once_make_one_task(engine: Engine) -> None:
    async def run() -> None:
        servers = [await new_server(engine.url) for _ in range(2)]
        made = await asyncio.gather(
            *(server.create(task("tally", delta=0.1 * (number + 1))) for number, server in enumerate(servers)),
            return_exceptions=True,
        )
        assert sorted(isinstance(each, NameTaken) for each in made) == [False, True]
        await until(lambda: servers[0].state.read == servers[1].state.read)
        assert (
            list(servers[0].state.tasks)
            == list(servers[1].state.tasks)
            == [each for each in made if isinstance(each, str)]
        )
        for server in servers:
            await server.stop()

    asyncio.run(run())


def test_a_server_reads_on_soon_after_its_engine_was_killed(engine: Engine, tmp_path: Path) -> None:
    async def run() -> None:
        async with fleet(engine, tmp_path, task("tally")) as (server, _edges, task_id):
            assert server.ready
            await asyncio.to_thread(engine.stop, 0.0)
            await until(lambda: not server.ready)
            engine.start()
            await until(lambda: server.ready)
            began = time.monotonic()
            await server.stop_task(task_id)
            assert server.state.tasks[task_id].stopped
            assert time.monotonic() - began < DEADLINE / 2  # left to itself, the client is silent for 20 s

    asyncio.run(run())


def test_a_server_whose_log_was_replaced_says_so_and_ends(engine: Engine, tmp_path: Path) -> None:
    async def run() -> None:
        async with fleet(engine, tmp_path, task("tally")) as (server, _edges, _task_id):
            await server.create(task("dme", name="banner"))
            await asyncio.to_thread(engine.stop)
            shutil.rmtree(engine.store)
            engine.start()
            async with await NatsLog.connect(engine.url, name="other") as link:
                await link.prepare()
            with pytest.raises(LogReplaced, match="2 records were read of the log OUTVOTE, which now ends at 0"):
                await asyncio.wait_for(server.watch(), DEADLINE)

    asyncio.run(run())


def test_a_name_is_free_again_after_the_log_was_lost(tmp_path: Path) -> None:
    """The old task is in no log, so nobody will ever say that it was deleted."""
    now = [0.0]
    with EdgeStore(tmp_path / "ams.db") as store:
        edge = Edge("ams", store, clock=lambda: now[0])
        edge.on_record("outvote.live.shop-1.task", task_record(task("tally")))
        update = TaskUpdate(stopped=False, highest=-1, count=0, record=task("tally").to_json())
        answer = Answer(read=1, tasks={"shop-2": update})
        for seconds in (0.0, 14.0):  # the server may only lag behind
            now[0] = seconds
            edge.apply_catch_up(answer)
            assert edge.tasks["shop"].task_id == "shop-1"
        now[0] = 15.0
        edge.apply_catch_up(answer)
        assert edge.tasks["shop"].task_id == "shop-2"
        assert set(store.tasks()) == {"shop-2"}
