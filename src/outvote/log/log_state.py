"""The replicated state machine: it rebuilds all tasks by replaying the log. Pure: no sockets, no clock.

State changes only when a record is read. A server with enough evidence *proposes* the next elimination; the first one
stored wins, and every server adopts it. So any number of servers may run side by side: they read the same records in
the same order, and agree even if their floating point results differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from outvote.core import protocols
from outvote.core.codes import packed_bits
from outvote.core.errors import MalformedMessage, OutvoteError
from outvote.core.ledger import Ledger
from outvote.core.messages import Elimination, UpMessage
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
"""Largest catch-up answer, in bytes. The engine accepts messages of up to 1 MiB."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A record to be stored in the log."""

    subject: str
    payload: bytes


class TaskState:
    """The state of one task, according to the log."""

    def __init__(self, task_id: str, task: Task, history: TaskHistory | None = None) -> None:
        self.task_id = task_id
        self.task = task
        self.history = history or TaskHistory()
        self.coder = Coder(task)
        self.players = frozenset(task.player_names)
        """The named players; empty if the task gives only their number."""
        self.server = protocols.server(task)
        self.announced: tuple[int, ...] = tuple(range(len(task.arms)))
        """Arms that remain, according to the log."""
        self.ledger = Ledger(task)
        self.due: list[Elimination] = []
        """Eliminations by the core that the log lacks, to be published in this order."""
        self.eliminations: list[Elimination] = []
        """Eliminations in the log: these are final."""
        self.payloads: list[bytes] = []
        """The same eliminations, encoded."""
        self.touched = 0
        """Sequence of the task's last record."""
        self.stopped = False
        self.next_number = {"expect": 0, "kill": 0, "discount": 0}
        """Next number by kind of record: one after the highest in the log."""
        self.expectation: Expectation | None = None
        """What operators stated last."""
        self.killed = False
        """Kill switch: edges serve the fallback and learn nothing."""
        self.refused = 0
        """Number of edge records that are no valid message of this task: faults or attacks."""
        self.highest: dict[tuple[str, str], int] = {}
        """Highest sequence in the log, by edge and incarnation. Tallies may arrive out of order."""
        self.counts: dict[tuple[str, str], int] = {}
        """Number of messages in the log, by edge and incarnation. With `highest` it shows an edge what is missing."""
        self.discounted: list[Discount] = []
        """Discounts of edges, in log order."""
        self.discounted_events = self.discounted_unanimous = 0
        """Tally only: discounted events, and discounted tallies in which none or all succeeded."""
        self._lives: dict[str, int] = {}
        """Incarnations of each edge since its last discount."""
        self._replay: ReplayBuffer | None = ReplayBuffer()
        """Messages to recount after a discount; None once the task has ended."""

    @property
    def winner(self) -> int | None:
        announced = self.announced
        return announced[0] if len(announced) == 1 else None

    @property
    def running(self) -> bool:
        return not self.stopped and self.winner is None

    def receive(self, subject: UpSubject, payload: bytes, at: int) -> bool:
        """Apply an edge's message that the log stored at this time, in milliseconds since 1970. Return whether the core
        accepted it. Malformed messages are counted and ignored."""
        counted = self._receive(subject, payload, at)
        self.refused += not counted
        return counted

    def _receive(self, subject: UpSubject, payload: bytes, at: int) -> bool:
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
        counted = self._count(subject, message, at)
        if self._replay is not None:
            self._replay.receive(key, subject.sequence, at, payload, counted)
        if counted:
            self.ledger.send_up(subject.edge, message, packed_bits(payload))
        return counted

    def adopt(self, number: int, payload: bytes) -> Elimination:
        """Apply the n-th elimination from the log, whatever this server's core has computed."""
        if number != len(self.eliminations):
            raise MalformedMessage(f"elimination {len(self.eliminations)} of {self.task_id} is next, got {number}")
        elimination = self.coder.read_down(self.announced, payload)
        self.ledger.send_down(elimination)
        self.eliminations.append(elimination)
        self.announced = tuple(arm for arm in self.announced if arm not in elimination.arms)
        self.payloads.append(payload)
        self._sync_core(number)
        self._note_due(())
        if self._replay is not None:
            self._replay.adopt()
        if not self.running:
            self._replay = None
        return elimination

    def stop(self) -> None:
        """End the task: no more arms are eliminated."""
        self.stopped = True
        self._replay = None

    def messages_of(self, edge: str) -> int:
        """Return how many messages of an edge are in the log and not discounted."""
        sent = sum(count for (name, _), count in self.counts.items() if name == edge)
        return sent - sum(discount.messages for discount in self.discounted if discount.edge == edge)

    def discount(self, edge: str, record: int = 0, stored: float = 0.0) -> Discount | None:
        """Ignore all messages of this edge so far; eliminations and the bits sent stay. None if the task has ended.

        The other messages are replayed in log order, as if the edge had sent none. A vote that was refused because
        there were too many players may be accepted now; it then counts as a message like the others.
        """
        if self._replay is None:
            return None
        discounted = Discount(edge, self.messages_of(edge), record, stored)
        self.discounted.append(discounted)
        self._lives.pop(edge, None)
        events, unanimous = self.server.reported
        before, self._replay = self._replay, ReplayBuffer()
        self.server = protocols.server(self.task)
        self.due = []
        adopted = 0
        for buffered in before.excluding(edge):
            if buffered is None:
                self._sync_core(adopted)
                self._replay.adopt()
                adopted += 1
                continue
            subject = UpSubject(buffered.edge, self.task_id, buffered.incarnation, buffered.sequence)
            message = self.coder.read_up(subject, buffered.payload)
            counted = self._count(subject, message, buffered.at)
            life = (buffered.edge, buffered.incarnation)
            self._replay.receive(life, buffered.sequence, buffered.at, buffered.payload, counted)
            if counted and not buffered.counted:
                self.refused -= 1
                self.ledger.send_up(buffered.edge, message, packed_bits(buffered.payload))
        still_events, still_unanimous = self.server.reported
        self.discounted_events += events - still_events
        self.discounted_unanimous += unanimous - still_unanimous
        return discounted

    def _count(self, subject: UpSubject, message: UpMessage, at: int) -> bool:
        try:
            eliminations = self.server.receive(subject.edge, message, at, incarnation=subject.incarnation)
        except OutvoteError:
            return False
        if eliminations:
            self._note_due(eliminations)
        return True

    def _note_due(self, eliminations: Iterable[Elimination]) -> None:
        """Add new eliminations of the core to `due`; drop arms that the log has eliminated or the core has restored."""
        due = []
        for elimination in (*self.due, *eliminations):
            arms = tuple(arm for arm in elimination.arms if arm in self.announced and arm in self.server.eliminated)
            if arms:
                due.append(Elimination(arms))
        self.due = due

    def _sync_core(self, number: int) -> None:
        """Apply the n-th elimination of the log to the core, if the core has not made it."""
        unexpected = [arm for arm in self.eliminations[number].arms if arm not in self.server.eliminated]
        if not unexpected:
            return
        eliminated = [*self.server.eliminated, *unexpected]
        if len(eliminated) >= len(self.task.arms):  # the core has another winner: the log decides
            eliminated = [arm for elimination in self.eliminations[: number + 1] for arm in elimination.arms]
        self._note_due(self.server.adopt(eliminated))

    def due_events(self, start: int = 0) -> list[EliminationDue]:
        return [EliminationDue(self.task_id, elimination) for elimination in self.due[start:]]

    def proposal(self) -> Proposal | None:
        """Return the core's next elimination that the log lacks, if any."""
        if self.stopped or not self.due or len(self.due[0].arms) == len(self.announced):
            return None
        subject = DownSubject(self.task_id, "elim", len(self.eliminations))
        return Proposal(str(subject), self.coder.down(self.announced, self.due[0]))


@dataclass
class LogState:
    """All tasks, and the position up to which the log was read."""

    tasks: dict[str, TaskState] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    """Deleted tasks, and tasks that were never created because their name was taken."""
    read: int = 0
    """Sequence of the last record read."""
    unknown: int = 0
    """Number of ignored records: unknown subject or unknown task."""
    history: History = field(default_factory=History)
    """When things happened and who sent what, for people."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """Tasks that this version cannot read, by id, with the reason. They are skipped and reported."""

    def apply(self, record: Record) -> list[Event]:
        """Apply one record and return the changes."""
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
                events = self._apply_message(task, where, record)
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

    def _apply_message(self, task: TaskState, where: UpSubject, record: Record) -> list[Event]:
        due, payload = len(task.due), record.payload
        counted = task.receive(where, payload, int(record.stored * 1000))
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
        if self.named(created.task.name) is not None:  # two servers created it at once: the first stored wins
            self.deleted.add(task_id)
            return None
        self.tasks[task_id] = created
        self.history.tasks[task_id] = created.history
        return [TaskCreated(task_id)]

    @property
    def edges(self) -> dict[str, EdgeHistory]:
        """History of each edge, by name."""
        return self.history.edges

    def named(self, name: str) -> TaskState | None:
        """Return the task that has this name now, if any."""
        return next((task for task in self.tasks.values() if task.task.name == name), None)

    def catch_up(self, edge: str, question: Question) -> Answer:
        """Build the answer to an edge: everything that it lacks.

        That is new tasks, eliminations, stops, deletions, and which of its own messages the log holds. The size is
        limited; `more` asks the edge to ask again. Tasks that do not involve the edge are only named, once, in
        `others`: their records are most of the log.
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
