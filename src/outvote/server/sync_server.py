"""The synchronization server: it reads the log, proposes what the log lacks, and answers edges that catch up.

It owns nothing: all that it knows is in the log, so it may be killed at any time, and several may run side by side.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Final

import msgspec

from outvote.concurrency import cancel
from outvote.core.errors import InvalidTask
from outvote.core.task import Task
from outvote.log.catch_up import Answer, Question
from outvote.log.events import EliminationDue
from outvote.log.expectation import Expectation
from outvote.log.log import Log, Reader, Record
from outvote.log.log_state import LogState, TaskState
from outvote.log.records import DownSubject, discount_record, switch_record, task_record
from outvote.server.monitor import Monitor

STRAGGLERS: Final = 1.0
"""Seconds after which an engine has stored what it had taken of an edge before it shut it out."""


class NameTaken(InvalidTask):
    """A task of that name is there."""


class SyncServer:
    """One server process."""

    def __init__(self, log: Log, *, clock: Callable[[], float] = time.time, rng: random.Random | None = None) -> None:
        """`clock` gives seconds since 1970. `rng` makes the ids of tasks repeatable; without it they are drawn by the
        system's generator."""
        self.log = log
        self.clock = clock
        self.state = LogState()
        self.monitor = Monitor(self.state, clock)
        self._rng = rng or random.SystemRandom()
        self._due: set[str] = set()
        """Tasks of which the core has an elimination that the log may lack."""
        self._wake = asyncio.Event()
        """Set when there is something to publish."""
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._publishing: asyncio.Task[None] | None = None
        self._reader: Reader | None = None

    @property
    def ready(self) -> bool:
        """Whether this server knows all that the log holds, and the engine takes more."""
        return self.has_read and self.log_writable

    @property
    def has_read(self) -> bool:
        """Whether this server knows all that the log holds: only then does it propose and answer."""
        return self.log.connected and self._reader is not None and self._reader.current

    @property
    def log_end(self) -> int:
        """How far the log is known to reach."""
        return 0 if self._reader is None else self._reader.end

    @property
    def log_writable(self) -> bool:
        """Whether the engine took what it was asked to store, when it was last asked."""
        return self._reader is not None and self._reader.writable

    async def start(self) -> None:
        """Read the log from its beginning and go on with it; returns when all that was there has been read.

        Edges are awaited from then on: to read a long log takes its time.
        """
        await self.log.prepare()
        self._reader = await self.log.follow(self._read)
        await self._reader.wait_current()
        self.monitor.begin()
        self._publishing = asyncio.create_task(self._publish())
        await self.log.answer(self._reply)
        await self.log.overhear(self.monitor.on_question)
        self.monitor.await_edges()

    async def watch(self) -> None:
        """Until this server cannot go on: raises why."""
        assert self._reader is not None
        assert self._publishing is not None
        await asyncio.gather(self._reader.watch(), asyncio.shield(self._publishing))

    async def look_around(self) -> None:
        """For ever: tell those who watch when an edge has fallen silent, or the engine went away."""
        await self.monitor.look_around(lambda: (self.log.connected, self.ready))

    async def stop(self) -> None:
        if self._publishing is not None:
            await cancel([self._publishing])
        await self.log.close()

    # ---- what operators do

    def check_free(self, task: Task) -> None:
        """Refuse a name that a task has."""
        there = self.state.named(task.name)
        if there is not None:
            raise NameTaken(
                f"a task named {task.name!r} exists already ({there.task_id}): {differences(there.task, task)}"
            )
        for task_id, why in self.state.unreadable.items():
            if task_id.rpartition("-")[0] == task.name:  # a version that can read it would drop the new one
                raise NameTaken(
                    f"a task named {task.name!r} exists already ({task_id}), and this version cannot read it: {why}. "
                    f"Choose another name, or delete {task_id}"
                )

    async def create(self, task: Task) -> str:
        """A new task under its name; a name is free again once the task that had it was deleted."""
        self.check_free(task)
        task_id = f"{task.name}-{self._rng.getrandbits(32):08x}"
        await self.log.append(str(DownSubject(task_id, "task")), task_record(task))
        await self.wait_for(lambda: task_id in self.state.tasks or task_id in self.state.deleted)
        if task_id not in self.state.tasks:  # another server stored one of that name at the same time
            self.check_free(task)
            raise InvalidTask(f"{task.name!r} was created and deleted meanwhile: look at the tasks and try again")
        return task_id

    async def stop_task(self, task_id: str) -> None:
        """No more is decided; edges serve the fallback, learn nothing and send nothing."""
        self._known(task_id)
        await self.log.append(str(DownSubject(task_id, "stop")), b"{}")
        await self.wait_for(lambda: task_id not in self.state.tasks or self.state.tasks[task_id].stopped)

    async def delete_task(self, task_id: str) -> None:
        """Edges forget it."""
        if task_id not in self.state.unreadable:
            self._known(task_id)
        await self.log.append(str(DownSubject(task_id, "delete")), b"{}")
        await self.wait_for(lambda: task_id in self.state.deleted)

    async def expect(self, task_id: str, expectation: Expectation) -> None:
        """What operators expect of a task from now on."""
        await self._say_next(task_id, "expect", expectation.record())

    async def switch(self, task_id: str, *, killed: bool) -> None:
        """The kill switch: edges serve the fallback and learn nothing from it, until it is used again."""
        await self._say_next(task_id, "kill", switch_record(killed))

    async def discount(self, edge: str) -> list[str]:
        """What an edge has sent so far counts no more in the tasks that run; the names of those that had something.

        A server that lags behind does not know of all messages: it reads first what the log holds now. And an edge that
        was just shut out may have sent something that the engine had taken and not stored yet: so it looks twice.
        """
        record = discount_record(edge)
        names: dict[str, None] = {}
        for wait in (0.0, STRAGGLERS):
            await asyncio.sleep(wait)
            end = await self.log.log_end()
            await self.wait_for(lambda end=end: self.state.read >= end)  # type: ignore[misc]
            due = [task for task in self.state.tasks.values() if task.running and task.messages_of(edge)]
            # All at once: a task must not be decided with this edge while others are told.
            await asyncio.gather(*(self._say_next(task.task_id, "discount", record) for task in due))
            names |= dict.fromkeys(task.task.name for task in due if not task.messages_of(edge))
        return list(names)

    # ---- how it works

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        """Until the log, as read, makes it true."""
        if condition():
            return
        waiter = condition, asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter[1]
        finally:
            self._waiters.remove(waiter)

    def _known(self, task_id: str) -> TaskState:
        if task_id not in self.state.tasks:
            raise InvalidTask(f"unknown task: got {task_id!r}, there are {sorted(self.state.tasks) or 'none'}")
        return self.state.tasks[task_id]

    async def _say_next(self, task_id: str, kind: str, record: bytes) -> None:
        """Store a record under the next number of its kind: of two said at once, the second in the log is the last."""
        number, new = 0, False

        def was_said() -> bool:
            return task_id not in self.state.tasks or self.state.tasks[task_id].next_number[kind] > number

        while not new:
            number = self._known(task_id).next_number[kind]
            new = await self.log.append(str(DownSubject(task_id, kind, number)), record)
            await self.wait_for(was_said)

    def _read(self, record: Record) -> None:
        events = self.state.apply(record)
        for event in events:
            if isinstance(event, EliminationDue):
                self._due.add(event.task_id)
                self._wake.set()
            self.monitor.note(event)
        for condition, future in self._waiters:
            if not future.done() and condition():
                future.set_result(None)

    def _reply(self, edge: str, question: Question) -> Answer | None:
        """None while this server has not read all: the edge asks again, and may meet another."""
        if not self.has_read:
            return None
        answer = self.state.catch_up(edge, question)
        ask_again = self.monitor.on_answer()
        return answer if ask_again is None else msgspec.structs.replace(answer, ask_again=ask_again)

    async def _publish(self) -> None:
        """Store the eliminations that the core has come to; whoever is first wins, and `_read` will say what it was."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            due, self._due = sorted(self._due), set()
            for task_id in due:
                task = self.state.tasks.get(task_id)
                proposal = None if task is None else task.proposal()
                if proposal is not None:
                    await self.log.append(proposal.subject, proposal.payload)


def differences(old: Task, new: Task) -> str:
    """What tells two descriptions apart, for the operator."""
    before, after = old.to_json(), new.to_json()
    found = [f"{key} is {before[key]!r}, asked is {after[key]!r}" for key in before if before[key] != after[key]]
    return "; ".join(found) or "it is the same in every field"
