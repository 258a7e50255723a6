"""Connections of an HTTP listener that clients cannot hold for ever: what is not finished in time is closed.

No request has a timer. A request notes the second in which it began, and once a second all connections are looked at:
those that wait idly for a next request, and answers that go on for ever to who reads them, are left alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from outvote.network.logs import Tallied

UNFINISHED: Final = 10
"""Seconds that a request may take to come, from its first byte to its last; and a first one, or a handshake, at all."""
STUCK: Final = 60
"""Seconds in which somebody who does not read an answer must have read some of it."""
CLOSING: Final = 5
"""Seconds that a connection may take to close in order."""
LARGEST_HEAD: Final = 64 * 1024
MOST_BYTES: Final = 16 * 1024 * 1024
"""Of one request. Applications read no body as large; what is beyond theirs is discarded as it comes, up to here."""
MOST_FIELDS: Final = 1000
"""Of a head, and of what may follow a body in pieces."""
MOST_CONNECTIONS: Final = 10_000

_log = logging.getLogger(__name__)


def _answer(status: str, kind: str, title: str, detail: str) -> bytes:
    body = f'{{"type":"{kind}","title":"{title}","status":{status[:3]},"detail":"{detail}"}}'
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\ncontent-length: {len(body)}\r\n"
    return f"{head}connection: close\r\n\r\n{body}".encode("ascii")


NOT_WHOLE: Final = _answer(
    "408 Request Timeout",
    "about:blank",
    "Request Timeout",
    f"the request was not whole within {UNFINISHED} s: send it at once",
)
TOO_MUCH: Final = _answer(
    "431 Request Header Fields Too Large",
    "about:blank",
    "Request Header Fields Too Large",
    f"the head of a request may have {LARGEST_HEAD} bytes",
)
FULL: Final = _answer(
    "503 Service Unavailable",
    "about:blank",
    "Service Unavailable",
    f"{MOST_CONNECTIONS} connections are open, and more are not taken: try again later",
)


@dataclass
class Traffic:
    """What was counted of a listener's connections, for who shows figures."""

    unfinished: int = 0
    """Requests that did not come, or answers that nobody read, in time."""
    turned_away: int = 0
    """Connections that were one too many."""


class Connection(HttpToolsProtocol):
    """One connection, which knows since when somebody owes the rest of a request."""

    def __init__(
        self, watch: Watch, config: uvicorn.Config, state: ServerState, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(config, state, {}, loop)
        self.watch = watch
        self.since = 0
        """The second in which what is not whole began; 0 if nothing is owed."""
        self.received = 0
        """Bytes of it, but for those that came with its first."""
        self.late = 0
        """Seconds since it should have closed, or since its answer was last read."""
        self.unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.since = self.watch.now
        if len(self.connections) > self.watch.most:
            self.watch.turned_away()
            transport.write(FULL)
            transport.close()

    def data_received(self, data: bytes) -> None:
        if not self.since:
            self.since = self.watch.now
        super().data_received(data)
        if self.since:
            self._owed(len(data))

    def on_message_begin(self) -> None:
        self.since = self.watch.now
        self.received = 0
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self.since = 0
        super().on_message_complete()

    def _owed(self, size: int) -> None:
        """More will have to come; but not without end."""
        self.received += size
        if self.received > LARGEST_HEAD and not self.transport.is_closing():
            if not self._head_is_read:
                self.transport.write(TOO_MUCH)
                self.transport.close()
            elif self.received > MOST_BYTES or len(self.headers) > MOST_FIELDS:
                self.transport.abort()

    @property
    def _head_is_read(self) -> bool:
        return self.scope is not None and "path" in self.scope

    def look(self, now: int) -> bool:
        """Whether its time was over, and it was closed."""
        transport = self.transport
        if transport.is_closing():
            self.late += 1
            if self.late > CLOSING:
                transport.abort()
            return False
        if self.flow.write_paused:
            return self._is_stuck()
        self.late = self.unread = 0
        if not self.since or now - self.since <= self.watch.patience:
            return False
        if self.flow.read_paused:  # it is us who do not read
            self.since = now
            return False
        cycle = self.cycle
        if self._head_is_read and cycle is not None and not (cycle.response_started or self.pipeline):
            transport.write(NOT_WHOLE)
        transport.close()
        return True

    def _is_stuck(self) -> bool:
        unread = self.transport.get_write_buffer_size()
        self.late = 0 if self.unread and unread < self.unread else self.late + 1
        self.unread = unread
        if self.late <= self.watch.stuck:
            return False
        self.transport.abort()  # to close it in order, the rest would have to be read
        return True


class Watch:
    """The clock of all connections of one listener, in whole seconds, and what came of looking at them."""

    def __init__(
        self,
        traffic: Traffic | None = None,
        *,
        patience: int = UNFINISHED,
        stuck: int = STUCK,
        most: int = MOST_CONNECTIONS,
        ticks: int = 10,
    ) -> None:
        """A second has ten ticks of the server; of fewer if somebody is in a hurry."""
        self.now = 1
        self._ticks = ticks
        self.patience = patience
        self.stuck = stuck
        self.most = most
        self.traffic = traffic or Traffic()
        self._unfinished = Tallied(_log, logging.WARNING, "requests_unfinished")
        self._turned_away = Tallied(_log, logging.WARNING, "connections_turned_away")

    def tick(self, number: int, connections: Iterable[Any]) -> None:
        """Once a second all are looked at."""
        if number % self._ticks:
            return
        self.now += 1
        closed = sum(each.look(self.now) for each in tuple(connections))
        if closed:
            self.traffic.unfinished += closed
            self._unfinished.note(count=closed)
        self._unfinished.tell()
        self._turned_away.tell()

    def turned_away(self) -> None:
        self.traffic.turned_away += 1
        self._turned_away.note()
