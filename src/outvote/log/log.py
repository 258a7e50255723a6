"""The interface of the fleet's shared log: append, follow, listen, and ask a server for missed records.

`outvote.engine` implements it on NATS JetStream, `outvote.log.memory` in memory. `tests/log/test_contract.py` tests
both against the same contract.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol

from outvote.log.catch_up import Answer, Question


class Record(NamedTuple):
    """One record of the log."""

    subject: str
    payload: bytes
    sequence: int
    """Position in the log; the first record has 1."""
    stored: float
    """When the engine stored it: seconds since 1970."""


class ConnectionFigures(NamedTuple):
    """Statistics of a connection to the log, for operators."""

    reconnections: int = 0
    forbidden: int = 0
    """Number of requests that the log refused for lack of permission."""
    credential_expires: int | None = None
    """Expiry of the credential, in seconds since 1970."""
    wire_bytes: int = 0
    """Bytes on the network in both directions, with protocol headers."""


class Reader(Protocol):
    """Reads the log in the background."""

    @property
    def end(self) -> int:
        """Sequence of the last record known to be in the log."""

    @property
    def current(self) -> bool:
        """Whether all records up to `end` were read."""

    @property
    def writable(self) -> bool:
        """Whether the last write to the log succeeded."""

    async def wait_current(self) -> None:
        """Return once all records that existed at the start were read."""

    async def watch(self) -> None:
        """Run until reading fails for good, then raise the reason."""


class Log(Protocol):
    """A connection to the log.

    A subject holds one record for ever. So an append is idempotent: the first record on a subject wins, and a retry
    does no harm.
    """

    reconnected: asyncio.Event
    """Set after every reconnection; the waiter clears it."""

    @property
    def connected(self) -> bool: ...

    def figures(self) -> ConnectionFigures:
        """Return statistics. Call it regularly: the bytes of a lost connection since the last call are not counted."""

    async def open(self) -> None:
        """Return once connected for the first time."""

    async def close(self) -> None: ...

    async def append(self, subject: str, payload: bytes) -> bool:
        """Store a record and return whether it is new. Retries until the log acknowledges."""

    # ---- servers

    async def prepare(self) -> None:
        """Create the log if it does not exist."""

    async def log_end(self) -> int:
        """Return the sequence of the last record. Retries until the log answers."""

    async def follow(self, on_record: Callable[[Record], None]) -> Reader:
        """Pass every record to `on_record`, once and in order, beginning with the first."""

    async def answer(self, reply: Callable[[str, Question], Answer | None]) -> None:
        """Answer edges' questions. One server gets each question; None sends no answer."""

    async def overhear(self, on_question: Callable[[str, Question], None]) -> None:
        """Pass every question, and the name of the edge that asks, to `on_question`, whichever server answers."""

    # ---- edges

    async def listen(self, on_news: Callable[[str, bytes], None]) -> None:
        """Pass new records for edges to `on_news`. Some may be missed, repeated or out of order."""

    async def ask(self, edge: str, question: Question) -> Answer | None:
        """Ask any server for missed records; None on timeout. Raises `MalformedMessage` for an invalid answer."""
