"""A listening socket, and uvicorn on it beside whatever else the loop does: for the edge's API and the server's.

Uvicorn by itself would end the process where an address cannot be had, take the program's signals, and log addresses.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any, Final

import uvicorn

from outvote.access.kits import Certificate
from outvote.access.tls import keep_fresh, server_context
from outvote.core.errors import OutvoteError
from outvote.web.acceptor import Acceptor
from outvote.web.connections import RECEIVE_BUFFER, SEND_BUFFER, Connection
from outvote.web.limits import Watch

GRACE: Final = 2
"""Seconds that unfinished requests have when the server stops."""


class ListenError(OutvoteError):
    """An API cannot be offered at an address."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections; port 0 is any free one."""
    if not 0 <= port <= 65535:  # getaddrinfo would take what is left of it after division
        raise ListenError(f"a port must be from 0 to 65535, got {port}")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ListenError(f"no address to listen on: got {host!r}, port {port}: {error}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)  # connections inherit both
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        listener.bind(address)
        listener.listen(2048)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise ListenError(
            f"cannot listen on {host!r}, port {port}: {error}; stop what listens there, or choose another port"
        ) from None
    return listener


class _Server(uvicorn.Server):
    """Signals belong to the program: uvicorn would raise them again before state is saved."""

    def __init__(self, config: uvicorn.Config, watch: Watch, context: ssl.SSLContext | None) -> None:
        super().__init__(config)
        self._watch = watch
        self._context = context

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn does, but with connections that have bounds."""
        loop, state = asyncio.get_running_loop(), self.server_state

        def make() -> Connection:
            return Connection(self._watch, self.config, state, loop)

        self.servers = [
            Acceptor(listener, make, state.connections, self._watch, self._context)  # type: ignore[misc]  # it closes
            for listener in sockets or []
        ]
        self.started = True

    async def on_tick(self, counter: int) -> bool:
        self._watch.tick(counter, self.server_state.connections)
        return await super().on_tick(counter)


async def run_app(
    app: Any,
    listener: socket.socket,
    *,
    closing: Callable[[], None] = lambda: None,
    certificate: Certificate | None = None,
    watch: Watch | None = None,
) -> None:
    """Answer requests in the running loop until cancelled, then let those under way end.

    `closing` is called first: it ends those that would go on for ever. With a certificate it speaks HTTPS, and shows a
    renewed one as soon as it is there. `watch` closes what clients do not finish, and counts it.
    """
    context = None if certificate is None else server_context(certificate)
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="warning",  # below that, uvicorn tells addresses
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    server = _Server(config, watch or Watch(), context)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    fresh = None
    if context is not None and certificate is not None:
        fresh = asyncio.create_task(keep_fresh(context, certificate))
    try:
        await asyncio.shield(running)
    finally:
        closing()
        server.should_exit = True
        if fresh is not None:
            fresh.cancel()
        await running
