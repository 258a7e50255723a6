"""What all connections of one HTTP listener share: limits, a clock in whole seconds, and counts for metrics.

Deadlines have no timers: once a second every connection is looked at.
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
"""Seconds from a request's first byte to its last; also for a connection's first request, and for a TLS handshake."""
KEEP_ALIVE: Final = 75
"""Seconds that an idle connection stays open: longer than clients keep theirs, so that none is closed under a POST."""
STUCK: Final = 60
"""Seconds in which a client must have read some of its answer."""
CLOSING: Final = 5
"""Seconds that a connection may take to close in order."""
MOST_CONNECTIONS: Final = 10_000
MOST_TLS_CONNECTIONS: Final = 2_000
"""The same over TLS, where an idle one takes about 50 KiB instead of 5."""
MOST_HELD: Final = 32 * 1024 * 1024
"""Bytes of unfinished requests of all connections together; as much again for answers that nobody reads."""
MANY: Final = 100
"""Connections after which memory is given back to the system."""

_log = logging.getLogger(__name__)


@dataclass
class Traffic:
    """Connections that were closed early, for metrics."""

    unfinished: int = 0
    """A request did not come, or an answer was not read, in time."""
    turned_away: int = 0
    """There were too many connections, or too many unfinished requests."""


class Watch:
    """The clock of all connections of one listener, in whole seconds, and their common limits."""

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
        """`ticks` of uvicorn's server are a second; tests take fewer."""
        self.now = 1
        self.held = 0
        """Bytes of requests that are unfinished, or wait for their turn."""
        self.patience = patience
        self.stuck = stuck
        self.idle: dict[Connection, int] = {}
        """Connections that wait for a request, the longest waiting first, and since which second."""
        self._most_connections = most_connections
        self.most_held = most_held
        self.traffic = traffic or Traffic()
        self.accepted = 0
        """Connections since there were last many."""
        self._give_back_until = 0
        """The second until which memory is given back: by then all of many connections have gone."""
        self._ticks = ticks
        self._often = OncePerMinute[str]()

    def tick(self, number: int, connections: Iterable[Any]) -> None:
        """Look at all connections once a second."""
        if number % self._ticks:
            return
        self.now += 1
        everybody = tuple(connections)
        for connection, since in tuple(self.idle.items()):
            if self.now - since <= KEEP_ALIVE:
                break
            connection.transport.close()
        if self.accepted >= MANY:
            self.accepted, self._give_back_until = 0, self.now + KEEP_ALIVE + 2 * UNFINISHED
        if self.now <= self._give_back_until and self.now % UNFINISHED == 0:
            give_memory_back()
        closed = sum(connection.look(self.now) for connection in everybody) + self._end_unread(everybody)
        self.traffic.unfinished += closed
        if count := self._often.note("unfinished", self.now, count=closed):
            event(_log, logging.WARNING, "requests_unfinished", count=count)
        self._tell_turned_away(0)

    def _end_unread(self, connections: Iterable[Connection]) -> int:
        """End those that leave most unread, while all together leave too much."""
        unread = sorted((each for each in connections if each.unread), key=lambda each: each.unread)
        total, ended = sum(each.unread for each in unread), 0
        while total > self.most_held:
            connection = unread.pop()
            total -= connection.unread
            connection.transport.abort()
            ended += 1
        return ended

    def most_connections(self, *, tls: bool) -> int:
        return self._most_connections or (MOST_TLS_CONNECTIONS if tls else MOST_CONNECTIONS)

    def end_longest_idle(self) -> bool:
        """Make room for a newcomer, if any connection is idle."""
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
    """The C library keeps what many connections had in the middle of its heap, unless it is told not to."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
    if trim is not None:
        trim(0)
