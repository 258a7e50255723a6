"""Whole fleets on a log in memory and a clock of its own: the same events give what core objects give, case by case.

`faults.simulated` has the same fleets in hundreds of schedules of faults.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from faults.simulated.clock import run as in_virtual_time
from faults.simulated.disk import Disk, MemoryStore
from helpers.audit import sent as messages_of
from outvote.core import protocols
from outvote.core.decisions import Ticket
from outvote.core.errors import InvalidReward, UnknownTask
from outvote.core.messages import Elimination, UpMessage
from outvote.core.task import Task
from outvote.edge.site import Edge
from outvote.edge.store import EdgeStore
from outvote.log.catch_up import Answer, TaskUpdate
from outvote.log.memory import MemoryEngine
from outvote.log.records import task_record
from outvote.server.sync_server import NameTaken, SyncServer

EDGES = ("ams", "fra", "lis")
MEANS = (0.9, 0.5, 0.2)
WINDOW = 60.0
CLOSED = 67.0
"""So many seconds after the last decision of a group it is closed: its window, and a tenth of it at most."""


def task(protocol: str, **options: Any) -> Task:
    epsilon = 0 if protocol == "tally" else 0.95
    chosen = {"arms": 3, "players": EDGES, "epsilon": epsilon, "delta": 0.3, "protocol": protocol, "name": "shop"}
    return Task(**{**chosen, "reward_window": WINDOW, **options})


class Fleet:
    """An engine, one server and edges."""

    def __init__(self) -> None:
        self.engine = MemoryEngine()
        self.server = SyncServer(self.engine.connect("server"))
        self.now = 0.0
        """The time at the edges, in seconds."""
        self.edges = {
            name: Edge(name, MemoryStore(Disk(random.Random(name))), clock=lambda: self.now, rng=random.Random(name))
            for name in EDGES
        }

    async def create(self, described: Task) -> str:
        """The id of a task of which all edges have heard."""
        await self.server.start()
        task_id = await self.server.create(described)
        for name in self.edges:
            await self.connect(name)
        return task_id

    async def connect(self, name: str) -> None:
        await self.edges[name].connect(self.engine.connect(name))
        assert await self.edges[name].catch_up()

    async def settle(self) -> None:
        """Send everything; a second of the run's own clock later everybody has heard what came of it."""
        for edge in self.edges.values():
            edge.flush()
            await edge.send()
        await asyncio.sleep(1.0)

    async def play(self, name: str, uniform: float = 0.0) -> None:
        """An event of which everybody hears when its window has passed."""
        edge = self.edges[name]
        decide(edge, uniform)
        self.now += CLOSED
        edge.tick()
        if edge.tasks["shop"].unsent:
            await self.settle()

    def in_log(self) -> list[int]:
        """The sequences of the messages in the log, in their order there."""
        return [where.sequence for where, _ in messages_of(self.engine.records)]


def decide(edge: Edge, uniform: float = 0.0) -> Ticket:
    """A decision of the shop, and its reward."""
    ticket = edge.decide(edge.find("shop"))
    edge.reward(edge.find("shop"), ticket, float(uniform < MEANS[ticket.arm]))
    return ticket


def by_core(described: Task, events: list[tuple[str, float]]) -> tuple[list[tuple[str, UpMessage]], list[Elimination]]:
    """The step-wise simulation of the same events: what players send, and what the server announces."""
    players = {name: protocols.player(described, name, rng=random.Random(name)) for name in EDGES}
    server = protocols.server(described)
    sent: list[tuple[str, UpMessage]] = []
    announced: list[Elimination] = []
    for event, (name, uniform) in enumerate(events):
        now = round(event * CLOSED * 1000)
        ticket = players[name].decide(now)
        players[name].reward(ticket, float(uniform < MEANS[ticket.arm]), now)
        for message in players[name].tick(now + round(CLOSED * 1000)):
            sent.append((name, message))
            for elimination in server.receive(name, message, now):
                announced.append(elimination)
                for player in players.values():
                    player.receive(elimination)
    return sent, announced


@pytest.mark.parametrize("protocol", ["dme", "edme", "tally"])
def test_the_same_events_give_the_same_messages_and_eliminations_as_the_simulation(protocol: str) -> None:
    described = task(protocol, **({"instances": 2} if protocol == "edme" else {}))
    rng = random.Random(1)
    count = 1_500 if protocol == "tally" else 12_000
    events = [(rng.choice(EDGES), rng.random()) for _ in range(count)]
    sent, announced = by_core(described, events)
    assert announced

    async def run() -> None:
        fleet = Fleet()
        task_id = await fleet.create(described)
        for name, uniform in events:
            await fleet.play(name, uniform)
        folded = fleet.server.state.tasks[task_id]
        assert folded.eliminations == announced
        in_log = messages_of(fleet.engine.records)
        assert [(where.edge, where.sequence, payload) for where, payload in in_log] == [
            (name, message.sequence, folded.coder.up(message)) for name, message in sent
        ]

    in_virtual_time(run())


def test_a_name_that_is_used_again_is_a_new_task_even_for_an_edge_that_was_away() -> None:
    async def run() -> None:
        fleet = Fleet()
        task_id = await fleet.create(task("tally"))
        away = fleet.edges["ams"]
        for _ in range(12):
            decide(away)
        fleet.now += CLOSED
        away.tick()
        assert len(away.tasks["shop"].unsent) == 3, "messages that nobody has seen"
        assert away.log is not None
        await away.log.close()
        await fleet.server.delete_task(task_id)
        renewed = await fleet.server.create(task("tally", delta=0.1))
        away.on_record(f"outvote.live.{renewed}.task", task_record(task("tally", delta=0.1)))
        assert away.missed.is_set()  # it hosts one of that name: it must ask, not guess
        assert away.tasks["shop"].task_id == task_id
        await fleet.connect("ams")
        await fleet.settle()
        assert {edge.tasks["shop"].task_id for edge in fleet.edges.values()} == {renewed}
        assert fleet.in_log() == []

    in_virtual_time(run())


def test_two_servers_that_create_one_name_at_once_make_one_task() -> None:
    async def run() -> None:
        engine = MemoryEngine()
        servers = [SyncServer(engine.connect("server")) for _ in range(2)]
        for server in servers:
            await server.start()
        made = await asyncio.gather(
            *(server.create(task("tally", delta=delta)) for server, delta in zip(servers, (0.1, 0.2), strict=True)),
            return_exceptions=True,
        )
        await asyncio.sleep(1.0)
        assert sorted(isinstance(each, NameTaken) for each in made) == [False, True]
        for server in servers:
            assert list(server.state.tasks) == [each for each in made if isinstance(each, str)]

    in_virtual_time(run())


def test_an_edge_sends_again_what_an_engine_has_lost() -> None:
    """The engine's disk is set back to a backup. What the log lacks then is not only what came last: tallies close in
    any order, each a random while after its window."""

    async def run() -> None:
        fleet = Fleet()
        await fleet.create(task("tally", delta=1e-9))
        edge = fleet.edges["ams"]
        for _ in range(9):
            decide(edge)
        while fleet.now < CLOSED:
            fleet.now += 0.05
            edge.tick()
            await fleet.settle()
        assert fleet.in_log() == [2, 1, 0]
        backup, fleet.engine = fleet.engine.records[:2], MemoryEngine()
        for record in backup:
            fleet.engine.store(record.subject, record.payload, lambda new: None)
        await SyncServer(fleet.engine.connect("server")).start()
        for name in EDGES:
            await fleet.connect(name)
        assert fleet.in_log() == [2]
        await fleet.settle()
        assert fleet.in_log() == [2, 0, 1]

    in_virtual_time(run())


# ---- one edge


def test_an_edge_without_the_task_says_so(edge: Edge) -> None:
    with pytest.raises(UnknownTask, match="'shop', this edge hosts none"):
        edge.find("shop")


def test_an_edge_keeps_a_task_that_a_server_has_not_read_of_yet(tmp_path: Path) -> None:
    with EdgeStore(tmp_path / "ams.db") as store:
        now = [0.0]
        edge = Edge("ams", store, clock=lambda: now[0])
        edge.on_record("outvote.live.shop-1.task", task_record(task("tally")))
        for _ in range(3):
            decide(edge)
        now[0] = CLOSED
        edge.tick()
        edge.apply_catch_up(Answer(read=0, tasks={}))
        assert len(edge.store.messages("shop-1")) == 1
        edge.apply_catch_up(Answer(read=9, tasks={}, deleted=("shop-1",)))
        assert not edge.tasks
        assert not edge.store.messages("shop-1")


def test_a_stopped_task_serves_its_fallback_learns_nothing_and_sends_nothing(tmp_path: Path) -> None:
    now = [0.0]
    with EdgeStore(tmp_path / "ams.db") as store:
        edge = Edge("ams", store, clock=lambda: now[0])
        described = task("tally", arms=["red", "green", "blue"], fallback="blue")
        edge.on_record("outvote.live.shop-1.task", task_record(described))
        decided = [edge.decide(edge.find("shop")) for _ in range(3)]  # a whole tally, which waits
        edge.on_record("outvote.live.shop-1.stop", b"{}")
        stopped = edge.tasks["shop"].player.snapshot()
        assert {edge.decide(edge.find("shop")) for _ in range(5)} == {Ticket.uncounted(2)}
        edge.reward(edge.find("shop"), decided[0], 1.0)  # it comes after the end, and is no error
        with pytest.raises(InvalidReward):
            edge.reward(edge.find("shop"), decided[0], 2.0)
        now[0] = CLOSED
        edge.tick()
        assert edge.tasks["shop"].player.snapshot() == stopped
        assert not store.messages("shop-1")
        again = Edge("ams", store, clock=lambda: now[0])
        assert again.decide(again.find("shop")) == Ticket.uncounted(2)


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
