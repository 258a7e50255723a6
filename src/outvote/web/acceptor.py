"""Accepts connections from a listening socket, up to a limit that includes TLS handshakes.

At the limit, a new connection replaces the oldest unfinished handshake, else the longest idle connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Collection
from typing import Any, Final

from outvote.web.connections import TOO_MANY, Connection
from outvote.web.limits import CLOSING, UNFINISHED, Watch

AT_ONCE: Final = 100
"""Maximum connections to accept before other work of the loop."""
NO_FILES: Final = 1.0
"""Seconds until a retry when the process has no file descriptors left."""


class Acceptor:
    """Stands for an `asyncio.Server` in uvicorn, which closes it and waits for it."""

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], Connection],
        connections: Collection[Any],
        watch: Watch,
        context: ssl.SSLContext | None,
    ) -> None:
        """`make` creates a connection; `connections` are the open ones."""
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._make = make
        self._connections = connections
        self._watch = watch
        self._most = watch.most_connections(tls=context is not None)
        self._tls: dict[str, Any] = {}
        if context is not None:
            self._tls = {"ssl": context, "ssl_handshake_timeout": UNFINISHED, "ssl_shutdown_timeout": CLOSING}
        self._handshakes: dict[asyncio.Task[Any], None] = {}
        """The oldest first."""
        self._retry: asyncio.TimerHandle | None = None
        self._listen()

    def close(self) -> None:
        self._loop.remove_reader(self._listener)
        if self._retry is not None:
            self._retry.cancel()
        for handshake in self._handshakes:
            handshake.cancel()

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._handshakes, return_exceptions=True)

    def _listen(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                newcomer, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:
                self._loop.remove_reader(self._listener)
                self._retry = self._loop.call_later(NO_FILES, self._listen)
                return
            if not self._has_room():
                self._turn_away(newcomer)
                continue
            newcomer.setblocking(False)
            self._watch.accepted += 1
            handshake = self._loop.create_task(self._loop.connect_accepted_socket(self._make, newcomer, **self._tls))
            self._handshakes[handshake] = None
            handshake.add_done_callback(self._finished)

    def _finished(self, handshake: asyncio.Task[Any]) -> None:
        self._handshakes.pop(handshake, None)
        if not handshake.cancelled():
            handshake.exception()  # retrieve the error: a failed handshake concerns the client only

    def _has_room(self) -> bool:
        if len(self._connections) + len(self._handshakes) < self._most:
            return True
        if self._tls and self._handshakes:  # without TLS a connection is there at once, and must not be ended
            oldest = next(iter(self._handshakes))
            del self._handshakes[oldest]
            oldest.cancel()
            return True
        return self._watch.end_longest_idle()

    def _turn_away(self, newcomer: socket.socket) -> None:
        self._watch.turn_away()
        with contextlib.suppress(OSError):
            newcomer.setblocking(False)
            if not self._tls:
                newcomer.send(TOO_MANY)
        newcomer.close()
