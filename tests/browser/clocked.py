"""A server with its pages in a thread of its own, whose clock can be set forward: edges fall silent without waiting.

All else is real: the engine, the edges, the sockets.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from network.processes import DEADLINE
from outvote.dashboard.app import Dashboard
from outvote.network.admin_api import Admin, make_app
from outvote.network.engine import Engine
from outvote.network.http_server import listen, run_app
from outvote.network.link import Link
from outvote.network.operated import OperatedServer


class Clocked:
    """Where the server is, and how far its clock is ahead, in seconds."""

    def __init__(self, engine: Engine) -> None:
        self.nats = engine.url
        self.ahead = 0.0
        self.url = ""
        self.ready = threading.Event()
        self.end: asyncio.Event
        self.loop: asyncio.AbstractEventLoop

    async def serve(self) -> None:
        self.loop, self.end = asyncio.get_running_loop(), asyncio.Event()
        server = OperatedServer(await Link.connect(self.nats, name="server"), clock=lambda: time.time() + self.ahead)
        shown: list[Dashboard] = []

        def pages(admin: Admin) -> Dashboard:
            shown.append(Dashboard(admin))
            return shown[0]

        with listen("127.0.0.1", 0) as listening:
            await server.start()
            app = make_app(server, pages=pages)
            works = [
                asyncio.create_task(run_app(app, listening, closing=server.changes.close)),
                asyncio.create_task(server.look_around()),
            ]
            self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            self.ready.set()
            await self.end.wait()
            for work in works:
                work.cancel()
            await asyncio.gather(*works, return_exceptions=True)
            await shown[0].planner.close()
            await server.stop()


@contextmanager
def clocked(engine: Engine) -> Iterator[Clocked]:
    server = Clocked(engine)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    try:
        assert server.ready.wait(DEADLINE)
        yield server
    finally:
        server.loop.call_soon_threadsafe(server.end.set)
        thread.join(DEADLINE)


def give_signs(nats: str, edges: Iterable[str]) -> None:
    """Of life, for edges that are not there: what each sends when it catches up, in NATS's own words."""
    where = urlsplit(nats)
    signs = "".join(f"PUB outvote.sync.{edge} 2\r\n{{}}\r\n" for edge in edges)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=DEADLINE) as client:
        client.sendall(f"CONNECT {{}}\r\n{signs}PING\r\n".encode())
        said = b""
        while b"PONG" not in said:
            said += client.recv(4096)
