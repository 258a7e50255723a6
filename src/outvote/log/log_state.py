"""The replicated state machine: what the log says, folded record by record. Pure: no sockets, no clock.

State changes only when a record is read. A server that reads enough *proposes* the next elimination; the first one
that is stored wins, and every server adopts what the log says. So any number of servers may run side by side: they
read the same records in the same order, and agree even if their floating point does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from outvote.core import protocols
from outvote.core.codes import packed_bits
from outvote.core.errors import MalformedMessage, OutvoteError
from outvote.core.ledger import Ledger
from outvote.core.messages import Elimination, UpMessage
from outvote.core.tally_server import TallyServer
from outvote.core.task import Task
from outvote.log.expectation import Expectation, read_expectation
from outvote.log.history import Discount, EdgeHistory, Moment, TaskHistory
from outvote.log.records import (
    Coder,
    DownSubject,
    UpSubject,
    parse,
    read_discount,
    read_switch,
    read_task,
)
from outvote.log.replay_buffer import ReplayBuffer

LARGEST_ANSWER = 256 * 1024
"""Bytes of news in one answer to an edge: an engine carries messages of up to 1 MiB."""
MOST_LIVES: Final = 64
"""Incarnations of one edge in one task: each costs every server memory, and whoever has the edge's credential could
open any number. A site that really loses its store so often has another trouble. A discount lets it begin again."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A record that ought to be in the log."""

    subject: str
    payload: bytes


class TaskState:
    """One task as the log tells it."""

    def __init__(self, task_id: str, task: Task, stored: float = 0.0) -> None:
        """`stored` is when its record was stored."""
        self.task_id = task_id
        self.task = task
        self.history = TaskHistory(stored)
        self.coder = Coder(task)
        self.players = frozenset(task.player_names)
        """By name, where they are named."""
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
        self.next_number = {"expect": 0, "kill": 0, "discount": 0}
        """By kind of record: its next number, after the highest in the log, which ought to have no gaps."""
        self.expectation: Expectation | None = None
        """What operators said last."""
        self.killed = False
        """Edges serve the fallback, and learn nothing from what they serve."""
        self.refused = 0
        """Upward records that are no message of this task: each is a fault or an attack."""
        self.highest: dict[tuple[str, str], int] = {}
        """By edge and incarnation: the highest sequence in the log. It need not be the last: tallies may overtake."""
        self.counts: dict[tuple[str, str], int] = {}
        """By edge and incarnation: how many messages are in the log. With `highest` it tells an edge what it lacks."""
        self.discounted: list[Discount] = []
        """As the log has them."""
        self.discounted_events = self.discounted_unanimous = 0
        """Of Tally: events, and tallies in which none or all succeeded, that count no more. They were sent and seen."""
        self._lives: dict[str, int] = {}
        """By edge: incarnations since it was last discounted."""
        self._kept: ReplayBuffer | None = ReplayBuffer()
        """What counts, to be counted again; None when nothing is decided any more."""

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
        last = self.highest.get(key)
        if last is None:
            lives = self._lives.get(subject.edge, 0)
            if lives >= MOST_LIVES:
                self.refused += 1
                return
            self._lives[subject.edge] = lives + 1
            self.counts[key] = 0
        if last is None or subject.sequence > last:
            self.highest[key] = subject.sequence
        self.counts[key] += 1
        try:
            message = self.coder.read_up(subject, payload)
        except OutvoteError:
            self.refused += 1
            return
        counted = self._count(subject, message)
        if self._kept is not None:
            self._kept.receive(key, subject.sequence, payload, counted)
        if counted:
            self.ledger.send_up(subject.edge, message, packed_bits(payload))
        else:
            self.refused += 1

    def adopt(self, number: int, payload: bytes) -> None:
        """The log has the n-th elimination: it has happened, whatever this server thinks."""
        if number != len(self.eliminations):
            raise MalformedMessage(f"elimination {len(self.eliminations)} of {self.task_id} is next, got {number}")
        elimination = self.coder.read_down(self.announced, payload)
        self.ledger.send_down(elimination)
        self.eliminations.append(elimination)
        self.announced = tuple(arm for arm in self.announced if arm not in elimination.arms)
        self.payloads.append(payload)
        self._tell(number)
        if self._kept is not None:
            self._kept.adopt()
        if not self.running:
            self._kept = None

    def stop(self) -> None:
        """Nothing more is decided."""
        self.stopped = True
        self._kept = None

    def messages_of(self, edge: str) -> int:
        """How many of an edge are in the log and were not discounted."""
        sent = sum(count for (name, _), count in self.counts.items() if name == edge)
        return sent - sum(each.messages for each in self.discounted if each.edge == edge)

    def discount(self, edge: str, record: int = 0, stored: float = 0.0) -> Discount | None:
        """What this edge has sent so far counts no more; what was eliminated stays so, and bits that were sent stay.

        All else is counted again, in the order of the log, as if the edge had not been there. A vote that was refused
        because there were too many players may count now, so it becomes a message like the others. A task that has
        ended is left as it is: None.
        """
        if self._kept is None:
            return None
        discounted = Discount(edge, self.messages_of(edge), record, stored)
        self.discounted.append(discounted)
        self._lives.pop(edge, None)
        events, unanimous = self._reported()
        before, self._kept = self._kept, ReplayBuffer()
        self.server = protocols.server(self.task)
        adopted = 0
        for each in before.excluding(edge):
            if each is None:
                self._tell(adopted)
                self._kept.adopt()
                adopted += 1
                continue
            subject = UpSubject(each.edge, self.task_id, each.incarnation, each.sequence)
            message = self.coder.read_up(subject, each.payload)
            counted = self._count(subject, message)
            self._kept.receive((each.edge, each.incarnation), each.sequence, each.payload, counted)
            if counted and not each.counted:
                self.refused -= 1
                self.ledger.send_up(each.edge, message, packed_bits(each.payload))
        still_events, still_unanimous = self._reported()
        self.discounted_events += events - still_events
        self.discounted_unanimous += unanimous - still_unanimous
        return discounted

    def _count(self, subject: UpSubject, message: UpMessage) -> bool:
        try:
            self.server.receive(subject.edge, message, incarnation=subject.incarnation)
        except OutvoteError:
            return False
        return True

    def _tell(self, number: int) -> None:
        """Tell the server of the n-th elimination, if it thinks otherwise."""
        unexpected = [arm for arm in self.eliminations[number].arms if arm not in self.server.eliminated]
        if not unexpected:
            return
        told = [*self.server.eliminated, *unexpected]
        if len(told) >= len(self.task.arms):  # it held the last one for the winner: the log is right
            told = [arm for each in self.eliminations[: number + 1] for arm in each.arms]
        self.server.adopt(told)

    def _reported(self) -> tuple[int, int]:
        """Of Tally: the events that tallies tell of, and tallies in which none or all succeeded."""
        server = self.server
        if not isinstance(server, TallyServer):
            return 0, 0
        return sum(server.trials(arm) for arm in range(len(self.task.arms))), server.unanimous

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
class LogState:
    """All tasks, and how far the log was read."""

    tasks: dict[str, TaskState] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    """Tasks that were, and those that never came to be: their name was taken when their record was stored."""
    read: int = 0
    """The sequence of the last record in the stream that was read."""
    pending: set[str] = field(default_factory=set)
    """Tasks of which this server may know more than the log."""
    unknown: int = 0
    """Records that belong to no task, or are none of ours: counted, otherwise ignored."""
    edges: dict[str, EdgeHistory] = field(default_factory=dict)
    """By name: what the log holds of each edge."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """By id, the tasks whose record this version cannot read, and why. It does not judge them: people are told."""

    def apply(self, subject: str, payload: bytes, sequence: int, stored: float = 0.0) -> TaskState | None:
        """Read one record; returns the task that it touched. When it was `stored` is only noted, for people."""
        self.read = sequence
        try:
            task = self._touch(parse(subject), payload, stored)
        except OutvoteError:
            task = None
        if task is None:
            self.unknown += 1
        else:
            task.touched = sequence
        return task

    def _touch(self, where: UpSubject | DownSubject, payload: bytes, stored: float) -> TaskState | None:
        task = self.tasks.get(where.task_id)
        if isinstance(where, DownSubject) and where.kind == "task":
            if task is not None or where.task_id in self.deleted or where.task_id in self.unreadable:
                return None
            try:
                created = TaskState(where.task_id, read_task(payload), stored)
            except OutvoteError as error:
                self.unreadable[where.task_id] = str(error)
                raise
            if self.named(created.task.name) is not None:  # two servers were asked at once: the first stored has it
                self.deleted.add(where.task_id)
                return None
            self.tasks[where.task_id] = created
            return created
        if task is None:
            if where.task_id in self.unreadable and isinstance(where, DownSubject) and where.kind == "delete":
                del self.unreadable[where.task_id]
                self.deleted.add(where.task_id)
            return None
        if isinstance(where, UpSubject):
            task.receive(where, payload)
            task.history.last_message = stored
            self._note_message(where, payload, stored)
            if task.knows_more:
                self.pending.add(where.task_id)
            return task
        if where.kind in task.next_number:
            task.next_number[where.kind] = max(task.next_number[where.kind], (where.number or 0) + 1)
        if where.kind == "expect":
            task.expectation = read_expectation(payload)
        elif where.kind == "kill":
            task.killed = read_switch(payload)
        elif where.kind == "discount":
            self._discount(task, read_discount(payload), stored)
        elif where.number is not None:
            task.adopt(where.number, payload)
            task.history.eliminations.append(Moment(self.read, task.ledger.up_messages, stored))
            if not task.knows_more:
                self.pending.discard(where.task_id)
        elif where.kind == "stop":
            task.stop()
            task.history.stopped = stored
        else:
            del self.tasks[where.task_id]
            self.pending.discard(where.task_id)
            self.deleted.add(where.task_id)
            for edge in self.edges.values():
                edge.tasks.discard(where.task_id)
        return task

    def _note_message(self, where: UpSubject, payload: bytes, stored: float) -> None:
        edge = self.edges.get(where.edge)
        if edge is None:
            edge = self.edges[where.edge] = EdgeHistory()
        edge.last_message = stored
        edge.messages += 1
        if payload:
            edge.bits += packed_bits(payload)
        edge.tasks.add(where.task_id)
        if len(edge.incarnations) < MOST_LIVES:
            edge.incarnations.add(where.incarnation)

    def _discount(self, task: TaskState, name: str, stored: float) -> None:
        discounted = task.discount(name, self.read, stored)
        if discounted is None:
            return
        if name in self.edges:
            self.edges[name].discounted += discounted.messages
        if task.knows_more:
            self.pending.add(task.task_id)
        else:
            self.pending.discard(task.task_id)

    def named(self, name: str) -> TaskState | None:
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
        its own messages. An answer has a size: `more` says that it should be asked for again. Tasks that are not for
        this edge are only named under `others`, once: their records are most of what there is.
        """
        tasks: dict[str, Any] = {}
        others: list[str] = []
        left_out = size = 0
        for task_id, task in self.tasks.items():
            if task.players and edge not in task.players:
                if task_id in known:
                    left_out += 1
                elif size <= LARGEST_ANSWER:
                    size += len(task_id) + 4
                    others.append(task_id)
                continue
            missing = [payload.hex() for payload in task.payloads[known.get(task_id, 0) :]]
            key = (edge, incarnation)
            told: dict[str, Any] = {
                "stopped": task.stopped,
                "highest": task.highest.get(key, -1),
                "count": task.counts.get(key, 0),
            }
            if switches := task.next_number["kill"]:
                told["killed"], told["switches"] = task.killed, switches
            if task_id not in known:
                told["record"] = task.task.to_json()
            if missing:
                told["eliminations"] = missing
            if "record" in told or missing:  # the rest is small
                size += len(json.dumps(told))
                if size > LARGEST_ANSWER and tasks:
                    continue
            tasks[task_id] = told
        answer = {
            "read": self.read,
            "tasks": tasks,
            "deleted": [task_id for task_id in known if task_id in self.deleted],
            "more": len(tasks) + len(others) + left_out < len(self.tasks),
        }
        return answer | ({"others": others} if others else {})
