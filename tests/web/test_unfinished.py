"""Clients that never finish: each is cut off in time, and those that only wait are left alone.

Half a second of patience stands for the ten of real listeners.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from helpers.certificates import Authority
from helpers.operating import served
from helpers.processes import DEADLINE, comes
from outvote.access.tls import client_context
from outvote.edge.bodies import read_body
from outvote.web import acceptor as http_acceptor
from outvote.web import limits as http_watch
from outvote.web.connections import LARGEST_HEAD, MOST_FIELDS
from outvote.web.limits import Traffic, Watch

MARK = "SECRET-7c1b"
GET = f"GET /{MARK} HTTP/1.1\r\nHost: localhost\r\nX: {MARK}\r\n\r\n".encode()
POST = f"POST /{MARK} HTTP/1.1\r\nHost: localhost\r\n".encode()
Loop = Callable[[], asyncio.AbstractEventLoop]


class App:
    """Reads what it is sent, and answers in several ways."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.left = 0
        self.scopes: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        self.scopes.append(scope)
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
                to_the_end(port, POST + f"Content-Length: 9\r\n\r\n{MARK[:3]}".encode()),
                after_an_answer(port, b"\r\n"),  # which is no request, and keeps none from being due
                to_the_end(port, GET + GET[:-2]),
                dribble(port, GET[:-2], b"X: y\r\n"),
                dribble(port, b"", b"\r\n"),
                dribble(port, POST + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
            )
            assert nothing == b""
            for answer in (half, no_body):
                head, _, body = answer.partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
                assert json.loads(body)["status"] == 408
            assert second.count(b"200 OK") == second.count(b"408 Request Timeout") == 1  # each gets its own answer
            assert second.index(b"200 OK") < second.index(b"408 Request Timeout")
            for answer in dribbled:
                assert answer == b"" or answer.startswith(b"HTTP/1.1 408")  # lost, if more was on its way
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
    monkeypatch.setattr(http_acceptor, "UNFINISHED", 0.2)
    authority = Authority(tmp_path)
    certificate = authority.issue()

    async def scenario() -> None:
        async with served(App(), watch=Watch(patience=5, ticks=1), certificate=certificate) as port:
            assert b"200" not in await to_the_end(port)
            assert b"200" not in await to_the_end(port, bytes.fromhex("16030100f5"))  # as one begins
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_context(authority.path))
            writer.write(GET[:-2])  # after one that was ended, as in plaintext
            with suppress(ssl.SSLError):
                assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
            writer.close()

    run(scenario())


@pytest.mark.parametrize("pieces", [1, 7], ids=["in one segment", "in several"])
def test_a_head_has_an_end(pieces: int) -> None:
    """The limits hold wherever the network cuts a head."""

    async def scenario() -> None:
        async with served(App(), watch=Watch()) as port:
            room = LARGEST_HEAD - len(GET) - len(b"X: \r\n")
            for fields, status in (
                (b"X: y\r\n" * (MOST_FIELDS - 2), 200),
                (b"X: y\r\n" * (MOST_FIELDS - 1), 431),
                (b"X: y\r\n" * 2000, 431),
                (b"X: " + b"y" * room + b"\r\n", 200),
                (b"X: " + b"y" * (room + 1) + b"\r\n", 431),
                (b"X: " + b"y" * 70_000 + b"\r\n", 431),
            ):
                request = GET[:-2] + fields + b"\r\n"
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                step = -(-len(request) // pieces)
                for start in range(0, len(request), step):
                    writer.write(request[start : start + step])
                    await asyncio.sleep(0.001)  # so that it is a segment of its own
                assert (await reader.read(20)).startswith(f"HTTP/1.1 {status} ".encode()), len(fields)
                writer.close()

    run(scenario())


def test_an_address_without_an_end_is_refused() -> None:
    async def scenario() -> None:
        async with served(App(), watch=Watch()) as port:
            assert (await to_the_end(port, b"GET /" + b"x" * 9 * LARGEST_HEAD)).startswith(b"HTTP/1.1 431 ")

    run(scenario())


def test_fields_after_a_body_in_chunks_reach_nobody_and_have_an_end() -> None:
    app = App()
    chunks = POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"

    async def scenario() -> None:
        async with served(app, watch=Watch()) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(chunks + b"Cookie: y\r\n" * 50 + b"\r\n")
            assert b"200 OK" in await reader.readuntil(b"ok")
            writer.write(GET)
            assert b"200 OK" in await reader.readuntil(b"ok")
            writer.close()
            assert b"200 OK" not in await to_the_end(port, chunks + b"Cookie: y\r\n" * 50_000)

    run(scenario())
    assert [name for scope in app.scopes for name, _ in scope["headers"] if name == b"cookie"] == []


def test_an_idle_connection_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was answered; the other is asked again and again, and stays."""
    monkeypatch.setattr(http_watch, "KEEP_ALIVE", 3)

    async def scenario() -> None:
        async with served(App(), watch=Watch(ticks=1)) as port:
            idle, busy = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            idle[1].write(GET)
            ending = asyncio.create_task(idle[0].read())
            while not ending.done():
                busy[1].write(GET)
                await busy[0].readuntil(b"ok")
                await asyncio.sleep(0.01)
            assert (await ending).endswith(b"ok")
            busy[1].write(GET)
            assert b"200 OK" in await busy[0].readuntil(b"ok")
            for _, writer in (idle, busy):
                writer.close()

    run(scenario())


def test_unfinished_requests_together_have_a_limit() -> None:
    """Those that would exceed it are refused; whole requests are answered all the same."""
    traffic = Traffic()

    async def scenario() -> None:
        watch = Watch(traffic, most_held=40_000)
        async with served(App(), watch=watch) as port:
            half = GET[:-2] + b"X: " + b"y" * 9_000
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
            for _, writer in held:
                writer.write(half)
            await comes(lambda: watch.held == 4 * len(half))
            assert b"503 Service Unavailable" in await to_the_end(port, half)
            body = POST + b"Content-Length: 60000\r\n\r\n" + b"x" * 9_000
            assert b"503 Service Unavailable" in await to_the_end(port, body)
            closing = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
            assert (await to_the_end(port, closing)).endswith(b"ok")
            for _, writer in held:
                writer.close()
            await comes(lambda: watch.held == 0, "what was held is let go")

    run(scenario())
    assert traffic.turned_away == 2


def test_answers_that_nobody_reads_together_have_a_limit() -> None:
    """The one that leaves most unread goes first."""
    traffic = Traffic()

    async def scenario() -> None:
        app = App()
        async with served(app, watch=Watch(traffic, most_held=100_000, ticks=1)) as port:
            clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
            for client in clients:
                client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await comes(lambda: app.left >= 2, "all but one are ended")
            for client in clients:
                client.close()
            await comes(lambda: app.left == 3)
        assert traffic.unfinished >= 2

    run(scenario())


def test_a_newcomer_takes_the_place_of_the_connection_that_waits_longest() -> None:
    """The limit is two; each of the two has been answered once, and a third one comes."""

    async def scenario() -> None:
        async with served(App(), watch=Watch(most_connections=2)) as port:
            first, second = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            for reader, writer in (second, first):
                writer.write(GET)
                await reader.readuntil(b"ok")
            third = await asyncio.open_connection("127.0.0.1", port)
            assert await finish(*second) == b""
            for reader, writer in (first, third):
                writer.write(GET)
                assert b"200 OK" in await reader.readuntil(b"ok")
                writer.close()

    run(scenario())


def test_connections_that_are_too_many_are_turned_away(caplog: pytest.LogCaptureFixture) -> None:
    """Where nobody is idle, a newcomer has to wait."""
    traffic = Traffic()
    slow = b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"

    async def scenario() -> None:
        app = App()
        async with served(app, watch=Watch(traffic, most_connections=2)) as port:
            busy = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            for _, writer in busy:
                writer.write(slow)
            await comes(lambda: len(app.scopes) == 2)
            for _ in range(3):  # whoever is still writing when it is turned away may hear nothing
                assert (await to_the_end(port)).partition(b"\r\n")[0] in (b"HTTP/1.1 503 Service Unavailable", b"")
            app.go.set()
            for reader, _ in busy:
                assert b"200 OK" in await reader.readuntil(b"ok")
            closing = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
            assert (await to_the_end(port, closing)).endswith(b"ok")
            for _, writer in busy:
                writer.close()

    run(scenario())
    assert traffic.turned_away == 3
    told = [record.getMessage() for record in caplog.records]
    assert told == ["connections_turned_away count=1"]


def test_handshakes_that_never_end_make_room_for_others(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def scenario() -> None:
        watch = Watch(most_connections=5)
        async with served(App(), watch=watch, certificate=authority.issue()) as port:
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_context(authority.path))
            writer.write(GET)
            assert b"200 OK" in await reader.readuntil(b"ok")
            for _, each in (*held, (reader, writer)):
                each.close()

    run(scenario())


def test_real_listeners_have_ten_seconds_of_patience() -> None:
    assert (http_watch.UNFINISHED, Watch().patience) == (10, 10)
