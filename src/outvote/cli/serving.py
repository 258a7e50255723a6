"""What commands share that run until they are told to stop: addresses, signals, and the line that says they are ready.

Ctrl-C and SIGTERM end them in order: the first with exit code 130, the second with 0.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from outvote.cli.options import check_writable, write_json
from outvote.core.errors import OutvoteError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

GRACE = 2
"""Seconds that requests get to end when the command does."""


class Failed(OutvoteError):
    """The command was right, and yet it could not be done: exit code 1."""


def port(text: str) -> int:
    """A port, or 0 for a free one."""
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 65535, or 0 for a free one, got {text!r}")
    return int(text)


def nats_url(text: str) -> str:
    """Where a NATS server is."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(text)
        if parts.scheme in ("nats", "tls", "ws", "wss") and parts.hostname and (parts.port is None or parts.port > 0):
            return text
    raise argparse.ArgumentTypeError(f"must be an address like nats://127.0.0.1:4322, got {text!r}")


def add_ready_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="FILE",
        help="when ready, print one line of JSON with addresses and processes, or write it to FILE",
    )


def check_ready_json(args: argparse.Namespace) -> None:
    check_writable(args.json, "the JSON file")


def tell_ready(args: argparse.Namespace, record: dict[str, Any], text: str) -> None:
    """Say that the command is ready: to a program, or to a person."""
    if args.json:
        write_json(record, args.json)
    if args.json != "-":
        print(text)
    sys.stdout.flush()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; it is taken before anything else is started."""
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise Failed(f"cannot listen on {host}: {error.strerror or error}; give another --host") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(1024)
    except OSError as error:
        listening.close()
        raise Failed(
            f"cannot listen on port {port} of {host}: {error.strerror}; give another --port, 0 takes a free one"
        ) from None
    return listening


def http_url(host: str, port: int) -> str:
    """Where a client on this machine finds it."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve_app(app: ASGIApp, listening: socket.socket, ready: Callable[[], None]) -> None:
    """Answer requests until cancelled, then let those under way end."""
    import uvicorn

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:  # signals are `until_told`'s
            yield

    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=GRACE, server_header=False
    )
    server = Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(0.005)
        ready()
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await asyncio.wait([serving])


def until_told(work: Coroutine[Any, Any, None], *, loop: Callable[[], asyncio.AbstractEventLoop] | None = None) -> int:
    """Run until done, or end it in order at Ctrl-C or SIGTERM; `loop` makes the event loop."""
    told: list[signal.Signals] = []

    async def run() -> None:
        working = asyncio.create_task(work)

        def end(by: signal.Signals) -> None:
            told.append(by)
            if len(told) == 1:  # once is enough: what follows is in order, and has deadlines
                working.cancel()

        for each in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(each, end, each)
        with contextlib.suppress(asyncio.CancelledError):
            await working

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())
    if told and told[0] == signal.SIGINT:
        raise KeyboardInterrupt
    return 0
