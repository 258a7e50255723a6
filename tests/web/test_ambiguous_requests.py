"""Requests that two readers could understand differently, and how our listener differs from plain uvicorn: not at all.

Request smuggling needs a proxy and a server that disagree where a request ends, or for whom it is. So each of these
carries a second request inside, which must never be seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn

from helpers.operating import served
from outvote.edge.bodies import read_body
from outvote.web.limits import Watch
from outvote.web.listener import listen
from web.test_unfinished import run

HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"


class App:
    """Answers with what it was asked, and notes it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = await read_body(scope, receive) or b""
        self.asked.append((scope["path"], body))
        answer = f"{scope['method']} {scope['path']} {len(body)}".encode()
        headers = [(b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


def post(*fields: str, version: str = "1.1") -> bytes:
    return "\r\n".join([f"POST /open HTTP/{version}", "Host: a", *fields, "", ""]).encode()


def head(text: str) -> bytes:
    return text.replace("\n", "\r\n").encode("latin-1")


REFUSED = {
    "two lengths": post("Content-Length: 0", f"Content-Length: {len(HIDDEN)}"),
    "two lengths in one field": post(f"Content-Length: 0, {len(HIDDEN)}"),
    "length and chunks": post(f"Content-Length: {len(HIDDEN) + 5}", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
    "chunks and length": post("Transfer-Encoding: chunked", "Content-Length: 4") + b"0\r\n\r\n",
    "chunks twice": post("Transfer-Encoding: chunked", "Transfer-Encoding: identity") + b"0\r\n\r\n",
    "chunks that are not the last coding": post("Transfer-Encoding: chunked, identity") + b"0\r\n\r\n",
    "a coding that is none": post("Transfer-Encoding: xchunked") + b"0\r\n\r\n",
    "chunks, with a control character": post("Transfer-Encoding: \x0bchunked") + b"0\r\n\r\n",
    "a space before a colon": post("Transfer-Encoding : chunked") + b"0\r\n\r\n",
    "a field that is folded": post("Content-Length: 0", "X: y", " Transfer-Encoding: chunked") + b"0\r\n\r\n",
    "a field without a colon": post("Content-Length 9"),
    "a length with a sign": post(f"Content-Length: +{len(HIDDEN)}"),
    "a length below zero": post("Content-Length: -1"),
    "a length in base 16": post("Content-Length: 0x10"),
    "a length with an underscore": post("Content-Length: 1_0"),
    "a length that overflows": post("Content-Length: 18446744073709551617"),
    "chunks in HTTP/1.0": post("Transfer-Encoding: chunked", version="1.0") + b"0\r\n\r\n",
    "a chunk that overflows": post("Transfer-Encoding: chunked") + b"10000000000000000\r\n",
    "a chunk below zero": post("Transfer-Encoding: chunked") + b"-1\r\n",
    "a chunk in base 16 with its sign": post("Transfer-Encoding: chunked") + b"0x1\r\na\r\n0\r\n\r\n",
    "a chunk that is longer than it says": post("Transfer-Encoding: chunked") + b"1\r\nab\r\n0\r\n\r\n",
    "a chunk whose line ends without a return": post("Transfer-Encoding: chunked") + b"1\na\r\n0\r\n\r\n",
    "a line that ends with a return only": b"POST /open HTTP/1.1\r\nHost: a\r\nX: y\rContent-Length: 9\r\n\r\n",
    "a line that ends without a return": b"POST /open HTTP/1.1\r\nHost: a\r\nX: y\nContent-Length: 9\r\n\r\n",
    "a zero byte": post("X: \x00"),
    "two hosts": head("GET /open HTTP/1.1\nHost: a\nHost: b\n\n"),
    "the same host twice": head("GET /open HTTP/1.1\nHost: a\nHost: a\n\n"),
    "no host": head("GET /open HTTP/1.1\n\n"),
    "a full address of another host": head("GET http://b/open HTTP/1.1\nHost: a\n\n"),
    "a full address of another port": head("GET http://a:1/open HTTP/1.1\nHost: a\n\n"),
    "a full address with a user": head("GET http://b@a/open HTTP/1.1\nHost: a\n\n"),
    "a full address of another kind": head("GET ftp://a/open HTTP/1.1\nHost: a\n\n"),
    "an address without a slash": head("GET open HTTP/1.1\nHost: a\n\n"),
    "no address": head("GET  HTTP/1.1\nHost: a\n\n"),
    "no version": head("GET /open\n\n"),
    "HTTP/0.9": head("GET /open HTTP/0.9\nHost: a\n\n"),
    "HTTP/1.2": head("GET /open HTTP/1.2\nHost: a\n\n"),
    "HTTP/2": head("PRI * HTTP/2.0\n\nSM\n\n"),
    "a proxy's method": head("CONNECT a:80 HTTP/1.1\nHost: a:80\n\n"),
    "a method that is none": head("BREW /open HTTP/1.1\nHost: a\n\n"),
    "a body after a request to speak another protocol": post(
        "Upgrade: h2c", "Connection: Upgrade", f"Content-Length: {len(HIDDEN)}"
    ),
    "chunks after such a request": post("Upgrade: h2c", "Connection: Upgrade", "Transfer-Encoding: chunked"),
    "a TLS handshake": bytes.fromhex("16030100f5010000f10303"),
}
"""By name: what is refused, and the connection with it, so that what follows is not read."""

ANSWERED = {
    "a full address": head("GET http://a/open HTTP/1.1\nHost: a\n\n"),
    "a full address with a port": head("GET HTTP://A:80/open HTTP/1.1\nHost: a:80\n\n"),
    "an empty line before a request": head("\n\nGET /open HTTP/1.1\nHost: a\n\n"),
    "a request to speak another protocol": post("Upgrade: h2c", "Connection: Upgrade"),
    "a body like a request": post(f"Content-Length: {len(HIDDEN)}") + HIDDEN,
    "a chunk like a request": post("Transfer-Encoding: chunked") + b"%x\r\n%b\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN),
    "a field after the body": post("Transfer-Encoding: chunked") + b"0\r\nCookie: 9\r\n\r\n",
    "a remark at a chunk": post("Transfer-Encoding: chunked") + b"3;x=y\r\nabc\r\n0\r\n\r\n",
}
"""By name: what is valid, if unusual. It is answered once, and so is the request after it."""


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[tuple[App, int]]:
    app = App()
    async with served(app, watch=Watch(patience=1, ticks=1)) as port:
        yield app, port


async def told(port: int, *sent: bytes) -> bytes:
    """What comes until the server closes; each piece is sent by itself."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.suppress(ConnectionError):
        for piece in sent:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
    found = b""
    with contextlib.suppress(ConnectionError):
        while some := await reader.read(65536):
            found += some
    writer.close()
    return found


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_ambiguous_is_refused_and_nothing_after_it_is_read(name: str) -> None:
    async def scenario() -> None:
        async with listening() as (app, port):
            for pieces in ([REFUSED[name] + HIDDEN], [bytes([each]) for each in REFUSED[name] + HIDDEN]):
                answer = await told(port, *pieces)
                statuses = re.findall(rb"HTTP/1\.1 (\d+) ", answer)
                assert statuses in ([b"400"], [b"408"], [b"505"], []), answer  # none: a reset connection loses it
            assert [path for path, _ in app.asked if path == "/hidden"] == []

    run(scenario())


@pytest.mark.parametrize("name", ANSWERED)
def test_what_is_unusual_is_answered_and_so_is_what_follows(name: str) -> None:
    async def scenario() -> None:
        async with listening() as (app, port):
            last = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            for pieces in ([ANSWERED[name] + last], [bytes([each]) for each in ANSWERED[name] + last]):
                answer = await told(port, *pieces)
                assert answer.count(b"HTTP/1.1 200 OK") == 2, answer
            assert [path for path, _ in app.asked] == ["/open", "/last"] * 2

    run(scenario())


# ---- against plain uvicorn


def some_request(rng: random.Random) -> bytes:
    size = rng.choice([0, 1, 5, 100, 3000, 20_000, 60_000])
    body = rng.randbytes(size).replace(b"G", b"\r\n\r\n"[: rng.randrange(5)])
    path = f"/{rng.randrange(1000)}"
    fields = "".join(f"X-{number}: {'y' * rng.randrange(30)}\r\n" for number in range(rng.randrange(20)))
    if rng.random() < 0.4:
        return f"GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode()
    if rng.random() < 0.5:
        return f"POST {path} HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {len(body)}\r\n\r\n".encode() + body
    step = rng.choice([1, 7, 1000, 30_000]) if size < 5000 else 30_000
    chunks = [body[start : start + step] for start in range(0, len(body), step)]
    coded = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    return f"POST {path} HTTP/1.1\r\nHost: a\r\n{fields}Transfer-Encoding: chunked\r\n\r\n".encode() + coded


def cut(rng: random.Random, stream: bytes) -> list[bytes]:
    """Anywhere, also within the end of a head."""
    pieces, start = [], 0
    while start < len(stream):
        end = start + rng.choice([1, 2, 3, 10, 500, 5000, 50_000, 500_000])
        pieces.append(stream[start:end])
        start = end
    return pieces


@contextlib.asynccontextmanager
async def plain_uvicorn(app: Any) -> AsyncIterator[int]:
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(app, http="httptools", ws="none", lifespan="off", log_config=None, server_header=False)
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[assignment,method-assign]  # they are the tests'
    running = asyncio.create_task(server.serve([listener]))
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await running


def test_answers_are_those_of_plain_uvicorn_wherever_the_network_cuts() -> None:
    """The same 600 requests, pipelined by tens, in the same pieces: the same answers but for their dates. Seed 7."""

    async def scenario() -> None:
        rng = random.Random(7)
        ours, plain = App(), App()
        async with served(ours, watch=Watch()) as port, plain_uvicorn(plain) as plain_port:
            for _ in range(60):
                stream = b"".join(some_request(rng) for _ in range(10))
                stream += b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
                pieces = cut(rng, stream)
                ours.asked.clear()
                plain.asked.clear()
                found, expected = await asyncio.gather(told(port, *pieces), told(plain_port, *pieces))
                assert without_dates(found) == without_dates(expected)
                assert ours.asked == plain.asked
                assert len(ours.asked) == 11

    run(scenario())


def without_dates(answers: bytes) -> bytes:
    return re.sub(rb"date: [^\r]*\r\n", b"", answers)
