"""State shared by all connections of one HTTP listener: limits, a clock in whole seconds, and counts for metrics.

Deadlines need no timers: every connection is checked once a second.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from outvote.observability.logs import event
from outvote.observability.once_per_minute import OncePerMinute

if TYPE_CHECKING:
    from outvote.web.connections import Connection

UNFINISHED: Final = 10
"""Timeout in seconds of a request (first byte to last), of a connection's first request, and of a TLS handshake."""
KEEP_ALIVE: Final = 75
"""Seconds that an idle connection stays open: longer than clients keep it, so that none is closed during a POST."""
STUCK: Final = 60
"""Seconds within which a client must read some of its response."""
CLOSING: Final = 5
"""Seconds that a connection may take to close cleanly."""
MOST_CONNECTIONS: Final = 10_000
MOST_TLS_CONNECTIONS: Final = 2_000
"""The limit over TLS, where an idle connection takes about 50 KiB instead of 5."""
MOST_HELD: Final = 32 * 1024 * 1024
"""Maximum bytes of unfinished requests of all connections together, and separately of unread responses."""
MANY: Final = 100
"""Connections after which memory is returned to the system."""

_log = logging.getLogger(__name__)


@dataclass
class Traffic:
    """Counts of connections that were closed early, for metrics."""

    unfinished: int = 0
    """A request was not complete, or a response not read, in time."""
    turned_away: int = 0
    """There were too many connections, or too many unfinished requests."""


class Watch:
    """The clock, in whole seconds, and the common limits of all connections of one listener."""

    def __init__(
        self,
        traffic: Traffic | None = None,
        *,
        patience: int = UNFINISHED,
        stuck: int = STUCK,
        most_connections: int | None = None,
        most_held: int = MOST_HELD,
        ticks: int = 10,
    ) -> None:
        """`ticks` of uvicorn's server make a second; tests use fewer."""
        self.now = 1
        self.held = 0
        """Bytes of unfinished and queued requests."""
        self.patience = patience
        self.stuck = stuck
        self.idle: dict[Connection, int] = {}
        """Idle connections, the longest idle first, with the second since which they are idle."""
        self._most_connections = most_connections
        self.most_held = most_held
        self.traffic = traffic or Traffic()
        self.accepted = 0
        """Connections accepted since `MANY` was last reached."""
        self._give_back_until = 0
        """The second until which memory is returned: by then all of these connections have closed."""
        self._ticks = ticks
        self._often = OncePerMinute[str]()

    def tick(self, number: int, connections: Iterable[Any]) -> None:
        """Check all connections once a second."""
        if number % self._ticks:
            return
        self.now += 1
        current = tuple(connections)
        for connection, since in tuple(self.idle.items()):
            if self.now - since <= KEEP_ALIVE:
                break
            connection.transport.close()
        if self.accepted >= MANY:
            self.accepted, self._give_back_until = 0, self.now + KEEP_ALIVE + 2 * UNFINISHED
        if self.now <= self._give_back_until and self.now % UNFINISHED == 0:
            give_memory_back()
        closed = sum(connection.look(self.now) for connection in current) + self._end_unread(current)
        self.traffic.unfinished += closed
        if count := self._often.note("unfinished", self.now, count=closed):
            event(_log, logging.WARNING, "requests_unfinished", count=count)
        self._tell_turned_away(0)

    def _end_unread(self, connections: Iterable[Connection]) -> int:
        """While too many bytes are unread in all, abort the connection with the most."""
        unread = sorted((item for item in connections if item.unread), key=lambda item: item.unread)
        total, ended = sum(item.unread for item in unread), 0
        while total > self.most_held:
            connection = unread.pop()
            total -= connection.unread
            connection.transport.abort()
            ended += 1
        return ended

    def most_connections(self, *, tls: bool) -> int:
        return self._most_connections or (MOST_TLS_CONNECTIONS if tls else MOST_CONNECTIONS)

    def end_longest_idle(self) -> bool:
        """Abort the longest idle connection to make room. Return False if none is idle."""
        for connection in self.idle:
            del self.idle[connection]
            connection.transport.abort()
            return True
        return False

    def turn_away(self) -> None:
        self.traffic.turned_away += 1
        self._tell_turned_away(1)

    def _tell_turned_away(self, more: int) -> None:
        if count := self._often.note("turned away", self.now, count=more):
            event(_log, logging.WARNING, "connections_turned_away", count=count)


def give_memory_back() -> None:
    """Make the C library return freed memory, which it would keep after many connections, to the system."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
    if trim is not None:
        trim(0)
