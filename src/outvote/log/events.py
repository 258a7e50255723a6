"""What a record of the log changes. `LogState.apply` returns these; whoever looks on learns from them alone."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from outvote.core.messages import Elimination


class TaskCreated(NamedTuple):
    task_id: str


class TaskUnreadable(NamedTuple):
    """This version cannot read a task's record: it skips the task, and people are told."""

    task_id: str
    reason: str


class TaskStopped(NamedTuple):
    task_id: str


class TaskDeleted(NamedTuple):
    task_id: str
    name: str


class ExpectationStated(NamedTuple):
    task_id: str


class KillSwitchUsed(NamedTuple):
    task_id: str
    killed: bool
    changed: bool
    """It was not so before."""


class MessageStored(NamedTuple):
    """A message of an edge is in the log."""

    task_id: str
    edge: str
    incarnation: str
    bits: int
    counted: bool
    """The core took it; otherwise it is a fault or an attack."""


class EliminationDue(NamedTuple):
    """The core eliminates arms that the log still has: publish it."""

    task_id: str
    elimination: Elimination


class ArmsEliminated(NamedTuple):
    """The log has an elimination: it has happened."""

    task_id: str
    number: int
    elimination: Elimination
    messages: int
    """Counted messages of the task before it."""


class HoldChanged(NamedTuple):
    """The core found that sites differ, and eliminates nothing until they agree; or they do again."""

    task_id: str
    held: bool


class EdgeDiscounted(NamedTuple):
    """What an edge had sent in a task counts no more."""

    task_id: str
    edge: str
    messages: int


Event: TypeAlias = (
    TaskCreated
    | TaskUnreadable
    | TaskStopped
    | TaskDeleted
    | ExpectationStated
    | KillSwitchUsed
    | MessageStored
    | EliminationDue
    | ArmsEliminated
    | HoldChanged
    | EdgeDiscounted
)
