"""Clients that never finish: each is cut off in time, and those that only wait are left alone.

Half a second of patience stands for the ten of real listeners.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from network.certificates import Authority
from network.operating import served
from network.processes import DEADLINE, comes
from outvote.network import http_connections, http_server
from outvote.network.edge_bodies import read_body
from outvote.network.http_connections import LARGEST_HEAD, MOST_BYTES, Traffic, Watch
from outvote.network.logs import Tallied
from outvote.network.tls import client_context

MARK = "SECRET-7c1b"
GET = f"GET /{MARK} HTTP/1.1\r\nHost: localhost\r\nX: {MARK}\r\n\r\n".encode()
Loop = Callable[[], asyncio.AbstractEventLoop]


class App:
    """Reads what it is sent, and answers in several ways."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.left = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        if path == "/slow":
            await self.go.wait()
        if path == "/events":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"first", "more_body": True})
            await self.go.wait()
            await send({"type": "http.response.body", "body": b"last"})
            return
        if path == "/large":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while True:
                await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
                if (await asyncio.wait_for(self._gone(receive), DEADLINE)) is True:
                    self.left += 1
                    return
        if await read_body(scope, receive) is None:
            self.left += 1
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def _gone(self, receive: Any) -> bool:
        """Whether nobody is left; it does not wait for it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.001):
                return bool((await receive())["type"] == "http.disconnect")
        return False


def run(scenario: Coroutine[Any, Any, None], loop: Loop = uvloop.new_event_loop) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(asyncio.wait_for(scenario, DEADLINE))


async def to_the_end(port: int, *sent: bytes) -> bytes:
    """All that comes until the server closes, on a connection that says this and stays."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for each in sent:
        writer.write(each)
    return await finish(reader, writer)


async def after_an_answer(port: int, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(GET)
    await reader.readuntil(b"ok")
    writer.write(sent)
    return await finish(reader, writer)


async def finish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def dribble(port: int, first: bytes, again: bytes) -> bytes:
    """Something new all the time, and never the end of it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(first)
    reading = asyncio.create_task(finish(reader, writer))
    while not reading.done():
        writer.write(again)
        await asyncio.wait([reading], timeout=0.05)
    return await reading


@pytest.mark.parametrize("loop", [uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def test_what_is_not_finished_in_time_is_closed_and_nothing_else_is(
    loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    traffic = Traffic()

    async def scenario() -> None:
        app = App()
        async with served(app, watch=Watch(traffic, patience=5, ticks=1)) as port:
            idle = await asyncio.open_connection("127.0.0.1", port)
            idle[1].write(GET)
            await idle[0].readuntil(b"ok")
            events = await asyncio.open_connection("127.0.0.1", port)
            events[1].write(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await events[0].readuntil(b"first")
            slow = await asyncio.open_connection("127.0.0.1", port)
            slow[1].write(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
            nothing, half, no_body, blank, second, *dribbled = await asyncio.gather(
                to_the_end(port),
                to_the_end(port, GET[:-2]),
                to_the_end(port, f"POST /{MARK} HTTP/1.1\r\nContent-Length: 9\r\n\r\n{MARK[:3]}".encode()),
                after_an_answer(port, b"\r\n"),  # which is no request, and keeps none from being due
                to_the_end(port, GET + GET[:-2]),
                dribble(port, GET[:-2], b"X: y\r\n"),
                dribble(port, b"", b"\r\n"),
                dribble(port, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
            )
            assert (nothing, half) == (b"", b"")
            head, _, body = no_body.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
            assert json.loads(body)["status"] == 408
            assert second.count(b"200 OK") == 1  # the whole one is answered, and then no more is said
            assert second.endswith(b"ok")
            assert dribbled[0] == dribbled[1] == b""
            assert dribbled[2] == b"" or dribbled[2].startswith(b"HTTP/1.1 408")  # lost, if more was on its way
            await comes(lambda: app.left == 2, "applications hear that nobody is left")
            assert blank == b""
            assert traffic.unfinished == 8
            idle[1].write(GET)
            assert b"200 OK" in await idle[0].readuntil(b"ok")
            app.go.set()
            assert b"200 OK" in await slow[0].readuntil(b"ok")
            await events[0].readuntil(b"last")
            for _, writer in (idle, events, slow):
                writer.close()

    run(scenario(), loop)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1, told
    assert told[0].startswith("requests_unfinished count=")
    assert MARK not in caplog.text


def test_who_does_not_read_an_answer_is_cut_off() -> None:
    traffic = Traffic()

    async def scenario() -> None:
        app = App()
        async with served(app, watch=Watch(traffic, stuck=5, ticks=1)) as port:
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
                await comes(lambda: app.left == 1, "the application hears of it")
        assert traffic.unfinished == 1

    run(scenario())


def test_a_handshake_that_never_ends_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "UNFINISHED", 0.2)
    authority = Authority(tmp_path)
    certificate = authority.issue()

    async def scenario() -> None:
        async with served(App(), watch=Watch(patience=5, ticks=1), certificate=certificate) as port:
            assert b"200" not in await to_the_end(port)
            assert b"200" not in await to_the_end(port, bytes.fromhex("16030100f5"))  # as one begins
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_context(authority.path))
            writer.write(GET[:-2])  # after one that was ended, as in plaintext
            with suppress(ssl.SSLError):
                assert await reader.read() == b""
            writer.close()

    run(scenario())


def test_a_head_has_an_end_and_a_request_too() -> None:
    async def scenario() -> None:
        async with served(App(), watch=Watch()) as port:
            for first, again in (
                (GET[:-2], b"X: " + b"y" * 1000 + b"\r\n"),
                (b"GET /", b"x" * 1000),
            ):
                answer = await to_the_end(port, first + again * (2 * LARGEST_HEAD // 1000))
                assert answer == b"" or answer.startswith(b"HTTP/1.1 431"), answer[:99]
            chunked = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
            assert b"200" not in await to_the_end(port, chunked + b"0\r\n" + b"X: y\r\n" * (LARGEST_HEAD // 2))
            body = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
            assert b"200" not in await to_the_end(port, chunked + body * (MOST_BYTES // 0x10000 + 10))
            assert (await to_the_end(port, GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))).endswith(b"ok")

    run(scenario())


def test_connections_that_are_too_many_are_turned_away(caplog: pytest.LogCaptureFixture) -> None:
    traffic = Traffic()

    async def scenario() -> None:
        async with served(App(), watch=Watch(traffic, most=2)) as port:
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            for _, writer in held:
                writer.write(GET)
            for reader, _ in held:
                await reader.readuntil(b"ok")
            for _ in range(3):
                assert (await to_the_end(port)).startswith(b"HTTP/1.1 503 ")
            held[0][1].close()
            await comes(lambda: traffic.turned_away == 3)
            answers: list[bytes] = []
            while not answers or b"503" in answers[-1]:  # until its place is free
                closing = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
                answers.append(await to_the_end(port, closing))
            assert answers[-1].endswith(b"ok")
            held[1][1].write(GET)
            await held[1][0].readuntil(b"ok")
            held[1][1].close()

    run(scenario())
    told = [record.getMessage() for record in caplog.records]
    assert told == ["connections_turned_away count=1"]


def test_what_requesters_cause_is_told_at_once_and_then_once_a_minute_with_a_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [1000.0]
    told = Tallied(logging.getLogger("test"), logging.WARNING, "happened", clock=lambda: now[0])
    for reason in ("a", "a", "b", "a"):
        told.note(reason)
    now[0] += 59
    told.note("a")
    now[0] += 1
    told.tell()
    told.tell()
    now[0] += 3600
    told.tell()  # nothing has happened
    told.note("b")
    assert [record.getMessage() for record in caplog.records] == [
        "happened reason=a count=1",
        "happened reason=b count=1",
        "happened reason=a count=3",
        "happened reason=b count=1",
    ]


def test_real_listeners_have_ten_seconds_of_patience() -> None:
    assert (http_connections.UNFINISHED, Watch().patience, Watch().most) == (10, 10, 10_000)
