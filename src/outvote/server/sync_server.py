"""The synchronization server: it reads the log, publishes eliminations, and answers edges that catch up.

All its state comes from the log, so it may be killed at any time, and several servers may run side by side.
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
from outvote.presenters import task_fields
from outvote.server.monitor import Monitor

STRAGGLERS: Final = 1.0
"""Seconds until the engine has stored what a revoked edge sent before it was disconnected."""


class NameTaken(InvalidTask):
    """A task of that name exists."""


class SyncServer:
    """One server process."""

    def __init__(self, log: Log, *, clock: Callable[[], float] = time.time, rng: random.Random | None = None) -> None:
        """`clock` returns seconds since 1970. `rng` makes task ids reproducible; by default the system draws them."""
        self.log = log
        self.clock = clock
        self.state = LogState()
        self.monitor = Monitor(self.state, clock)
        self._rng = rng or random.SystemRandom()
        self._due: set[str] = set()
        """Tasks with an elimination that the log may lack."""
        self._wake = asyncio.Event()
        """Set when there is something to publish."""
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._publishing: asyncio.Task[None] | None = None
        self._reader: Reader | None = None

    @property
    def ready(self) -> bool:
        """Whether this server has read the whole log, and the engine stores new records."""
        return self.has_read and self.log_writable

    @property
    def has_read(self) -> bool:
        """Whether this server has read the whole log: only then does it answer edges."""
        return self.log.connected and self._reader is not None and self._reader.current

    @property
    def log_end(self) -> int:
        """Sequence of the last record known to be in the log."""
        return 0 if self._reader is None else self._reader.end

    @property
    def log_writable(self) -> bool:
        """Whether the last check of writing succeeded."""
        return self._reader is not None and self._reader.writable

    async def start(self) -> None:
        """Follow the log from its beginning; return when all existing records were read.

        Edges are awaited only from then on, because reading a long log takes time.
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
        """Run until this server fails for good, then raise the reason."""
        assert self._reader is not None
        assert self._publishing is not None
        await asyncio.gather(self._reader.watch(), asyncio.shield(self._publishing))

    async def look_around(self) -> None:
        """Run for ever: notify watchers when an edge falls silent or the engine is lost."""
        await self.monitor.look_around(lambda: (self.log.connected, self.ready))

    async def stop(self) -> None:
        if self._publishing is not None:
            await cancel([self._publishing])
        await self.log.close()

    # ---- operations

    def check_free(self, task: Task) -> None:
        """Raise `NameTaken` if a task has this name."""
        existing = self.state.named(task.name)
        if existing is not None:
            raise NameTaken(
                f"must be a new one, got {task.name!r}, which {existing.task_id} has: "
                f"{differences(existing.task, task)}",
                field="name",
                code="duplicate",
            )
        for task_id, why in self.state.unreadable.items():
            if task_id.rpartition("-")[0] == task.name:  # servers that can read it would reject the new one
                raise NameTaken(
                    f"must be a new one, got {task.name!r}, which {task_id} has, and this version cannot read it: "
                    f"{why}. Choose another name, or delete {task_id}",
                    field="name",
                    code="duplicate",
                )

    async def create(self, task: Task) -> str:
        """Create a task and return its id. A name is free again once its task was deleted."""
        self.check_free(task)
        task_id = f"{task.name}-{self._rng.getrandbits(32):08x}"
        await self.log.append(str(DownSubject(task_id, "task")), task_record(task))
        await self.wait_for(lambda: task_id in self.state.tasks or task_id in self.state.deleted)
        if task_id not in self.state.tasks:  # another server stored one of that name at the same time
            self.check_free(task)
            raise InvalidTask(f"{task.name!r} was created and deleted meanwhile: look at the tasks and try again")
        return task_id

    async def stop_task(self, task_id: str) -> None:
        """Stop a task: no more arms are eliminated; edges serve the winner or the fallback, and send nothing."""
        self._known(task_id)
        await self.log.append(str(DownSubject(task_id, "stop")), b"{}")
        await self.wait_for(lambda: task_id not in self.state.tasks or self.state.tasks[task_id].stopped)

    async def delete_task(self, task_id: str) -> None:
        """Delete a task: edges forget it."""
        if task_id not in self.state.unreadable:
            self._known(task_id)
        await self.log.append(str(DownSubject(task_id, "delete")), b"{}")
        await self.wait_for(lambda: task_id in self.state.deleted)

    async def expect(self, task_id: str, expectation: Expectation) -> None:
        """Store what operators expect of a task from now on."""
        await self._append_next(task_id, "expect", expectation.record())

    async def switch(self, task_id: str, *, killed: bool) -> None:
        """Use the kill switch: while a task is killed, edges serve the fallback and learn nothing."""
        await self._append_next(task_id, "kill", switch_record(killed))

    async def discount(self, edge: str) -> list[str]:
        """Ignore all messages of an edge so far in running tasks; return the names of the tasks that had any.

        The server first reads the log to its current end, as it may lag behind. It repeats this after a pause: the
        engine may not have stored yet what a revoked edge sent last.
        """
        record = discount_record(edge)
        names: dict[str, None] = {}
        for wait in (0.0, STRAGGLERS):
            await asyncio.sleep(wait)
            end = await self.log.log_end()
            await self.wait_for(lambda end=end: self.state.read >= end)  # type: ignore[misc]
            due = [task for task in self.state.tasks.values() if task.running and task.messages_of(edge)]
            # In parallel: no task may use this edge's messages while others are being discounted.
            await asyncio.gather(*(self._append_next(task.task_id, "discount", record) for task in due))
            names |= dict.fromkeys(task.task.name for task in due if not task.messages_of(edge))
        return list(names)

    # ---- internals

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        """Return once the records read make the condition true."""
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
            raise InvalidTask(f"unknown task: got {task_id!r}, look at the tasks")
        return self.state.tasks[task_id]

    async def _append_next(self, task_id: str, kind: str, record: bytes) -> None:
        """Store a record under the next number of its kind. Of two at once, the later one in the log is in force."""
        number, new = 0, False

        def was_applied() -> bool:
            return task_id not in self.state.tasks or self.state.tasks[task_id].next_number[kind] > number

        while not new:
            number = self._known(task_id).next_number[kind]
            new = await self.log.append(str(DownSubject(task_id, kind, number)), record)
            await self.wait_for(was_applied)

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
        """Answer an edge; None while this server lags behind: the edge retries, perhaps with another server."""
        if not self.has_read:
            return None
        answer = self.state.catch_up(edge, question)
        ask_again = self.monitor.on_answer()
        return answer if ask_again is None else msgspec.structs.replace(answer, ask_again=ask_again)

    async def _publish(self) -> None:
        """Store the core's eliminations. The first server wins, and `_read` applies what was stored."""
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
    """Describe how two tasks differ, for the operator."""
    before, after = task_fields.to_json(old), task_fields.to_json(new)
    changed = [
        f"{name} is {before[name]!r}, asked is {after[name]!r}" for name in before if before[name] != after[name]
    ]
    return "; ".join(changed) or "it is the same in every field"
