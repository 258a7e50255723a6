"""The messages of a running task in log order, kept so that they can be recounted without one edge. Pure.

They are packed in bytes, about 23 a message, because a server keeps all messages of its running tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

ADOPTED: Final = 2**32 - 1
"""Marks an elimination, in place of the number of an incarnation."""

_HEAD: Final = Struct("<IQQH")  # incarnation number, sequence, time, payload size << 1 | counted
_ELIMINATION: Final = _HEAD.pack(ADOPTED, 0, 0, 0)


class BufferedMessage(NamedTuple):
    """One message, in log order."""

    edge: str
    incarnation: str
    sequence: int
    at: int
    """When the log stored it, in milliseconds since 1970."""
    payload: bytes
    counted: bool
    """Whether the core accepted it. A refused vote may be accepted once another edge is discounted."""


class ReplayBuffer:
    """The readable messages of a task, and the positions of the eliminations among them."""

    __slots__ = ("_lives", "_packed")

    def __init__(self) -> None:
        self._lives: dict[tuple[str, str], int] = {}
        """Numbers of (edge, incarnation), in order of arrival."""
        self._packed = bytearray()

    @property
    def size(self) -> int:
        """Size in bytes."""
        return len(self._packed)

    def receive(self, life: tuple[str, str], sequence: int, at: int, payload: bytes, counted: bool) -> None:
        """Add a message; `life` is its edge and incarnation, `at` when the log stored it."""
        number = self._lives.get(life)
        if number is None:
            number = self._lives[life] = len(self._lives)
        self._packed += _HEAD.pack(number, sequence, at, 2 * len(payload) + counted) + payload

    def adopt(self) -> None:
        """Mark the next elimination."""
        self._packed += _ELIMINATION

    def excluding(self, edge: str) -> Iterator[BufferedMessage | None]:
        """Yield all messages but those of this edge, in order; None marks the next elimination."""
        lives, packed = list(self._lives), bytes(self._packed)
        start, end = 0, len(packed)
        while start < end:
            number, sequence, at, size = _HEAD.unpack_from(packed, start)
            payload_at = start + _HEAD.size
            start = payload_at + size // 2
            if number == ADOPTED:
                yield None
                continue
            name, incarnation = lives[number]
            if name != edge:
                yield BufferedMessage(name, incarnation, sequence, at, packed[payload_at:start], size % 2 == 1)
