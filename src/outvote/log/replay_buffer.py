"""What the log has told of a running task, kept in its order: to count again without one edge. Pure.

Bytes, not objects: a message takes about 15 of them, and a server keeps as many as its running tasks have.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

ADOPTED: Final = 2**32 - 1
"""In place of a life: here the log had the next elimination."""

_HEAD: Final = Struct("<IQH")  # the number of its life, its sequence, twice the bytes of its payload + 1 if it counted
_ELIMINATION: Final = _HEAD.pack(ADOPTED, 0, 0)


class BufferedMessage(NamedTuple):
    """One message, as it came."""

    edge: str
    incarnation: str
    sequence: int
    payload: bytes
    counted: bool
    """The server counted it; one that it refused may count where another edge is discounted, and leaves its place."""


class ReplayBuffer:
    """Messages that could be read, and where among them the log had an elimination."""

    __slots__ = ("_lives", "_told")

    def __init__(self) -> None:
        self._lives: dict[tuple[str, str], int] = {}
        """Edges and incarnations, numbered as they came."""
        self._told = bytearray()

    @property
    def size(self) -> int:
        """Bytes of all messages and eliminations."""
        return len(self._told)

    def receive(self, life: tuple[str, str], sequence: int, payload: bytes, counted: bool) -> None:
        """A message of an edge and its incarnation."""
        number = self._lives.get(life)
        if number is None:
            number = self._lives[life] = len(self._lives)
        self._told += _HEAD.pack(number, sequence, 2 * len(payload) + counted) + payload

    def adopt(self) -> None:
        """The log has the next elimination."""
        self._told += _ELIMINATION

    def excluding(self, edge: str) -> Iterator[BufferedMessage | None]:
        """All that was kept but the messages of this edge, in order; None is the next elimination."""
        lives, told = list(self._lives), bytes(self._told)
        start, end = 0, len(told)
        while start < end:
            number, sequence, size = _HEAD.unpack_from(told, start)
            payload_at = start + _HEAD.size
            start = payload_at + size // 2
            if number == ADOPTED:
                yield None
                continue
            name, incarnation = lives[number]
            if name != edge:
                yield BufferedMessage(name, incarnation, sequence, told[payload_at:start], size % 2 == 1)
