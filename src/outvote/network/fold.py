"""The replicated state machine: what the log says, folded record by record. Pure: no sockets, no clock.

State changes only when a record is read. A server that reads enough *proposes* the next elimination; the first one
that is stored wins, and every server adopts what the log says. So any number of servers may run side by side: they
read the same records in the same order, and agree even if their floating point does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from outvote.core import protocols
from outvote.core.codes import packed_bits
from outvote.core.errors import MalformedMessage, OutvoteError
from outvote.core.ledger import Ledger
from outvote.core.messages import Elimination
from outvote.core.task import Task
from outvote.network.expectation import Expectation, read_expectation
from outvote.network.records import Coder, DownSubject, UpSubject, parse, read_switch, read_task

LARGEST_ANSWER = 256 * 1024
"""Bytes of news in one answer to an edge: an engine carries messages of up to 1 MiB."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A record that ought to be in the log."""

    subject: str
    payload: bytes


class FoldedTask:
    """One task as the log tells it."""

    def __init__(self, task_id: str, task: Task) -> None:
        self.task_id = task_id
        self.task = task
        self.coder = Coder(task)
        self.server = protocols.server(task)
        self.announced: tuple[int, ...] = tuple(range(len(task.arms)))
        """The arms that remain according to the log."""
        self.ledger = Ledger(task)
        self.eliminations: list[Elimination] = []
        """As stored: these have happened."""
        self.payloads: list[bytes] = []
        """The same, as they were sent."""
        self.touched = 0
        """The sequence of the last record that was of this task."""
        self.stopped = False
        self.expectation: Expectation | None = None
        """What operators said last."""
        self.expectations = 0
        """The number of the next time that they say it: after the highest in the log, which ought to have no gaps."""
        self.killed = False
        """Edges serve the fallback, and learn nothing from what they serve."""
        self.switches = 0
        """How often the kill switch was used."""
        self.refused = 0
        """Upward records that are no message of this task: each is a fault or an attack."""
        self.highest: dict[tuple[str, str], int] = {}
        """By edge and incarnation: the highest sequence in the log. It need not be the last: tallies may overtake."""
        self.counts: dict[tuple[str, str], int] = {}
        """By edge and incarnation: how many messages are in the log. With `highest` it tells an edge what it lacks."""

    @property
    def winner(self) -> int | None:
        announced = self.announced
        return announced[0] if len(announced) == 1 else None

    @property
    def running(self) -> bool:
        return not self.stopped and self.winner is None

    def receive(self, subject: UpSubject, payload: bytes) -> None:
        """A message of an edge; what is none is counted and changes nothing else."""
        key = (subject.edge, subject.incarnation)
        self.highest[key] = max(subject.sequence, self.highest.get(key, -1))
        self.counts[key] = self.counts.get(key, 0) + 1
        try:
            message = self.coder.read_up(subject, payload)
            self.server.receive(subject.edge, message, incarnation=subject.incarnation)
        except OutvoteError:
            self.refused += 1
            return
        self.ledger.send_up(subject.edge, message, packed_bits(payload))

    def adopt(self, number: int, payload: bytes) -> None:
        """The log has the n-th elimination: it has happened, whatever this server thinks."""
        if number != len(self.eliminations):
            raise MalformedMessage(f"elimination {len(self.eliminations)} of {self.task_id} is next, got {number}")
        elimination = self.coder.read_down(self.announced, payload)
        self.ledger.send_down(elimination)
        self.eliminations.append(elimination)
        self.announced = tuple(arm for arm in self.announced if arm not in elimination.arms)
        self.payloads.append(payload)
        unexpected = [arm for arm in elimination.arms if arm not in self.server.eliminated]
        if unexpected:
            self.server.adopt([*self.server.eliminated, *unexpected])

    @property
    def knows_more(self) -> bool:
        """Whether this server would eliminate arms that remain according to the log."""
        return len(self.server.eliminated) + len(self.announced) > len(self.task.arms)

    def proposal(self) -> Proposal | None:
        """The next elimination, if this server has seen enough for one that the log does not have."""
        announced = self.announced
        pending = [arm for arm in self.server.eliminated if arm in announced]
        if self.stopped or not pending or len(pending) == len(announced):
            return None
        wanted = Elimination(tuple(sorted(pending)) if self.task.protocol == "tally" else (pending[0],))
        subject = DownSubject(self.task_id, "elim", len(self.eliminations))
        return Proposal(str(subject), self.coder.down(announced, wanted))


@dataclass
class Fold:
    """All tasks, and how far the log was read."""

    tasks: dict[str, FoldedTask] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    """Tasks that were, and those that never came to be: their name was taken when their record was stored."""
    read: int = 0
    """The sequence of the last record in the stream that was read."""
    pending: set[str] = field(default_factory=set)
    """Tasks of which this server may know more than the log."""
    unknown: int = 0
    """Records that belong to no task, or are none of ours: counted, otherwise ignored."""

    def apply(self, subject: str, payload: bytes, sequence: int, stored: float = 0.0) -> FoldedTask | None:
        """Read one record; returns the task that it touched. When it was stored changes nothing here."""
        self.read = sequence
        try:
            task = self._touch(parse(subject), payload)
        except OutvoteError:
            task = None
        if task is None:
            self.unknown += 1
        else:
            task.touched = sequence
        return task

    def _touch(self, where: UpSubject | DownSubject, payload: bytes) -> FoldedTask | None:
        task = self.tasks.get(where.task_id)
        if isinstance(where, DownSubject) and where.kind == "task":
            if task is not None or where.task_id in self.deleted:
                return None
            created = FoldedTask(where.task_id, read_task(payload))
            if self.named(created.task.name) is not None:  # two servers were asked at once: the first stored has it
                self.deleted.add(where.task_id)
                return None
            self.tasks[where.task_id] = created
            return created
        if task is None:
            return None
        if isinstance(where, UpSubject):
            task.receive(where, payload)
            if task.knows_more:
                self.pending.add(where.task_id)
        elif where.kind == "expect":
            task.expectations = max(task.expectations, (where.number or 0) + 1)
            task.expectation = read_expectation(payload)
        elif where.kind == "kill":
            task.switches = max(task.switches, (where.number or 0) + 1)
            task.killed = read_switch(payload)
        elif where.number is not None:
            task.adopt(where.number, payload)
            if not task.knows_more:
                self.pending.discard(where.task_id)
        elif where.kind == "stop":
            task.stopped = True
        else:
            del self.tasks[where.task_id]
            self.pending.discard(where.task_id)
            self.deleted.add(where.task_id)
        return task

    def named(self, name: str) -> FoldedTask | None:
        """The task that has this name now."""
        return next((task for task in self.tasks.values() if task.task.name == name), None)

    def proposals(self) -> Iterator[Proposal]:
        """Everything that ought to be in the log and is not."""
        for task_id in sorted(self.pending):
            proposal = self.tasks[task_id].proposal()
            if proposal is not None:
                yield proposal

    def catch_up(self, edge: str, incarnation: str, known: Mapping[str, int]) -> dict[str, Any]:
        """What an edge must know that hosts the tasks `known`, with so many eliminations each.

        Tasks that are new to it, eliminations that it lacks, what was stopped and deleted, and what the log holds of
        its own messages. An answer has a size: `more` says that it should be asked for again.
        """
        tasks: dict[str, Any] = {}
        size = 0
        for task_id, task in self.tasks.items():
            missing = [payload.hex() for payload in task.payloads[known.get(task_id, 0) :]]
            key = (edge, incarnation)
            told: dict[str, Any] = {
                "stopped": task.stopped,
                "highest": task.highest.get(key, -1),
                "count": task.counts.get(key, 0),
            }
            if task.switches:
                told["killed"], told["switches"] = task.killed, task.switches
            if task_id not in known:
                told["record"] = task.task.to_json()
            if missing:
                told["eliminations"] = missing
            if "record" in told or missing:  # the rest is small
                size += len(json.dumps(told))
                if size > LARGEST_ANSWER and tasks:
                    continue
            tasks[task_id] = told
        return {
            "read": self.read,
            "tasks": tasks,
            "deleted": [task_id for task_id in known if task_id in self.deleted],
            "more": len(tasks) < len(self.tasks),
        }
