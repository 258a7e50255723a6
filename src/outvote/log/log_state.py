"""The replicated state machine: what the log says, folded record by record. Pure: no sockets, no clock.

State changes only when a record is read. A server that reads enough *proposes* the next elimination; the first one
that is stored wins, and every server adopts what the log says. So any number of servers may run side by side: they
read the same records in the same order, and agree even if their floating point does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from outvote.core import protocols
from outvote.core.codes import packed_bits
from outvote.core.errors import MalformedMessage, OutvoteError
from outvote.core.ledger import Ledger
from outvote.core.messages import Elimination, UpMessage
from outvote.core.tally.server import TallyServer
from outvote.core.task import Task
from outvote.log.catch_up import Answer, Question, TaskUpdate, encode
from outvote.log.events import (
    ArmsEliminated,
    EdgeDiscounted,
    EliminationDue,
    Event,
    ExpectationStated,
    HoldChanged,
    KillSwitchUsed,
    MessageStored,
    TaskCreated,
    TaskDeleted,
    TaskStopped,
    TaskUnreadable,
)
from outvote.log.expectation import Expectation, read_expectation
from outvote.log.history import MOST_LIVES, Discount, EdgeHistory, History, TaskHistory
from outvote.log.log import Record
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


@dataclass(frozen=True, slots=True)
class Proposal:
    """A record that ought to be in the log."""

    subject: str
    payload: bytes


class TaskState:
    """One task as the log tells it."""

    def __init__(self, task_id: str, task: Task, history: TaskHistory | None = None) -> None:
        self.task_id = task_id
        self.task = task
        self.history = history or TaskHistory()
        self.coder = Coder(task)
        self.players = frozenset(task.player_names)
        """By name, where they are named."""
        self.server = protocols.server(task)
        self.announced: tuple[int, ...] = tuple(range(len(task.arms)))
        """The arms that remain according to the log."""
        self.ledger = Ledger(task)
        self.due: list[Elimination] = []
        """What the core has eliminated and the log does not have: to be published, in this order."""
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

    def receive(self, subject: UpSubject, payload: bytes) -> bool:
        """Count a message of an edge; returns whether the core took it. Malformed messages are counted and ignored."""
        counted = self._receive(subject, payload)
        self.refused += not counted
        return counted

    def _receive(self, subject: UpSubject, payload: bytes) -> bool:
        key = (subject.edge, subject.incarnation)
        last = self.highest.get(key)
        if last is None:
            lives = self._lives.get(subject.edge, 0)
            if lives >= MOST_LIVES:
                return False
            self._lives[subject.edge] = lives + 1
            self.counts[key] = 0
        if last is None or subject.sequence > last:
            self.highest[key] = subject.sequence
        self.counts[key] += 1
        try:
            message = self.coder.read_up(subject, payload)
        except OutvoteError:
            return False
        counted = self._count(subject, message)
        if self._kept is not None:
            self._kept.receive(key, subject.sequence, payload, counted)
        if counted:
            self.ledger.send_up(subject.edge, message, packed_bits(payload))
        return counted

    def adopt(self, number: int, payload: bytes) -> Elimination:
        """The log has the n-th elimination: it has happened, whatever this server thinks."""
        if number != len(self.eliminations):
            raise MalformedMessage(f"elimination {len(self.eliminations)} of {self.task_id} is next, got {number}")
        elimination = self.coder.read_down(self.announced, payload)
        self.ledger.send_down(elimination)
        self.eliminations.append(elimination)
        self.announced = tuple(arm for arm in self.announced if arm not in elimination.arms)
        self.payloads.append(payload)
        self._sync_core(number)
        self._note_due(())
        if self._kept is not None:
            self._kept.adopt()
        if not self.running:
            self._kept = None
        return elimination

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
        self.due = []
        adopted = 0
        for each in before.excluding(edge):
            if each is None:
                self._sync_core(adopted)
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
            eliminations = self.server.receive(subject.edge, message, incarnation=subject.incarnation)
        except OutvoteError:
            return False
        if eliminations:
            self._note_due(eliminations)
        return True

    def _note_due(self, eliminations: Iterable[Elimination]) -> None:
        """Note what the core has just eliminated; forget what the log has meanwhile, or the core takes back."""
        due = []
        for elimination in (*self.due, *eliminations):
            arms = tuple(arm for arm in elimination.arms if arm in self.announced and arm in self.server.eliminated)
            if arms:
                due.append(Elimination(arms))
        self.due = due

    def _sync_core(self, number: int) -> None:
        """Tell the core of the n-th elimination, if it thinks otherwise."""
        unexpected = [arm for arm in self.eliminations[number].arms if arm not in self.server.eliminated]
        if not unexpected:
            return
        told = [*self.server.eliminated, *unexpected]
        if len(told) >= len(self.task.arms):  # it held the last one for the winner: the log is right
            told = [arm for each in self.eliminations[: number + 1] for arm in each.arms]
        self._note_due(self.server.adopt(told))

    def _reported(self) -> tuple[int, int]:
        """Of Tally: the events that tallies tell of, and tallies in which none or all succeeded."""
        server = self.server
        if not isinstance(server, TallyServer):
            return 0, 0
        return sum(server.trials(arm) for arm in range(len(self.task.arms))), server.unanimous

    def due_events(self, start: int = 0) -> list[EliminationDue]:
        return [EliminationDue(self.task_id, elimination) for elimination in self.due[start:]]

    def proposal(self) -> Proposal | None:
        """The next elimination that the core has come to and the log does not have."""
        if self.stopped or not self.due or len(self.due[0].arms) == len(self.announced):
            return None
        subject = DownSubject(self.task_id, "elim", len(self.eliminations))
        return Proposal(str(subject), self.coder.down(self.announced, self.due[0]))


@dataclass
class LogState:
    """All tasks, and how far the log was read."""

    tasks: dict[str, TaskState] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    """Tasks that were, and those that never came to be: their name was taken when their record was stored."""
    read: int = 0
    """The sequence of the last record in the stream that was read."""
    unknown: int = 0
    """Records that belong to no task, or are none of ours: counted, otherwise ignored."""
    history: History = field(default_factory=History)
    """When things happened, and who sent what: for people."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """By id, the tasks whose record this version cannot read, and why. It does not judge them: people are told."""

    def apply(self, record: Record) -> list[Event]:
        """Read one record; returns what it has changed."""
        self.read = record.sequence
        events: list[Event] | None = None
        try:
            where = parse(record.subject)
            task = self.tasks.get(where.task_id)
            held = task is not None and task.server.held
            if isinstance(where, DownSubject):
                events = self._apply_order(where, record)
                task = self.tasks.get(where.task_id)
            elif task is not None:
                events = self._apply_message(task, where, record.payload)
            if events is not None and task is not None:
                task.touched = record.sequence
                if task.server.held != held:
                    events.append(HoldChanged(where.task_id, not held))
        except OutvoteError:
            pass
        if events is None:
            self.unknown += 1
            return []
        for event in events:
            self.history.note(event, record)
        return events

    def _apply_message(self, task: TaskState, where: UpSubject, payload: bytes) -> list[Event]:
        due = len(task.due)
        counted = task.receive(where, payload)
        bits = packed_bits(payload) if payload else 0
        events: list[Event] = [MessageStored(where.task_id, where.edge, where.incarnation, bits, counted)]
        if len(task.due) > due:
            events += task.due_events(due)
        return events

    def _apply_order(self, where: DownSubject, record: Record) -> list[Event] | None:
        task_id, payload = where.task_id, record.payload
        if where.kind == "task":
            return self._create(task_id, record)
        task = self.tasks.get(task_id)
        if task is None:
            if where.kind != "delete" or task_id not in self.unreadable:
                return None
            del self.unreadable[task_id]
            self.deleted.add(task_id)
            return [TaskDeleted(task_id, task_id.rpartition("-")[0])]
        if where.kind in task.next_number:
            task.next_number[where.kind] = max(task.next_number[where.kind], (where.number or 0) + 1)
        match where.kind:
            case "expect":
                task.expectation = read_expectation(payload)
                return [ExpectationStated(task_id)]
            case "kill":
                before, task.killed = task.killed, read_switch(payload)
                return [KillSwitchUsed(task_id, task.killed, task.killed != before)]
            case "discount":
                discounted = task.discount(read_discount(payload), record.sequence, record.stored)
                if discounted is None:
                    return []
                return [EdgeDiscounted(task_id, discounted.edge, discounted.messages), *task.due_events()]
            case "elim":
                number = where.number or 0
                elimination = task.adopt(number, payload)
                return [
                    ArmsEliminated(task_id, number, elimination, task.ledger.up_messages),
                    *task.due_events(),
                ]
            case "stop":
                task.stop()
                return [TaskStopped(task_id)]
            case _:
                del self.tasks[task_id]
                self.deleted.add(task_id)
                return [TaskDeleted(task_id, task.task.name)]

    def _create(self, task_id: str, record: Record) -> list[Event] | None:
        if task_id in self.tasks or task_id in self.deleted or task_id in self.unreadable:
            return None
        try:
            created = TaskState(task_id, read_task(record.payload), TaskHistory(record.stored))
        except OutvoteError as error:
            self.unreadable[task_id] = str(error)
            return [TaskUnreadable(task_id, str(error))]
        if self.named(created.task.name) is not None:  # two servers were asked at once: the first stored has it
            self.deleted.add(task_id)
            return None
        self.tasks[task_id] = created
        self.history.tasks[task_id] = created.history
        return [TaskCreated(task_id)]

    @property
    def edges(self) -> dict[str, EdgeHistory]:
        """By name: what the log holds of each edge."""
        return self.history.edges

    def named(self, name: str) -> TaskState | None:
        """The task that has this name now."""
        return next((task for task in self.tasks.values() if task.task.name == name), None)

    def catch_up(self, edge: str, question: Question) -> Answer:
        """What an edge must know, and does not.

        Tasks that are new to it, eliminations that it lacks, what was stopped and deleted, and what the log holds of
        its own messages. An answer has a size: `more` says that it should be asked for again. Tasks that are not for
        this edge are only named under `others`, once: their records are most of what there is.
        """
        known, key = question.tasks, (edge, question.incarnation)
        tasks: dict[str, TaskUpdate] = {}
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
            update = TaskUpdate(
                stopped=task.stopped,
                highest=task.highest.get(key, -1),
                count=task.counts.get(key, 0),
                killed=task.killed,
                switches=task.next_number["kill"],
                record=None if task_id in known else task.task.to_json(),
                eliminations=tuple(task.payloads[known.get(task_id, 0) :]),
            )
            if update.record is not None or update.eliminations:  # the rest is small
                size += len(encode(update))
                if size > LARGEST_ANSWER and tasks:
                    continue
            tasks[task_id] = update
        return Answer(
            read=self.read,
            tasks=tasks,
            deleted=tuple(task_id for task_id in known if task_id in self.deleted),
            others=tuple(others),
            more=len(tasks) + len(others) + left_out < len(self.tasks),
        )
