"""Every error that Outvote raises on purpose. A message says what was received, what is allowed, and what to do.

OutvoteError
├── InvalidInput            a value that was given is not allowed; carries its field and a code
│   ├── InvalidTask           of a task
│   ├── InvalidSettings       of a simulation or a plan
│   └── InvalidConfiguration  of a process, a fleet or a command: addresses, files, kits, tokens, options
├── InvalidEvent            the caller of a player erred; the player has not changed
│   ├── InvalidReward         not a number in [0, 1]
│   ├── UnknownArm            an arm that the task does not have (also raised for messages that name one)
│   ├── InvalidTicket         a text that no decision came with
│   └── UnknownDecision       a ticket of another task or process, or of a decision that a crash lost
├── RefusedMessage          somebody else erred; the receiver has not changed
│   ├── MalformedMessage      bits or fields that are no message of this task
│   └── UnknownPlayer         a vote of a player that the task did not declare
└── MalformedSnapshot       a snapshot that is cut, altered, or of another task
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self


class OutvoteError(Exception):
    """The root of the tree."""


class InvalidInput(OutvoteError, ValueError):
    """A value that was given is not allowed.

    `field` is the name of the value, or None where several or none are concerned. `code` says for programs what is
    wrong: missing, unknown, type, range, choice, duplicate, conflict (does not go with another value), or invalid.
    The message is the field's name followed by `problem`, so that it can be told under another name (`named`).
    """

    def __init__(self, problem: str, *, field: str | None = None, code: str = "invalid") -> None:
        super().__init__(problem)
        self.problem = problem
        self.field = field
        self.code = code

    def __str__(self) -> str:
        return self.problem if self.field is None else f"{self.field} {self.problem}"

    def named(self, field: str | None) -> Self:
        """Return the same error, with the name that whoever gave the value knows it by."""
        return type(self)(self.problem, field=field, code=self.code)


class InvalidTask(InvalidInput):
    """A value that no task can have."""


class InvalidSettings(InvalidInput):
    """A value that no simulation, or no plan, can have."""


class InvalidConfiguration(InvalidInput):
    """A value that no process, fleet or command can be set up with."""


class InvalidEvent(OutvoteError, ValueError):
    """The application gave a player something that it cannot use."""


class InvalidReward(InvalidEvent):
    """A reward must be a number in [0, 1]."""


class UnknownArm(InvalidEvent):
    """An arm is an index into `task.arms`."""

    @classmethod
    def of(cls, arm: object, arms: int) -> UnknownArm:
        return cls(f"unknown arm: got {arm!r}, allowed is a whole number from 0 to {arms - 1}")


class InvalidTicket(InvalidEvent):
    """A ticket must be what the decision came with, unchanged."""


class UnknownDecision(InvalidEvent):
    """A reward must be for a decision that this player made and has not forgotten."""


class RefusedMessage(OutvoteError, ValueError):
    """A message that the receiver will not count."""


class MalformedMessage(RefusedMessage):
    """Bits or fields that are no message of the task."""


class UnknownPlayer(RefusedMessage):
    """A player that the task did not declare, or one more than it declared."""


class MalformedSnapshot(OutvoteError, ValueError):
    """A snapshot from which nothing can be restored."""


def one_of(allowed: Iterable[object]) -> str:
    """The values of a closed choice, for an error message."""
    return ", ".join(repr(value) for value in allowed)


class UnknownTask(OutvoteError, LookupError):
    """A task that is not there."""
