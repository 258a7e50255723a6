"""Every error that Outvote raises on purpose. A message says what was received, what is allowed, and what to do.

OutvoteError
├── InvalidTask             the description of a task, or of a simulation of one, cannot be
├── InvalidEvent            the caller of a player erred; the player has not changed
│   ├── InvalidReward         not a number in [0, 1]
│   ├── UnknownArm            an arm that the task does not have (also raised for messages that name one)
│   ├── UnknownTicket         a ticket that this player never issued for that arm
│   ├── NoOutstandingDecision a reward that no decision waits for
│   └── BatchNotClosable      a batch that cannot be closed (still open, or no reward window)
├── RefusedMessage          somebody else erred; the receiver has not changed
│   ├── MalformedMessage      bits or fields that are no message of this task
│   └── UnknownPlayer         a vote of a player that the task did not declare
└── MalformedSnapshot       a snapshot that is cut, altered, or of another task
"""

from __future__ import annotations

from collections.abc import Iterable


class OutvoteError(Exception):
    """The root of the tree."""


class InvalidTask(OutvoteError, ValueError):
    """A value that no task, or no simulation, can have."""


class InvalidEvent(OutvoteError, ValueError):
    """The application gave a player something that it cannot use."""


class InvalidReward(InvalidEvent):
    """A reward must be a number in [0, 1]."""


class UnknownArm(InvalidEvent):
    """An arm is an index into `task.arms`."""

    @classmethod
    def of(cls, arm: object, arms: int) -> UnknownArm:
        return cls(f"unknown arm: got {arm!r}, allowed is a whole number from 0 to {arms - 1}")


class UnknownTicket(InvalidEvent):
    """A ticket must come from this player's own `decide()`."""


class NoOutstandingDecision(InvalidEvent):
    """Each decision may be rewarded once."""


class BatchNotClosable(InvalidEvent):
    """A batch closes once, after its last decision, and only where the task has a reward window."""


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
