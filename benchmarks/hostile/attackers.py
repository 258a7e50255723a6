"""Clients that want a listener's memory or time: they send, and do not read. For tests and for the benchmark.

Everything goes to one address of this machine, from a bounded number of connections, for a bounded time.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import cast

CLIENTS = 120
CONNECTING = 50
"""Connections that are made at a time."""
DEADLINE = 30.0


@dataclass(frozen=True)
class Attack:
    """What each client sends: first this, then `again` for as long as it is connected."""

    name: str
    first: bytes
    again: bytes = b""
    every: float = 0.0
    """Seconds between two times; 0: as fast as the listener takes it."""
    clients: int = CLIENTS

    def with_token(self, token: str) -> Attack:
        """The same by somebody who may come in."""
        field = f"\r\nAuthorization: Bearer {token}\r\n".encode()
        return replace(
            self,
            first=self.first.replace(b"\r\n", field, 1),
            again=self.again.replace(b"\r\n", field, 1) if self.again.startswith(b"GET") else self.again,
        )


def request(path: str, *fields: str, method: str = "GET") -> bytes:
    """The head of a request, but for its end."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *fields, ""]).encode()


def whole(path: str) -> bytes:
    return request(path) + b"\r\n"


def attacks(path: str, posts_to: str) -> list[Attack]:
    """All of them: what is asked for is at `path`, and a body may be sent to `posts_to`."""
    post = request(posts_to, "Content-Length: 60000", method="POST") + b"\r\n"
    chunks = request(posts_to, "Transfer-Encoding: chunked", method="POST") + b"\r\n"
    return [
        Attack("pipelined requests, answers unread", whole(path) * 20, whole(path) * 20),
        Attack("pipelined requests for nothing", whole("/nothing") * 20, whole("/nothing") * 20),
        Attack("unfinished heads of tiny fields", request(path), b"a:\r\n" * 100, clients=1000),
        Attack("unfinished heads below the limits", request(path) + b"a: " + b"b" * 15_000, clients=1000),
        Attack("heads that grow slowly", request(path), b"a: b\r\n", every=0.2),
        Attack("bodies that grow slowly", post + b"x" * 50_000, b"x", every=0.2),
        Attack("bodies without an end", chunks, b"4000\r\n" + b"x" * 0x4000 + b"\r\n"),
        Attack("2,000 fields in a head", request(path) + b"a: b\r\n" * 2000 + b"\r\n", clients=1000),
    ]


class Attacker(asyncio.Protocol):
    """One connection; what comes is never read."""

    def __init__(self, attack: Attack) -> None:
        self._attack = attack
        self._may_write = True
        self._loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport
        self.sent = 0
        self.is_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is none by inheritance
        self.transport.pause_reading()
        self.transport.set_write_buffer_limits(high=1 << 16)
        self._write(self._attack.first)
        if self._attack.again:
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        if self.is_closed or self.transport.is_closing() or not self._may_write:
            return
        self._write(self._attack.again)
        if self._may_write:
            self._loop.call_later(self._attack.every, self._go_on)

    def _write(self, data: bytes) -> None:
        self.sent += len(data)
        self.transport.write(data)

    def pause_writing(self) -> None:
        self._may_write = False

    def resume_writing(self) -> None:
        self._may_write = True
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True


@asynccontextmanager
async def attacking(
    port: int, attack: Attack, *, context: ssl.SSLContext | None = None, clients: int | None = None
) -> AsyncIterator[list[Attacker]]:
    """All clients of an attack on a port of this machine, until the block ends."""
    loop = asyncio.get_running_loop()
    attackers: list[Attacker] = []
    ready = asyncio.Semaphore(CONNECTING)

    async def connect() -> None:
        async with ready:
            name = None if context is None else "127.0.0.1"
            making = loop.create_connection(
                lambda: Attacker(attack), "127.0.0.1", port, ssl=context, server_hostname=name
            )
            try:
                _, attacker = await asyncio.wait_for(making, DEADLINE)
            except OSError:  # it is turned away: that is a way to defend oneself
                return
            attackers.append(attacker)

    await asyncio.gather(*(connect() for _ in range(clients or attack.clients)))
    try:
        yield attackers
    finally:
        for attacker in attackers:
            attacker.transport.abort()
