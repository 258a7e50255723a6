"""One simulated run: the real edges and servers in one process, on a log in memory and a clock of its own.

Every random number comes from the seed, so the same seed gives the same run to the byte.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import heapq
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from faults.checker import Evidence, judge
from faults.in_force import Action
from faults.operations import Operation
from faults.proxy import Acknowledged
from faults.reading import Finding
from faults.schedule import Fault
from faults.simulated import clock
from faults.simulated.books import Books
from faults.simulated.disk import Disk, MemoryStore
from faults.simulated.schedule import USERS, Schedule
from faults.told import rewards
from helpers.audit import StoredMessages
from outvote.core.decisions import Ticket
from outvote.core.errors import UnknownDecision, UnknownTask
from outvote.edge.site import Edge
from outvote.edge.store import StoreFailed
from outvote.log.memory import MemoryEngine, MemoryLog, Wire
from outvote.log.records import UP
from outvote.server.admin import views
from outvote.server.sync_server import SyncServer

RECOVER: Final = 200.0
"""Seconds, by the run's own clock, in which everybody must agree once all is well."""
LOOK_EVERY: Final = 1.0
WAKE_UPS: Final = 40
"""Times that users come to a site."""
LATEST: Final = 300.0
"""Seconds after which no more users come."""
PATIENCE: Final = 10.0
"""Seconds after which operators ask another server."""
GIVE_UP: Final = 60.0
ASTRAY: Final = 0.05
"""The share of rewards that are also sent for another process, and to any edge."""


@dataclass
class Result:
    """What came of a run."""

    seed: int
    findings: list[Finding] = field(default_factory=list)
    decisions: int = 0
    eliminations: int = 0
    records: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    operations: int = 0
    seconds: float = 0.0
    """By the run's own clock."""
    digest: str = ""
    """Of all that happened: two runs that have the same are the same."""


class FaultyWire(Wire):
    """Loses, repeats and delays messages; each copy takes its own time, so they overtake each other."""

    def __init__(self, schedule: Schedule) -> None:
        self.loss, self.delay, self.repetition = schedule.loss, schedule.delay, 0.0
        self.full = False
        self.revoked: set[str] = set()
        self._rng = random.Random(f"wire {schedule.seed}")

    def copies(self, client: str) -> Sequence[float]:
        rng = self._rng
        if self.loss and rng.random() < self.loss:
            return ()
        if self.repetition and rng.random() < self.repetition:
            return (rng.expovariate(1 / self.delay), rng.expovariate(1 / self.delay))
        return (rng.expovariate(1 / self.delay),)

    def takes(self, subject: str) -> bool:
        return not self.full and not (self.revoked and subject.startswith(UP) and subject.split(".")[2] in self.revoked)


class Process:
    """A simulated process: it can be killed without a word, and started again."""

    def __init__(self, begin: Callable[[Process], Coroutine[Any, Any, None]]) -> None:
        self.log: MemoryLog | None = None
        self.store: MemoryStore | None = None
        self.alive = False
        self.failure: Exception | None = None
        """What ended it that must not."""
        self._begin = begin
        self._tasks: dict[asyncio.Task[Any], None] = {}

    def start(self) -> None:
        self._tasks = {}
        self.alive = True
        self.spawn(self._run())

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run something within this process: it ends with it."""
        context = contextvars.copy_context()
        context.run(clock.PROCESS.set, self._tasks)
        return asyncio.get_running_loop().create_task(work, context=context)

    def kill(self) -> None:
        self.alive = False
        if self.log is not None:
            self.log.crash()
        if self.store is not None:
            self.store.detach()
        for task in list(self._tasks):
            task.cancel()

    async def _run(self) -> None:
        try:
            await self._begin(self)
        except StoreFailed:  # an edge ends when its disk is full
            self.kill()
        except Exception as error:
            self.failure = error
            self.kill()


class World:
    """A whole fleet."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.result = Result(schedule.seed)
        self.wire = FaultyWire(schedule)
        self.engine = MemoryEngine(self.wire, rng=self._random("engine"))
        self.edges: dict[str, Edge] = {}
        self.servers: dict[str, SyncServer] = {}
        self.task_ids: dict[str, str] = {}
        self.books = {name: Books(name) for name in schedule.edges}
        self.clocks: dict[str, clock.Clocks] = {}
        """Of edges."""
        self.actions: list[Action] = []
        self.disks = {name: Disk(self._random(f"disk {name}")) for name in schedule.edges}
        self.processes = {name: Process(self._edge(name)) for name in schedule.edges}
        self.processes |= {name: Process(self._server(name)) for name in schedule.servers}
        self.starts: Counter[str] = Counter()
        self._cut: Counter[str] = Counter()
        self._planned = {planned.name: planned for planned in (*schedule.tasks, *schedule.later)}

    def _random(self, purpose: str) -> random.Random:
        return random.Random(f"{purpose} {self.schedule.seed}")

    # ---- processes

    def _connect(self, name: str, process: Process) -> MemoryLog:
        self.starts[name] += 1
        process.log = log = self.engine.connect(name)
        if self._cut[name]:
            log.cut()
        return log

    def _edge(self, name: str) -> Callable[[Process], Coroutine[Any, Any, None]]:
        async def begin(process: Process) -> None:
            log = self._connect(name, process)
            process.store = store = MemoryStore(self.disks[name])
            time = asyncio.get_running_loop().time
            rng = self._random(f"{name} {self.starts[name]}")
            clocks = self.clocks[name] = clock.Clocks(time, self._random(f"clocks {name} {self.starts[name]}"))
            edge = self.edges[name] = Edge(name, store, clock=clocks.steady, wall_clock=clocks.wall, rng=rng)
            self.books[name].started(self.disks[name], clocks.now(), time(), clean=store.clean)
            await edge.start(log)
            await edge.watch()

        return begin

    def _server(self, name: str) -> Callable[[Process], Coroutine[Any, Any, None]]:
        async def begin(process: Process) -> None:
            log = self._connect(name, process)
            rng = self._random(f"{name} {self.starts[name]}")
            server = SyncServer(log, clock=asyncio.get_running_loop().time, rng=rng)
            await server.start()
            self.servers[name] = server
            await server.watch()

        return begin

    def cut(self, *names: str) -> None:
        for name in names:
            self._cut[name] += 1
            log = self.processes[name].log
            if log is not None:
                log.cut()

    def restore(self, *names: str) -> None:
        for name in names:
            self._cut[name] -= 1
            log = self.processes[name].log
            if log is not None and not self._cut[name] and self.processes[name].alive:
                log.restore()

    # ---- a run

    async def run(self) -> Result:
        for process in self.processes.values():
            process.start()
        await asyncio.gather(
            *(
                self._operate(Operation(0.0, "create-task", planned.name, self.schedule.servers[0]))
                for planned in self.schedule.tasks
            )
        )
        works = [
            *(self._use(name) for name in self.schedule.edges),
            *(self._go_wrong(fault) for fault in self.schedule.faults),
            *(self._operators(target) for target in sorted({each.target for each in self.schedule.operations})),
        ]
        await asyncio.gather(*works)
        await self._agree()
        self._describe()
        return self.result

    async def _go_wrong(self, fault: Fault) -> None:
        await asyncio.sleep(fault.at)
        self.result.faults[fault.kind] += 1
        kind, target = fault.kind, fault.target
        everybody = tuple(self.processes)
        if kind == "cut-edge" or kind == "cut-server":
            self.cut(target)
            await asyncio.sleep(fault.lasts)
            self.restore(target)
        elif kind == "engine-away":
            self.cut(*everybody)
            await asyncio.sleep(fault.lasts)
            self.restore(*everybody)
        elif kind == "engine-full":
            self.wire.full = True
            await asyncio.sleep(fault.lasts)
            self.wire.full = False
        elif kind in ("loss", "repetition"):
            before = getattr(self.schedule, kind, 0.0)
            setattr(self.wire, kind, fault.amount)
            await asyncio.sleep(fault.lasts)
            setattr(self.wire, kind, before)
        elif kind == "delay":
            self.wire.delay = fault.amount * 2
            await asyncio.sleep(fault.lasts)
            self.wire.delay = self.schedule.delay
        else:
            await self._crash(kind, target, fault.lasts)

    async def _crash(self, kind: str, target: str, lasts: float) -> None:
        process = self.processes[target]
        if kind == "full-disk-edge":  # the edge ends by itself
            self.disks[target].full = True
            await asyncio.sleep(lasts)
            self.disks[target].full = False
        else:
            edge = self.edges.pop(target, None)
            if kind == "stop-edge" and edge is not None and process.alive:
                with suppress(StoreFailed):  # its disk is full
                    await edge.stop()
            process.kill()
            self.servers.pop(target, None)
            if kind == "power-cut-edge":
                self.disks[target].cut_power()
            elif kind == "wipe-edge":
                self.disks[target].wipe(self._random(f"wiped {target} {self.starts[target]}"))
            await asyncio.sleep(lasts)
        if not process.alive:
            process.start()

    # ---- users

    async def _use(self, name: str) -> None:
        """Users of one site: some rewards come at once, some later or too late, some again, some never, some astray."""
        rng = self._random(f"users {name}")
        time = asyncio.get_running_loop().time
        due: list[tuple[float, int, str, Ticket, float]] = []
        share = self.schedule.decisions / len(self.schedule.edges)
        burst = round(share / WAKE_UPS)
        names = ["clear", *self._planned]
        served = 0
        while served < share and time() < LATEST:
            await asyncio.sleep(rng.expovariate(share / (burst * USERS)))
            edge = self.edges.get(name)
            if edge is None or not self.processes[name].alive:
                continue
            for _ in range(rng.randint(1, 2 * burst - 1)):
                task = rng.choice(names)
                try:
                    ticket = self._decide(name, edge, task)
                except UnknownTask:
                    continue
                served += 1
                means = list(self._planned[task].means.values())
                if ticket.group >= 0:
                    for part, reward in rewards(rng, rng.random() < means[ticket.arm]):
                        at = time() + part * self._planned[task].window
                        heapq.heappush(due, (at, len(due) + served, task, ticket, reward))
                while due and due[0][0] <= time():
                    _, _, task, ticket, reward = heapq.heappop(due)
                    self._reward(name, task, ticket, reward)
                    if rng.random() < ASTRAY:
                        self._reward(name, task, ticket._replace(run=ticket.run[::-1]), 1.0)
                        self._reward(rng.choice(self.schedule.edges), task, ticket, 1.0)
        self.result.decisions += served

    def _decide(self, name: str, edge: Edge, task: str) -> Ticket:
        hosted = edge.find(task)
        ticket = edge.decide(hosted)
        if ticket.group >= 0:
            now, time = self.clocks[name].now(), asyncio.get_running_loop().time()
            self.books[name].decided((edge.store.incarnation, hosted.task_id), hosted.task, ticket, now, time)
        return ticket

    def _reward(self, name: str, task: str, ticket: Ticket, reward: float) -> None:
        """Sent to an edge; whatever it does not expect is refused."""
        edge = self.edges.get(name)
        if edge is None or not self.processes[name].alive or task not in edge.tasks:
            return
        hosted, taken = edge.tasks[task], True
        try:
            edge.reward(hosted, Ticket.parse(str(ticket)), reward)
        except UnknownDecision:
            taken = False
        if not hosted.stopped and not hosted.player.finished and ticket.arm in hosted.player.remaining:
            player, now = (edge.store.incarnation, hosted.task_id), self.clocks[name].now()
            self.books[name].rewarded(player, hosted.task, ticket, reward, now, taken=taken)

    # ---- operators

    async def _operators(self, target: str) -> None:
        began = asyncio.get_running_loop().time()
        for operation in self.schedule.operations:
            if operation.target == target:
                await asyncio.sleep(max(0.0, began + operation.at - asyncio.get_running_loop().time()))
                await self._operate(operation)

    async def _operate(self, operation: Operation) -> None:
        """Ask one server, and another one where there is no answer, until it is done."""
        loop = asyncio.get_running_loop()
        until = loop.time() + GIVE_UP
        kind, target = operation.kind, operation.target
        names = [operation.server, *(name for name in self.schedule.servers if name != operation.server)]
        attempts = 0
        task_id = "" if kind in ("create-task", "discount") else self.task_ids[target]
        while loop.time() < until:
            name = names[attempts % len(names)]
            attempts += 1
            server = self.servers.get(name)
            if server is None:
                await asyncio.sleep(0.2)
                continue
            asked = self.processes[name].spawn(self._ask(server, operation, task_id, attempts))
            await asyncio.wait([asked], timeout=PATIENCE)
            if asked.done() and not asked.cancelled() and asked.exception() is None:
                task_id = asked.result() or task_id
                if kind == "create-task":
                    self.task_ids[target] = task_id
                end = len(self.engine.records) if kind == "discount" else None
                self.actions.append(Action(kind, target, task_id, acknowledged=True, end=end))
                return
            asked.cancel()
            await asyncio.sleep(0.2)
        self.actions.append(Action(kind, target, task_id, acknowledged=False))

    async def _ask(self, server: SyncServer, operation: Operation, task_id: str, attempts: int) -> str | None:
        match operation.kind:
            case "create-task":
                there = server.state.named(operation.target)
                if attempts > 1 and there is not None and there.task_id != self.task_ids.get(operation.target):
                    return there.task_id  # an earlier attempt was stored
                return await server.create(self._planned[operation.target].task(self.schedule.edges))
            case "stop-task":
                await server.stop_task(task_id)
            case "kill-task" | "revive-task":
                await server.switch(task_id, killed=operation.kind == "kill-task")
            case "delete-task":
                if task_id not in server.state.deleted:
                    await server.delete_task(task_id)
            case "discount":
                self.wire.revoked.add(operation.target)
                self.cut(operation.target)
                await server.discount(operation.target)
        return None

    # ---- the end

    async def _agree(self) -> None:
        """Wait until everybody agrees, and judge; what is found then must go away in a while, or it stays."""
        self.wire.loss = self.wire.repetition = 0.0
        loop = asyncio.get_running_loop()
        until = loop.time() + RECOVER
        while True:
            while (why := self._not_yet()) is not None and loop.time() < until:
                await asyncio.sleep(LOOK_EVERY)
            found = [finding for books in self.books.values() for finding in books.findings]
            found += [Finding("not recovered", why)] if why is not None else judge(self._evidence())
            if not found or loop.time() >= until:
                self.result.findings = found
                return
            await asyncio.sleep(RECOVER / 4)

    def _not_yet(self) -> str | None:
        """Why the run cannot be judged yet."""
        for name, process in self.processes.items():
            if process.failure is not None:
                return f"{name} failed: {process.failure!r}"
        for name in self.schedule.servers:
            server = self.servers.get(name)
            if server is None or not server.ready or server.state.read < len(self.engine.records):
                return f"{name} has not read the log"
        state = self.servers[self.schedule.servers[0]].state
        for name in self.schedule.edges:
            edge = self.edges.get(name)
            if edge is None or not self.processes[name].alive:
                return f"{name} does not run"
            if name in self.wire.revoked:
                continue
            if any(hosted.waiting for hosted in edge.tasks.values()):
                return f"{name} has messages to send"
            if any(not group.left for hosted in edge.tasks.values() for group in hosted.player.decisions.groups):
                return f"{name} has decisions to count"
            known = {
                hosted.task_id: (hosted.announced, hosted.stopped, hosted.killed) for hosted in edge.tasks.values()
            }
            if known != {id: (task.announced, task.stopped, task.killed) for id, task in state.tasks.items()}:
                return f"{name} does not know what the log has"
        return None

    def _evidence(self) -> Evidence:
        hearing = [name for name in self.schedule.edges if name not in self.wire.revoked]
        deleted = [each.target for each in self.actions if each.kind == "delete-task" and each.acknowledged]
        served = {}
        for name in hearing:
            ended = [task for task, hosted in self.edges[name].tasks.items() if hosted.stopped or hosted.killed]
            served[name] = {task: self._served(name, task) for task in (*ended, *deleted)}
        return Evidence(
            log=list(self.engine.records),
            acknowledged=[
                Acknowledged(record.subject, record.payload, record.sequence, record.stored)
                for record in self.engine.acknowledged
            ],
            stores=[self._kept(name) for name in self.schedule.edges],
            servers={name: self._said(server) for name, server in self.servers.items()},
            edges={name: self._view(self.edges[name]) for name in hearing},
            told={(name, task): told for name, books in self.books.items() for task, told in books.told().items()},
            damaged=self.schedule.damaged,
            actions=self.actions,
            served=served,
            remembered={name: self._remembered(name) for name in hearing},
        )

    def _served(self, name: str, task: str) -> str | None:
        try:
            ticket = self._decide(name, self.edges[name], task)
        except UnknownTask:
            return None
        return self.edges[name].tasks[task].task.arms[ticket.arm]

    def _kept(self, name: str) -> StoredMessages:
        disk = self.disks[name]
        messages = {
            (task_id, sequence): payload
            for task_id, kept in disk.written.messages.items()
            for sequence, payload in kept.items()
        }
        return StoredMessages(name, disk.incarnation, messages)

    def _said(self, server: SyncServer) -> dict[str, Any]:
        return {
            task_id: msgspec.json.decode(msgspec.json.encode(views.description(task)))
            for task_id, task in server.state.tasks.items()
        }

    def _view(self, edge: Edge) -> dict[str, Any]:
        found = {}
        for hosted in edge.tasks.values():
            remaining = [hosted.task.arms[arm] for arm in hosted.player.remaining]
            found[hosted.task_id] = {
                "remaining": remaining,
                "winner": remaining[0] if len(remaining) == 1 else None,
                "stopped": hosted.stopped,
                "killed": hosted.killed,
                "messages_waiting": hosted.waiting,
            }
        return found

    def _remembered(self, name: str) -> set[str]:
        content = self.disks[name].written
        return {*content.tasks, *content.snapshots, *content.messages}

    def _describe(self) -> None:
        result = self.result
        digest = hashlib.sha256()
        for record in self.engine.records:
            digest.update(repr(tuple(record)).encode())
        for name, disk in self.disks.items():
            digest.update(repr((name, sorted(disk.written.snapshots.items()))).encode())
        result.digest = digest.hexdigest()
        result.records = len(self.engine.records)
        result.eliminations = sum(".elim." in record.subject for record in self.engine.records)
        result.operations = len(self.actions)
        result.seconds = asyncio.get_running_loop().time()


def run(schedule: Schedule) -> Result:
    """Run one schedule to its end."""
    return clock.run(World(schedule).run())
