"""Many edges' connections in one process, as a program: URL FIRST COUNT link|bare; each listens as an edge does.

It tells when all are connected, then for each elimination when each of them had it, on the machine's steady clock. A
bare one only notes that bytes came.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import time
from typing import cast
from urllib.parse import urlsplit

import uvloop

from benchmarks.network.processes import allow_connections, say_json
from outvote.engine.nats_log import NatsLog
from outvote.log.records import DownSubject, parse

AT_A_TIME = 50
"""Connections that are made at once."""


class Times:
    """When the connections heard of each elimination."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._received: dict[int, list[int]] = {}

    def note(self, number: int, now: int) -> None:
        times = self._received.setdefault(number, [])
        times.append(now)
        if len(times) == self._count:
            say_json({"number": number, "times": self._received.pop(number)})


async def join(url: str, number: int, times: Times) -> NatsLog:
    """As an edge does."""

    def hear(subject: str, payload: bytes) -> None:
        now = time.monotonic_ns()
        where = parse(subject)
        if isinstance(where, DownSubject) and where.number is not None:
            times.note(where.number, now)

    link = await NatsLog.connect(url, name=f"edge-{number}", patience=60)
    await link.listen(hear)
    return link


class Bare(asyncio.Protocol):
    """The least that a subscriber can be."""

    def __init__(self, times: Times) -> None:
        self.subscribed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._times = times
        self._heard = 0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by inheritance
        self._transport.write(b'CONNECT {"verbose":false,"headers":true}\r\nSUB outvote.live.> 1\r\nPING\r\n')

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        for _ in range(data.count(b"HMSG ")):
            self._times.note(self._heard, now)
            self._heard += 1
        if b"PING" in data:
            self._transport.write(b"PONG\r\n")
        if b"PONG" in data and not self.subscribed.done():
            self.subscribed.set_result(None)


async def join_bare(url: str, number: int, times: Times) -> Bare:
    where = urlsplit(url)
    assert where.hostname is not None
    assert where.port is not None
    _, bare = await asyncio.get_running_loop().create_connection(lambda: Bare(times), where.hostname, where.port)
    await bare.subscribed
    return bare


async def work(url: str, first: int, count: int, kind: str) -> None:
    allow_connections(count)
    times = Times(count)
    joined: list[NatsLog | Bare] = []
    for start in range(first, first + count, AT_A_TIME):
        numbers = range(start, min(start + AT_A_TIME, first + count))
        joining = [(join_bare if kind == "bare" else join)(url, number, times) for number in numbers]
        joined += await asyncio.gather(*joining)
    gc.collect()
    gc.disable()  # an edge has one connection: collecting the garbage of thousands is not its work
    say_json({"connected": len(joined)})
    await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(work(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
