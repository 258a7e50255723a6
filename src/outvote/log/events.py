"""Events: the changes that one log record causes. `LogState.apply` returns them, and observers use nothing else."""

from __future__ import annotations

import msgspec

from outvote.core.messages import Elimination


class Event(msgspec.Struct, frozen=True):
    """A change to one task."""

    task_id: str


class TaskCreated(Event, frozen=True):
    """The task's record is in the log, and its name was free."""


class TaskUnreadable(Event, frozen=True):
    """This version cannot read the task's record: it skips the task and reports it."""

    reason: str


class TaskStopped(Event, frozen=True):
    """The task was stopped: it eliminates no more arms."""


class TaskDeleted(Event, frozen=True):
    name: str


class ExpectationStated(Event, frozen=True):
    """Operators stated what they expect of the task."""


class KillSwitchUsed(Event, frozen=True):
    killed: bool
    changed: bool
    """Whether the state of the switch is new."""


class MessageStored(Event, frozen=True):
    """An edge's message is in the log."""

    edge: str
    incarnation: str
    bits: int
    counted: bool
    """Whether the core accepted it; a rejected message is a fault or an attack."""


class EliminationDue(Event, frozen=True):
    """The core eliminated arms, and the log has no record of it yet: publish one."""

    elimination: Elimination


class ArmsEliminated(Event, frozen=True):
    """An elimination is in the log, and so is final."""

    number: int
    elimination: Elimination
    messages: int
    """Number of the task's accepted messages before it."""


class HoldChanged(Event, frozen=True):
    """The core began or ended a hold: while the sites' results disagree, it eliminates nothing."""

    held: bool


class EdgeDiscounted(Event, frozen=True):
    """An edge's messages so far no longer count in a task."""

    edge: str
    messages: int
