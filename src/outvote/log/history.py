"""The history of tasks and edges: when things happened, and who sent what. Shown to people; no decision uses it.

All times are when the engine stored a record, in seconds since 1970. Pure: no clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from outvote.log.events import ArmsEliminated, EdgeDiscounted, Event, MessageStored, TaskDeleted, TaskStopped
from outvote.log.log import Record

MOST_LIVES: Final = 64
"""Largest number of incarnations of one edge in one task; a discount resets it. Each costs every server memory, and
whoever holds the edge's credential could create any number."""


class Moment(NamedTuple):
    """When an elimination was stored."""

    record: int
    """Sequence of its record in the log."""
    messages: int
    """Number of the task's messages in the log before it."""
    at: float


class Discount(msgspec.Struct, frozen=True):
    """An edge was discounted: its messages before this record no longer count. `messages` is how many still counted
    until then; `at` is when the record was stored, in seconds since 1970."""

    edge: str
    messages: int
    record: int
    at: float


@dataclass
class TaskHistory:
    """When a task was created and stopped, and when arms were eliminated."""

    created: float = 0.0
    stopped: float | None = None
    last_message: float | None = None
    eliminations: list[Moment] = field(default_factory=list)


@dataclass(slots=True)
class EdgeHistory:
    """What the log holds of one edge, over all tasks. The sums include deleted tasks."""

    last_message: float = 0.0
    messages: int = 0
    bits: int = 0
    tasks: set[str] = field(default_factory=set)
    """Existing tasks with a message of this edge."""
    incarnations: set[str] = field(default_factory=set)
    """At most `MOST_LIVES` of them: people need to know only whether there are several."""
    discounted: int = 0
    """Number of its messages that no longer count."""


@dataclass
class History:
    """The history of all tasks and edges, built from events."""

    tasks: dict[str, TaskHistory] = field(default_factory=dict)
    edges: dict[str, EdgeHistory] = field(default_factory=dict)

    def note(self, event: Event, record: Record) -> None:
        """Add an event and the record that caused it."""
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
