"""Whether each elimination follows from what stands before it in the log, by a core that reads it alone.

What was stopped or deleted is judged by what stands before that: nothing after it counts. What an operator discounted
is taken out, and all else is read again; only an elimination that was due just then may still be stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from faults.reading import Finding, tasks_of, where_of
from outvote.core import protocols
from outvote.core.errors import OutvoteError
from outvote.core.messages import UpMessage
from outvote.core.task import Task
from outvote.log.log import Record
from outvote.log.records import Coder, UpSubject, read_discount

Event = tuple[UpSubject, UpMessage, int] | tuple[int, ...]
"""A message and when it was stored, or the arms that the log says to be out."""


class _Judged:
    """One task as a core alone has it."""

    def __init__(self, task_id: str, task: Task) -> None:
        self.task_id = task_id
        self.task = task
        self.coder = Coder(task)
        self.core = protocols.server(task)
        self.announced = tuple(range(len(task.arms)))
        self.ended = False
        """Stopped or deleted: nothing more is decided."""
        self._events: list[Event] = []
        self._eliminations = 0
        self._under_way: tuple[int, frozenset[int]] = (-1, frozenset())
        """The elimination that was next when an edge was discounted, and the arms that were out with that edge."""

    def read(self, where: UpSubject, record: Record) -> None:
        if not self.ended:
            message = self.coder.read_up(where, record.payload)
            self._events.append((where, message, int(record.stored * 1000)))
            self._replay(self._events[-1])

    def discount(self, edge: str) -> None:
        if self.ended or len(self.announced) == 1:
            return  # what is over is left as it is
        number, were_out = self._under_way  # it may be under way since before an earlier discount
        earlier = were_out if number == self._eliminations else frozenset()
        self._under_way = self._eliminations, earlier | frozenset(self.core.eliminated)
        self._events = [each for each in self._events if not (isinstance(each[0], UpSubject) and each[0].edge == edge)]
        self.core = protocols.server(self.task)
        for event in self._events:
            self._replay(event)

    def eliminate(self, payload: bytes) -> list[int]:
        """The arms that are out by this record, and that nothing before it speaks against."""
        out = self.coder.read_down(self.announced, payload).arms
        number, were_out = self._under_way
        allowed = were_out if number == self._eliminations else frozenset()
        unfounded = [arm for arm in out if arm not in self.core.eliminated and arm not in allowed]
        self.announced = tuple(arm for arm in self.announced if arm not in out)
        self._eliminations += 1
        self._events.append(tuple(out))
        self._replay(tuple(out))
        return unfounded

    @property
    def pending(self) -> list[int]:
        """Arms that ought to be out, and nobody has said so."""
        found = [arm for arm in self.core.eliminated if arm in self.announced]
        return [] if self.ended or len(found) == len(self.announced) else found

    def _replay(self, event: Event) -> None:
        if isinstance(event[0], UpSubject):
            where, message, at = event
            self.core.receive(where.edge, message, at, incarnation=where.incarnation)
            return
        unexpected = [arm for arm in event if arm not in self.core.eliminated]
        if unexpected:  # the log is right: it was told to everybody
            told = [*self.core.eliminated, *unexpected]
            if len(told) >= len(self.task.arms):
                told = [arm for arm in range(len(self.task.arms)) if arm not in self.announced]
            self.core.adopt(told)


def unjustified(log: Iterable[Record]) -> Iterator[Finding]:
    """A core server that reads the messages of a task must have come to each elimination before the log has it; and to
    none that the log does not have in the end."""
    judged = {task_id: _Judged(task_id, task) for task_id, task in tasks_of(log).items()}
    for record in log:
        where = where_of(record)
        task = None if where is None else judged.get(where.task_id)
        if where is None or task is None:
            continue
        try:
            if isinstance(where, UpSubject):
                task.read(where, record)
            elif where.kind in ("stop", "delete"):
                task.ended = True
            elif where.kind == "discount":
                task.discount(read_discount(record.payload))
            elif where.kind == "elim":
                unfounded = task.eliminate(record.payload)
                if unfounded:
                    yield Finding("unjustified", f"{record.subject}: nothing before it speaks against {unfounded}")
        except OutvoteError as error:
            yield Finding("wrong", f"{record.subject}: {error}")
    for task in judged.values():
        if task.pending:
            yield Finding("not recovered", f"{task.task_id}: nobody has announced that {task.pending} are out")
        snapshot = task.core.snapshot()
        if snapshot.get("duplicates"):
            yield Finding("counted twice", f"{task.task_id}: the core met {snapshot['duplicates']} messages again")
