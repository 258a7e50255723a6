"""What commands share that run until they are told to stop: addresses, signals, and the line that says they are ready.

Ctrl-C and SIGTERM end them in order: the first with exit code 130, the second with 0; so does a closed terminal.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import platform
import signal
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit

from outvote import __version__
from outvote.core.errors import OutvoteError


class Failed(OutvoteError):
    """The command was right, and yet it could not be done: exit code 1."""


READY_JSON = "when ready, print one line of JSON with addresses and processes, or write it to FILE"


def port(text: str) -> int:
    """A port, or 0 for a free one."""
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 65535, or 0 for a free one, got {text!r}")
    return int(text)


def nats_url(text: str) -> str:
    """Where NATS servers are."""
    if all(_is_nats_url(each) for each in text.split(",")):
        return text
    raise argparse.ArgumentTypeError(
        f"must be an address like nats://127.0.0.1:4322, or several separated by commas, got {text!r}"
    )


def _is_nats_url(text: str) -> bool:
    with contextlib.suppress(ValueError):
        parts = urlsplit(text)
        known = parts.scheme in ("nats", "tls", "ws", "wss")
        return bool(known and parts.hostname and (parts.port is None or parts.port > 0))
    return False


def add_log_options(parser: argparse.ArgumentParser) -> None:
    from outvote.observability.logs import FORMATS, LEVELS

    group = parser.add_argument_group("log, on standard error")
    group.add_argument(
        "--log", choices=FORMATS, default="text", help="lines for people, or one JSON object per line (text)"
    )
    group.add_argument("--log-level", choices=LEVELS, default="info", help="the least that is told (info)")


def versions() -> dict[str, str]:
    """For the first line of a log."""
    return {"version": __version__, "python": platform.python_version()}


def http_url(host: str, port: int, *, secured: bool = False) -> str:
    """Where a client on this machine finds it."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"{'https' if secured else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def until_told(work: Coroutine[Any, Any, None], *, loop: Callable[[], asyncio.AbstractEventLoop] | None = None) -> int:
    """Run until done, or end it in order at Ctrl-C or SIGTERM; `loop` makes the event loop."""
    told: list[signal.Signals] = []

    async def run() -> None:
        working = asyncio.create_task(work)

        def end(by: signal.Signals) -> None:
            told.append(by)
            if len(told) == 1:  # once is enough: what follows is in order, and has deadlines
                working.cancel()

        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(each) is not signal.SIG_IGN:  # as with nohup
                asyncio.get_running_loop().add_signal_handler(each, end, each)
        with contextlib.suppress(asyncio.CancelledError):
            await working

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())
    if told and told[0] == signal.SIGINT:
        raise KeyboardInterrupt
    return 0
