"""The synchronization server: it reads the log, proposes what the log lacks, and answers edges that catch up.

It owns nothing: all that it knows is in the log, so it may be killed at any time, and several may run side by side.
Operators are told which edges are alive, and what has changed.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from outvote.concurrency import cancel
from outvote.core.errors import InvalidTask
from outvote.core.task import Task
from outvote.engine.follower import Follower
from outvote.engine.nats_log import NatsLog
from outvote.log.catch_up import ASK_EVERY
from outvote.log.expectation import Expectation
from outvote.log.history import EdgeHistory
from outvote.log.log_state import LogState, TaskState
from outvote.log.records import DOWN, UP, DownSubject, discount_record, switch_record, task_record
from outvote.server.changes import FLEET, Changes
from outvote.server.event_log import EventLog
from outvote.server.liveness import EdgeState, Liveness
from outvote.server.poll_rate import PollRate

STRAGGLERS: Final = 1.0
"""Seconds after which an engine has stored what it had taken of an edge before it shut it out."""
LOOK_EVERY: Final = 5.0
"""Seconds between two looks at who has fallen silent."""


class NameTaken(InvalidTask):
    """A task of that name is there."""


class SyncServer:
    """One server process."""

    def __init__(self, link: NatsLog, *, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since 1970."""
        self.link = link
        self.clock = clock
        self.fold = LogState()
        self.signs = Liveness(clock())
        self.pace = PollRate()
        self.changes = Changes()
        self._journal = EventLog()
        self._caught_up = False
        self._due = asyncio.Event()
        """Set when there may be something to propose."""
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._proposing: asyncio.Task[None] | None = None
        self._follower: Follower | None = None

    @property
    def ready(self) -> bool:
        """Whether this server knows all that the log holds, and the engine takes more."""
        return self.has_read and self.log_writable

    @property
    def has_read(self) -> bool:
        """Whether this server knows all that the log holds: only then does it propose and answer."""
        return self.link.connected and self._follower is not None and self._follower.current

    @property
    def log_end(self) -> int:
        """How far the log is known to reach."""
        return 0 if self._follower is None else self._follower.end

    @property
    def log_writable(self) -> bool:
        """Whether the engine took what it was asked to store, when it was last asked."""
        return self._follower is not None and self._follower.stores

    async def start(self) -> None:
        """Read the log from its beginning and go on with it; returns when all that was there has been read.

        Edges are awaited from then on: to read a long log takes its time.
        """
        await self.link.ensure_stream()
        self._follower = await self.link.follow(self._read)
        await self._follower.wait_current()
        self._journal.begin(self.fold)
        self._caught_up = True
        self._proposing = asyncio.create_task(self._propose())
        await self.link.answer(self._reply)
        await self.link.overhear(self.heard)
        self.signs.started = self.clock()

    async def watch(self) -> None:
        """Until this server cannot go on: raises why."""
        assert self._follower is not None
        assert self._proposing is not None
        await asyncio.gather(self._follower.watch(), asyncio.shield(self._proposing))

    async def stop(self) -> None:
        if self._proposing is not None:
            await cancel([self._proposing])
        await self.link.close()

    # ---- what operators do

    def check_free(self, task: Task) -> None:
        """Refuse a name that a task has."""
        there = self.fold.named(task.name)
        if there is not None:
            raise NameTaken(
                f"a task named {task.name!r} exists already ({there.task_id}): {differences(there.task, task)}"
            )
        for task_id, why in self.fold.unreadable.items():
            if task_id.rpartition("-")[0] == task.name:  # a version that can read it would drop the new one
                raise NameTaken(
                    f"a task named {task.name!r} exists already ({task_id}), and this version cannot read it: {why}. "
                    f"Choose another name, or delete {task_id}"
                )

    async def create(self, task: Task) -> str:
        """A new task under its name; a name is free again once the task that had it was deleted."""
        self.check_free(task)
        task_id = f"{task.name}-{secrets.token_hex(4)}"
        await self.link.store(str(DownSubject(task_id, "task")), task_record(task))
        await self.wait_for(lambda: task_id in self.fold.tasks or task_id in self.fold.deleted)
        if task_id not in self.fold.tasks:  # another server stored one of that name at the same time
            self.check_free(task)
            raise InvalidTask(f"{task.name!r} was created and deleted meanwhile: look at the tasks and try again")
        return task_id

    async def stop_task(self, task_id: str) -> None:
        """No more is decided; edges serve the fallback, learn nothing and send nothing."""
        self._known(task_id)
        await self.link.store(str(DownSubject(task_id, "stop")), b"{}")
        await self.wait_for(lambda: task_id not in self.fold.tasks or self.fold.tasks[task_id].stopped)

    async def delete_task(self, task_id: str) -> None:
        """Edges forget it."""
        if task_id not in self.fold.unreadable:
            self._known(task_id)
        await self.link.store(str(DownSubject(task_id, "delete")), b"{}")
        await self.wait_for(lambda: task_id in self.fold.deleted)

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
            end = await self.link.log_end()
            await self.wait_for(lambda end=end: self.fold.read >= end)  # type: ignore[misc]
            due = [task for task in self.fold.tasks.values() if task.running and task.messages_of(edge)]
            # All at once: a task must not be decided with this edge while others are told.
            await asyncio.gather(*(self._say_next(task.task_id, "discount", record) for task in due))
            names |= dict.fromkeys(task.task.name for task in due if not task.messages_of(edge))
        return list(names)

    # ---- what operators see

    def edges(self) -> Iterator[tuple[str, EdgeState, EdgeHistory]]:
        """All edges that there are, in the order of their names."""
        now = self.clock()
        for name in sorted(self.edge_names()):
            history = self.fold.edges.get(name)
            state = self.signs.state(name, seen=history is not None, now=now)
            yield name, state, history or EdgeHistory()

    def edge_names(self) -> set[str]:
        """Edges that were heard of, are in the log or are named by a task."""
        names = {*self.signs.last, *self.fold.edges}
        for found in self.fold.tasks.values():
            names.update(found.task.player_names)
        return names

    def edge_counts(self) -> Counter[EdgeState]:
        """How many edges are in which state."""
        return Counter(state for _, state, _ in self.edges())

    async def look_around(self) -> None:
        """For ever: tell those who watch, and the log, when an edge has fallen silent, or the engine went away."""
        before: object = None
        while True:
            counts = self.edge_counts()
            self.pace.look(counts["alive"], self.clock())
            self.signs.silent_after = self.pace.silent_after
            now = self.link.connected, self.ready, counts
            if now != before:
                self.changes.note(FLEET)
            before = now
            self._journal.look(((name, state) for name, state, _ in self.edges()), self.clock())
            await asyncio.sleep(LOOK_EVERY)

    def heard(self, edge: str) -> None:
        """An edge asked what it may have missed, whichever server answers."""
        self.pace.hear()
        self._note_sign(edge)

    def _note_sign(self, edge: str) -> None:
        if self.signs.hear(edge, self.clock()):
            self.changes.note(FLEET)

    def _tell(self, task: TaskState | None, subject: str) -> None:
        """Tell those who watch, and the log, of a record that was read."""
        if task is not None:
            self._journal.note(self.fold, task, subject, self.clock())
            self.changes.note(task.task_id, FLEET)
            if self._caught_up and subject.startswith(UP):  # a message is a sign of life, too
                self._note_sign(subject.split(".", 3)[2])
        elif subject.startswith(DOWN):
            self._journal.note_unreadable(self.fold, subject)
            self.changes.note(FLEET)

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
        if task_id not in self.fold.tasks:
            raise InvalidTask(f"unknown task: got {task_id!r}, there are {sorted(self.fold.tasks) or 'none'}")
        return self.fold.tasks[task_id]

    async def _say_next(self, task_id: str, kind: str, record: bytes) -> None:
        """Store a record under the next number of its kind: of two said at once, the second in the log is the last."""
        number, new = 0, False

        def was_said() -> bool:
            return task_id not in self.fold.tasks or self.fold.tasks[task_id].next_number[kind] > number

        while not new:
            number = self._known(task_id).next_number[kind]
            new = await self.link.store(str(DownSubject(task_id, kind, number)), record)
            await self.wait_for(was_said)

    async def _read(self, subject: str, payload: bytes, sequence: int, stored: float) -> None:
        task = self.fold.apply(subject, payload, sequence, stored)
        if self.fold.pending:
            self._due.set()
        self._tell(task, subject)
        for condition, future in self._waiters:
            if not future.done() and condition():
                future.set_result(None)

    def _reply(self, edge: str, question: dict[str, Any]) -> dict[str, Any] | None:
        """None while this server has not read all: the edge asks again, and may meet another."""
        if not self.has_read:
            return None
        known = question.get("tasks")
        counts = known if isinstance(known, dict) and all(type(each) is int for each in known.values()) else {}
        answer = self.fold.catch_up(edge, str(question.get("incarnation", "")), counts)
        self.pace.answer()
        if self.pace.period > ASK_EVERY:  # there are very many edges
            answer["ask_again"] = self.pace.period
        return answer

    async def _propose(self) -> None:
        """Store what the log lacks; whoever is first wins, and `_read` will say what it was."""
        while True:
            self._due.clear()
            for proposal in list(self.fold.proposals()):
                await self.link.store(proposal.subject, proposal.payload)
            await self._due.wait()


def differences(old: Task, new: Task) -> str:
    """What tells two descriptions apart, for the operator."""
    before, after = old.to_json(), new.to_json()
    found = [f"{key} is {before[key]!r}, asked is {after[key]!r}" for key in before if before[key] != after[key]]
    return "; ".join(found) or "it is the same in every field"
