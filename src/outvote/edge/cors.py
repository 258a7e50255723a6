"""Which pages of other origins may use an edge's API: none, unless they are named.

An origin that is not named gets answers without the headers that a browser asks for, and the browser keeps them from
the page; what would decide or learn is refused to it (`edge_guard`), as browsers send such requests without asking.

This is not Starlette's middleware: that writes into the messages of answers, which an edge shares between requests,
sends headers to origins that are not named, and makes a decision more than twice as slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outvote.core.errors import InvalidTask

ANY: Final = "*"
ALLOWED: Final = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"content-type, if-none-match, authorization"),
    (b"access-control-max-age", b"600"),
]
EXPOSED: Final = (b"access-control-expose-headers", b"etag")


def check_origin(text: str) -> str:
    """An origin as browsers send it, or `*` for all."""
    if text != ANY and not _is_origin(text):
        raise InvalidTask(f"an origin is like https://shop.example, or * for all; got {text!r}")
    return text


def _is_origin(text: str) -> bool:
    """Whether a browser may send it: in small letters, with a host, and nothing after its port."""
    try:
        parts = urlsplit(text)
        usual = {"http": 80, "https": 443}.get(parts.scheme, parts.port)
        return bool(
            parts.scheme in ("http", "https")
            and parts.hostname
            and "@" not in parts.netloc
            and parts.port != usual
            and text == f"{parts.scheme}://{parts.netloc}".lower()
        )
    except ValueError:  # half an address, or a port that is none
        return False


class Cors:
    """An application that pages of these origins may use."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        self._app = app
        self._origins = {origin.encode() for origin in origins}
        self._any = ANY in origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = next((value for name, value in scope["headers"] if name == b"origin"), None)
        if origin is None or not (self._any or origin in self._origins):
            await self._app(scope, receive, send)
            return
        allowed = (b"access-control-allow-origin", b"*" if self._any else origin)
        if scope["method"] == "OPTIONS":
            headers = [allowed, *ALLOWED, (b"vary", b"origin")]
            await send({"type": "http.response.start", "status": 204, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], allowed, EXPOSED, (b"vary", b"origin")]}
            await send(message)

        await self._app(scope, receive, tell)
