"""The load generator, as a program: keep-alive connections to one server at a time, requests in, latencies out.

With no rate, every connection sends its next request as soon as it is answered. With a rate, requests have their times,
and a latency counts from that time, also where no connection was free. It never sleeps: its core is its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import random
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, cast

import uvloop

from benchmarks.network.processes import answer_lines, cpu_seconds

CONNECTIONS = 24
HEAD = b"\r\n\r\n"
LENGTH = b"content-length: "


class Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self) -> None:
        self.load: Load | None = None
        self._had = b""
        self._since = 0.0
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is none by inheritance

    def connection_lost(self, error: Exception | None) -> None:
        if self.load is not None:
            self.load.fail("the server closed a connection")

    def send(self, request: bytes, since: float) -> None:
        self._since = since
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self._had:
            data = self._had + data
        head = data.find(HEAD)
        if head < 0:
            self._had = data
            return
        length = data.find(LENGTH, 0, head)
        size = 0 if length < 0 else int(data[length + len(LENGTH) : data.index(b"\r", length)])
        start = head + len(HEAD)
        if len(data) < start + size:
            self._had = data
            return
        self._had = b""
        assert self.load is not None
        self.load.answered(self, data[:12], data[start:], self._since)


class Load:
    """One phase: so many requests, all to be answered alike."""

    def __init__(self, connections: list[Connection], requests: Iterable[bytes], status: bytes) -> None:
        self.latencies: list[float] = []
        self.bodies: list[bytes] = []
        self._requests = deque(requests)
        self._status = b"HTTP/1.1 " + status
        self._idle = list(connections)
        self._missing = len(self._requests)
        self._rate: float | None = None
        self._start = 0.0
        self._sent = 0
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for connection in connections:
            connection.load = self

    async def run(self, rate: float | None) -> float:
        """Seconds until all was answered."""
        self._rate = rate
        self._start = time.perf_counter()
        if rate is None:
            while self._idle and self._requests:
                self._send(self._idle.pop(), time.perf_counter())
        else:
            self._pace()
        await self._done
        return time.perf_counter() - self._start

    def answered(self, connection: Connection, status: bytes, body: bytes, since: float) -> None:
        now = time.perf_counter()
        self.latencies.append(now - since)
        self.bodies.append(body)
        if status != self._status:
            self.fail(f"{status.decode()}: {body[:200].decode(errors='replace')}")
        self._missing -= 1
        if self._rate is None and self._requests:
            self._send(connection, now)
            return
        self._idle.append(connection)
        if not self._missing and not self._done.done():
            self._done.set_result(None)

    def fail(self, why: str) -> None:
        if not self._done.done():
            self._done.set_exception(RuntimeError(why))

    def _send(self, connection: Connection, since: float) -> None:
        self._sent += 1
        connection.send(self._requests.popleft(), since)

    def _pace(self) -> None:
        """Send what is due, then look again at once."""
        assert self._rate is not None
        while self._idle and self._requests:
            due = self._start + self._sent / self._rate
            if due > time.perf_counter():
                break
            self._send(self._idle.pop(), due)
        if not self._done.done():
            asyncio.get_running_loop().call_soon(self._pace)


async def play(asked: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Decisions, then the rewards of these, and so on; the server's CPU time is read between them."""
    loop = asyncio.get_running_loop()
    count = asked.get("connections", CONNECTIONS)
    opened = [await loop.create_connection(Connection, "127.0.0.1", asked["port"]) for _ in range(count)]
    connections = [connection for _, connection in opened]
    path = f"/v1/tasks/{asked['task']}"
    decide = post(f"{path}/decide", b"")
    rates = asked["rates"]
    rng = random.Random(0)
    phases = {"decide": Phases(asked["pid"]), "reward": Phases(asked["pid"])}
    for _ in range(asked["turns"]):
        deciding = Load(connections, [decide] * asked["events"], b"200")
        await phases["decide"].add(deciding, rates and rates["decide"])
        rewards = [reward(path, body, rng, named=asked.get("variant", False)) for body in deciding.bodies]
        await phases["reward"].add(Load(connections, rewards, b"204"), rates and rates["reward"])
    for connection in connections:
        connection.load = None
        connection.transport.abort()
    return {verb: each.summary() for verb, each in phases.items()}


class Phases:
    """All phases of one kind."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._seconds = 0.0
        self._cpu_seconds = 0.0
        self._latencies: list[float] = []

    async def add(self, load: Load, rate: float | None) -> None:
        gc.collect()
        before = cpu_seconds(self._pid)
        self._seconds += await load.run(rate)
        self._cpu_seconds += cpu_seconds(self._pid) - before
        self._latencies += load.latencies

    def summary(self) -> dict[str, float]:
        latencies = sorted(self._latencies)
        return {
            "per_s": len(latencies) / self._seconds,
            "cpu_us": self._cpu_seconds / len(latencies) * 1e6,
            "p50_ms": latencies[len(latencies) // 2] * 1e3,
            "p99_ms": latencies[len(latencies) * 99 // 100] * 1e3,
        }


def reward(path: str, decision: bytes, rng: random.Random, *, named: bool) -> bytes:
    """`named`: earlier versions want the variant, too."""
    decided = json.loads(decision)
    body = {"ticket": decided["ticket"], "reward": rng.randrange(2)} | (
        {"variant": decided["variant"]} if named else {}
    )
    return post(f"{path}/reward", json.dumps(body).encode())


def post(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\naccept: */*\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


async def work() -> None:
    gc.disable()  # it collects between phases
    await answer_lines(play)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(work())
