"""An edge: one player for each task at one site. It decides and learns without the network, and never waits for it.

What must not be forgotten is in its store: a message is kept, together with the player's state after it, before it is
sent; the rest is saved once a second. Messages leave on a timer tick, never with the request that completed them: the
time of a message is not the time of an event.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import random
from collections.abc import Callable
from typing import Any

from outvote.core import protocols
from outvote.core.errors import InvalidTask, OutvoteError
from outvote.core.messages import UpMessage
from outvote.core.task import Task
from outvote.network.edge_store import EdgeStore, Save
from outvote.network.link import Link
from outvote.network.records import Coder, DownSubject, UpSubject, check_name, parse

TICK = 0.2
"""Seconds between two looks at what there is to send, on average: pauses are drawn from half to one and a half."""
CATCH_UP_EVERY = 30.0
"""Seconds after which an edge asks again what it may have missed; also its sign of life."""


class UnknownTask(OutvoteError, LookupError):
    """A task that this edge does not host."""


class HostedTask:
    """One task at this site."""

    def __init__(self, task_id: str, task: Task, player: protocols.Player) -> None:
        self.task_id = task_id
        self.task = task
        self.player = player
        self.coder = Coder(task)
        self.eliminations = 0
        """How many of the task's eliminations were applied: they come numbered, and in order."""
        self.announced: tuple[int, ...] = tuple(range(len(task.arms)))
        self.stopped = False
        self.new: list[UpMessage] = []
        """Produced since the last save: not yet to be sent."""
        self.stored = -1
        """The last sequence that the log is known to hold."""
        self.windows: list[tuple[float, int]] = []
        """When which ticket's reward window passes."""
        self.dirty = False

    def eliminate(self, payload: bytes) -> None:
        message = self.coder.read_down(self.announced, payload)
        self.player.receive(message)
        self.announced = tuple(arm for arm in self.announced if arm not in message.arms)
        self.eliminations += 1
        self.dirty = True


class Edge:
    """All tasks at this site, by name."""

    def __init__(
        self, name: str, store: EdgeStore, *, clock: Callable[[], float], rng: random.Random | None = None
    ) -> None:
        """`clock` counts seconds and never goes back; `rng` is for simulation: players use the system's generator."""
        self.name = check_name("an edge's name", name)
        self.store = store
        self.tasks: dict[str, HostedTask] = {}
        self.link: Link | None = None
        self.missed = asyncio.Event()
        """Something was missed: catch up."""
        self._clock = clock
        self._rng = rng
        self._running: list[asyncio.Task[None]] = []
        for task_id, record in store.tasks().items():
            self._host(task_id, Task.from_json(json.loads(record)))

    # ---- what an application does

    def decide(self, name: str) -> tuple[int, int]:
        """An arm for one event, and the ticket that its reward must name."""
        task = self._find(name)
        answer = task.player.decide()
        task.dirty = True
        if task.task.reward_window is not None:
            self._note_windows(task)
        return answer

    def reward(self, name: str, arm: int, reward: float, ticket: int | None = None) -> None:
        """What an event earned."""
        task = self._find(name)
        task.new += task.player.reward(arm, reward, ticket=ticket)
        task.dirty = True

    # ---- what the network brings

    def hear(self, subject: str, payload: bytes) -> None:
        """Live news."""
        where = parse(subject)
        if not isinstance(where, DownSubject):
            return
        hosted = self._by_id(where.task_id)
        if where.kind == "task":
            if hosted is None:
                self._join(where.task_id, json.loads(payload))
        elif hosted is None:
            self.missed.set()
        elif where.kind == "stop":
            hosted.stopped = hosted.dirty = True
        elif where.kind == "delete":
            self._leave(hosted)
        elif where.number == hosted.eliminations:
            hosted.eliminate(payload)
            self._note_windows(hosted)
        elif where.number is not None and where.number > hosted.eliminations:
            self.missed.set()

    def caught_up(self, answer: dict[str, Any]) -> None:
        """All that the fleet knows, at once."""
        for task_id, known in answer["tasks"].items():
            hosted = self._by_id(task_id)
            if hosted is None:
                hosted = self._join(task_id, known["record"])
            for payload in known["eliminations"][hosted.eliminations :]:
                hosted.eliminate(bytes.fromhex(payload))
            self._note_windows(hosted)
            hosted.stopped = hosted.stopped or known["stopped"]
            hosted.stored = known["highest"]
        for hosted in list(self.tasks.values()):
            if hosted.task_id in answer["deleted"]:  # one that is only missing is news to a server that lags behind
                self._leave(hosted)

    # ---- timer ticks

    def keep(self) -> None:
        """Close what is due, and save: new messages with the state after them, at once and for good."""
        now = self._clock()
        for task in self.tasks.values():
            while task.windows and task.windows[0][0] <= now:
                _, ticket = heapq.heappop(task.windows)
                task.new += task.player.close(ticket)
                task.dirty = True
        changed = [task for task in self.tasks.values() if task.dirty]
        if changed:
            self.store.save_many(
                Save(task.task_id, self._state(task), [(each.sequence, task.coder.up(each)) for each in task.new])
                for task in changed
            )
            for task in changed:
                task.new = []
                task.dirty = False

    async def send(self) -> None:
        """Everything that the log lacks, in order; returns when all of it is stored."""
        assert self.link is not None
        for task in list(self.tasks.values()):
            for sequence, payload in self.store.messages(task.task_id, after=task.stored):
                where = UpSubject(self.name, task.task_id, self.store.incarnation, sequence)
                await self.link.store(str(where), payload)
                task.stored = max(task.stored, sequence)

    async def catch_up(self) -> bool:
        """Ask what was missed; False if nobody answered."""
        assert self.link is not None
        self.missed.clear()
        answer = await self.link.ask(self.name, {"incarnation": self.store.incarnation})
        if answer is None:
            return False
        self.caught_up(answer)
        return True

    async def start(self, url: str) -> None:
        """Serve at once, and connect in the background."""
        self._running = [asyncio.create_task(self._keep_going()), asyncio.create_task(self._stay_connected(url))]

    async def watch(self) -> None:
        """Until something that must go on fails, a full disk for one: raises what it was."""
        done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()

    async def stop(self) -> None:
        for each in self._running:
            each.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self.keep()
        if self.link is not None:
            await self.link.close()

    async def connect(self, url: str) -> None:
        self.link = await Link.connect(url, name=self.name)
        await self.link.listen(self._hear)

    # ---- how it works

    async def _keep_going(self) -> None:
        while True:
            await asyncio.sleep(TICK * (0.5 + random.random()))
            self.keep()

    async def _stay_connected(self, url: str) -> None:
        await self.connect(url)
        assert self.link is not None
        loop = asyncio.get_running_loop()
        due = 0.0
        while True:
            if self.missed.is_set() or self.link.reconnected.is_set() or loop.time() >= due:
                self.link.reconnected.clear()
                due = loop.time() + (CATCH_UP_EVERY if await self.catch_up() else TICK)
            await self.send()
            await asyncio.sleep(TICK * (0.5 + random.random()))

    async def _hear(self, subject: str, payload: bytes, sequence: int) -> None:
        try:
            self.hear(subject, payload)
        except OutvoteError:
            self.missed.set()

    def _find(self, name: str) -> HostedTask:
        task = self.tasks.get(name)
        if task is None:
            raise UnknownTask(f"unknown task: got {name!r}, this edge hosts {sorted(self.tasks) or 'none'}")
        return task

    def _by_id(self, task_id: str) -> HostedTask | None:
        return next((task for task in self.tasks.values() if task.task_id == task_id), None)

    def _join(self, task_id: str, record: dict[str, Any]) -> HostedTask:
        task = Task.from_json(record)
        if task.name in self.tasks:
            if self.tasks[task.name].task_id == task_id:
                return self.tasks[task.name]
            self._leave(self.tasks[task.name])  # its name was given to another: it was deleted
        self.store.put_task(task_id, json.dumps(record))
        return self._host(task_id, task)

    def _host(self, task_id: str, task: Task) -> HostedTask:
        saved = self.store.snapshot(task_id)
        if saved is None:
            hosted = HostedTask(task_id, task, protocols.player(task, self.name, rng=self._rng))
        else:
            state = json.loads(saved)
            player = protocols.restore(task, state["player"], rng=self._rng)
            if not hasattr(player, "decide"):
                raise InvalidTask(f"the saved state of {task_id} is that of a server")
            hosted = HostedTask(task_id, task, player)  # type: ignore[arg-type]  # it decides, so it is a player
            hosted.eliminations, hosted.announced = state["eliminations"], tuple(state["announced"])
            hosted.stopped = state["stopped"]
            self._note_windows(hosted)
        self.tasks[task.name] = hosted
        return hosted

    def _leave(self, hosted: HostedTask) -> None:
        self.store.drop_task(hosted.task_id)
        del self.tasks[hosted.task.name]

    def _note_windows(self, task: HostedTask) -> None:
        window = task.task.reward_window
        if window is not None:
            for ticket in task.player.take_full():
                heapq.heappush(task.windows, (self._clock() + window, ticket))

    def _state(self, task: HostedTask) -> str:
        return json.dumps(
            {
                "player": task.player.snapshot(),
                "eliminations": task.eliminations,
                "announced": task.announced,
                "stopped": task.stopped,
            }
        )
