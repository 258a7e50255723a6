"""Opens a listening socket and runs uvicorn on it in the current event loop, for the edge's API and the server's.

By default uvicorn would exit the process if it cannot bind, handle the program's signals, and log client addresses.
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
"""Seconds that unfinished requests have to finish when the server stops."""


class ListenError(OutvoteError):
    """Cannot listen on an address."""


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 chooses a free port."""
    if not 0 <= port <= 65535:  # getaddrinfo would take it modulo 65536
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
    """Leaves signals to the program: uvicorn would raise them again before state is saved."""

    def __init__(self, config: uvicorn.Config, watch: Watch, context: ssl.SSLContext | None) -> None:
        super().__init__(config)
        self._watch = watch
        self._context = context

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start like uvicorn, but with limited connections."""
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
    """Serve requests in the running loop until cancelled, then let open requests finish.

    `closing` is called first: it ends requests that would never finish. With a certificate it speaks HTTPS, and uses a
    renewed certificate as soon as it is written. `watch` closes and counts connections that exceed a deadline or limit.
    """
    context = None if certificate is None else server_context(certificate)
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="warning",  # below that, uvicorn logs addresses
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    server = _Server(config, watch or Watch(), context)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    renewing = None
    if context is not None and certificate is not None:
        renewing = asyncio.create_task(keep_fresh(context, certificate))
    try:
        await asyncio.shield(serving)
    finally:
        closing()
        server.should_exit = True
        if renewing is not None:
            renewing.cancel()
        await serving
