"""A listening socket, and uvicorn on it beside whatever else the loop does: for the edge's API and the server's.

Uvicorn by itself would end the process where an address cannot be had, take the program's signals, and log addresses.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any, Final

import uvicorn

from outvote.core.errors import OutvoteError

KEEP_ALIVE: Final = 75
"""Seconds that an idle connection stays open: longer than clients keep theirs, so that none is closed under a POST."""
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

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def run_app(app: Any, listener: socket.socket, *, closing: Callable[[], None] = lambda: None) -> None:
    """Answer requests in the running loop until cancelled, then let those under way end.

    `closing` is called first: it ends those that would go on for ever.
    """
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",  # below that, uvicorn tells addresses
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
    )
    server = _Server(config)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(running)
    finally:
        closing()
        server.should_exit = True
        await running
