"""A fold that also notes when things happened, and who sent what: for people who look on. No decision depends on it.

All times are those at which the engine stored a record. Pure: no clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from outvote.core.codes import packed_bits
from outvote.network.fold import MOST_LIVES, Fold, FoldedTask
from outvote.network.records import DownSubject, UpSubject


class Moment(NamedTuple):
    """When an elimination or a discount was stored."""

    record: int
    """Its place in the log."""
    messages: int
    """How many messages of the task were in the log before it."""
    at: float


@dataclass
class TaskHistory:
    """When a task was created, stopped, and its arms eliminated."""

    created: float
    stopped: float | None = None
    last_message: float | None = None
    eliminations: list[Moment] = field(default_factory=list)
    discounts: list[Moment] = field(default_factory=list)


@dataclass(slots=True)
class EdgeHistory:
    """What the log holds of one edge, over all tasks; those that were deleted count on in its sums."""

    last_message: float = 0.0
    messages: int = 0
    bits: int = 0
    tasks: set[str] = field(default_factory=set)
    """Those that are there, and have a message of this edge."""
    incarnations: set[str] = field(default_factory=set)
    """Not all where there are very many: that there are several is what people must know."""
    discounted: int = 0
    """Of its messages: those that count no more."""


@dataclass
class DatedFold(Fold):
    """A fold with dates."""

    histories: dict[str, TaskHistory] = field(default_factory=dict)
    edges: dict[str, EdgeHistory] = field(default_factory=dict)
    _stored: float = 0.0

    def apply(self, subject: str, payload: bytes, sequence: int, stored: float = 0.0) -> FoldedTask | None:
        self._stored = stored
        return super().apply(subject, payload, sequence, stored)

    def _touch(self, where: UpSubject | DownSubject, payload: bytes) -> FoldedTask | None:
        task = super()._touch(where, payload)
        if task is None:
            return None
        if isinstance(where, UpSubject):
            self._note_message(where, payload)
        elif where.kind == "task":
            self.histories[where.task_id] = TaskHistory(self._stored)
        elif where.kind == "delete":
            del self.histories[where.task_id]
            for edge in self.edges.values():
                edge.tasks.discard(where.task_id)
        elif where.kind == "stop":
            self.histories[where.task_id].stopped = self._stored
        elif where.kind == "elim":
            moment = Moment(self.read, task.ledger.up_messages, self._stored)
            self.histories[where.task_id].eliminations.append(moment)
        elif where.kind == "discount" and len(task.discounted) > len(self.histories[where.task_id].discounts):
            moment = Moment(self.read, task.ledger.up_messages, self._stored)
            self.histories[where.task_id].discounts.append(moment)
            said = task.discounted[-1]
            if said.edge in self.edges:
                self.edges[said.edge].discounted += said.messages
        return task

    def _note_message(self, where: UpSubject, payload: bytes) -> None:
        edge = self.edges.get(where.edge)
        if edge is None:
            edge = self.edges[where.edge] = EdgeHistory()
        edge.last_message = self.histories[where.task_id].last_message = self._stored
        edge.messages += 1
        if payload:
            edge.bits += packed_bits(payload)
        edge.tasks.add(where.task_id)
        if len(edge.incarnations) < MOST_LIVES:
            edge.incarnations.add(where.incarnation)
