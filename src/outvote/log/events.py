"""What a record of the log changes. `LogState.apply` returns these; whoever looks on learns from them alone."""

from __future__ import annotations

import msgspec

from outvote.core.messages import Elimination


class Event(msgspec.Struct, frozen=True):
    """Something happened to a task."""

    task_id: str


class TaskCreated(Event, frozen=True):
    """Its record is in the log, and nobody had its name."""


class TaskUnreadable(Event, frozen=True):
    """This version cannot read a task's record: it skips the task, and people are told."""

    reason: str


class TaskStopped(Event, frozen=True):
    """Nothing more is decided."""


class TaskDeleted(Event, frozen=True):
    name: str


class ExpectationStated(Event, frozen=True):
    """Operators said what they expect of it."""


class KillSwitchUsed(Event, frozen=True):
    killed: bool
    changed: bool
    """It was not so before."""


class MessageStored(Event, frozen=True):
    """A message of an edge is in the log."""

    edge: str
    incarnation: str
    bits: int
    counted: bool
    """The core took it; otherwise it is a fault or an attack."""


class EliminationDue(Event, frozen=True):
    """The core eliminates arms that the log still has: publish it."""

    elimination: Elimination


class ArmsEliminated(Event, frozen=True):
    """The log has an elimination: it has happened."""

    number: int
    elimination: Elimination
    messages: int
    """Counted messages of the task before it."""


class HoldChanged(Event, frozen=True):
    """The core found that sites differ, and eliminates nothing until they agree; or they do again."""

    held: bool


class EdgeDiscounted(Event, frozen=True):
    """What an edge had sent in a task counts no more."""

    edge: str
    messages: int
