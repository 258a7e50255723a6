"""When things happened in the log, and who sent what: for people. No decision depends on it.

All times are those at which the engine stored a record. Pure: no clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec


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

    created: float
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
