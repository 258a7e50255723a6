"""When things happened in the log, and who sent what: for people. No decision depends on it.

All times are those at which the engine stored a record. Pure: no clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from outvote.log.events import ArmsEliminated, EdgeDiscounted, Event, MessageStored, TaskDeleted, TaskStopped
from outvote.log.log import Record

MOST_LIVES: Final = 64
"""Incarnations of one edge in one task: each costs every server memory, and whoever has the edge's credential could
open any number. A site that really loses its store so often has another trouble. A discount lets it begin again."""


class Moment(NamedTuple):
    """When an elimination was stored."""

    record: int
    """Its place in the log."""
    messages: int
    """How many messages of the task were in the log before it."""
    at: float


class Discount(msgspec.Struct, frozen=True):
    """An edge was discounted: so many messages of it, all that were in the log before this record and still counted,
    count no more. `at` is when the record was stored, in seconds since 1970."""

    edge: str
    messages: int
    record: int
    at: float


@dataclass
class TaskHistory:
    """When a task was created, stopped, and its arms eliminated."""

    created: float = 0.0
    stopped: float | None = None
    last_message: float | None = None
    eliminations: list[Moment] = field(default_factory=list)


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
class History:
    """The history of all tasks and edges, told by events."""

    tasks: dict[str, TaskHistory] = field(default_factory=dict)
    edges: dict[str, EdgeHistory] = field(default_factory=dict)

    def note(self, event: Event, record: Record) -> None:
        """Note what a record has changed."""
        match event:
            case MessageStored():
                self._note_message(event, record.stored)
            case TaskDeleted(task_id):
                self.tasks.pop(task_id, None)
                for edge in self.edges.values():
                    edge.tasks.discard(task_id)
            case TaskStopped(task_id):
                self.tasks[task_id].stopped = record.stored
            case ArmsEliminated(task_id, messages=messages):
                self.tasks[task_id].eliminations.append(Moment(record.sequence, messages, record.stored))
            case EdgeDiscounted(_, name, messages) if name in self.edges:
                self.edges[name].discounted += messages
            case _:
                pass

    def _note_message(self, message: MessageStored, stored: float) -> None:
        edge = self.edges.get(message.edge)
        if edge is None:
            edge = self.edges[message.edge] = EdgeHistory()
        edge.last_message = self.tasks[message.task_id].last_message = stored
        edge.messages += 1
        edge.bits += message.bits
        edge.tasks.add(message.task_id)
        if len(edge.incarnations) < MOST_LIVES:
            edge.incarnations.add(message.incarnation)
