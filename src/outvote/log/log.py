"""The one log of a fleet, as edges and servers use it: append, read, follow, and ask a server what was missed.

`outvote.engine` has the log on NATS JetStream, `outvote.log.memory` one in memory. `tests/log/test_contract.py` holds
both to the same promises.
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
    """Its position: the first record has 1."""
    stored: float
    """When the engine stored it: seconds since 1970."""


class ConnectionFigures(NamedTuple):
    """What operators are told of a connection to the log."""

    reconnections: int = 0
    forbidden: int = 0
    """How often the log did not allow what was asked of it."""
    credential_expires: int | None = None
    """Seconds since 1970."""
    wire_bytes: int = 0
    """Bytes that have really crossed the network, both ways."""


class Reader(Protocol):
    """Reads the log in the background."""

    @property
    def end(self) -> int:
        """The last position that is known to be in the log."""

    @property
    def current(self) -> bool:
        """Whether everything up to `end` was read."""

    @property
    def writable(self) -> bool:
        """Whether the log took what it was last asked to store."""

    async def wait_current(self) -> None:
        """Return once everything was read that was there when reading began."""

    async def watch(self) -> None:
        """Run until reading is over for good; raises why."""


class Log(Protocol):
    """A connection to the log.

    A subject holds one record for ever. So the subject is the expected position of an append: whoever comes first has
    it, and to append again does no harm.
    """

    reconnected: asyncio.Event
    """Set after every reconnection; whoever waits for it clears it."""

    @property
    def connected(self) -> bool: ...

    def figures(self) -> ConnectionFigures:
        """What operators are told of this connection. Call it now and then: bytes are counted while it lasts."""

    async def open(self) -> None:
        """Return once connected for the first time."""

    async def close(self) -> None: ...

    async def append(self, subject: str, payload: bytes) -> bool:
        """Store a record; returns whether it is new. Tries until the log has answered."""

    # ---- servers

    async def prepare(self) -> None:
        """Create the log if there is none."""

    async def log_end(self) -> int:
        """The position of the last record. Tries until the log has answered."""

    async def follow(self, on_record: Callable[[Record], None]) -> Reader:
        """Give every record to `on_record`, once and in order, from the first one on."""

    async def answer(self, reply: Callable[[str, Question], Answer | None]) -> None:
        """Answer the questions of edges; one server gets each question. None is no answer."""

    async def overhear(self, on_question: Callable[[str], None]) -> None:
        """Be told the name of every edge that asks, whichever server answers."""

    # ---- edges

    async def listen(self, on_news: Callable[[str, bytes], None]) -> None:
        """Be told of records for edges as they are stored. Some may be missed, repeated or out of order."""

    async def ask(self, edge: str, question: Question) -> Answer | None:
        """Ask any server what was missed; None if none answers in time. Raises `MalformedMessage` for what is no
        answer."""
