"""CORS: lets pages of named origins use an edge's API.

Other origins get responses without CORS headers, so the browser hides them from the page. Requests of theirs that would
decide or learn are refused (`edge.guard`), as browsers send those without a preflight.

Starlette's middleware is not used: it modifies response messages, which an edge shares between requests, sends headers
to other origins, and makes a decision more than twice as slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outvote.core.errors import InvalidConfiguration

ANY: Final = "*"
ALLOWED: Final = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"content-type, if-none-match, authorization"),
    (b"access-control-max-age", b"600"),
]
EXPOSED: Final = (b"access-control-expose-headers", b"etag")


def check_origin(text: str) -> str:
    """Validate an origin as browsers send it, or `*` for all."""
    if text != ANY and not _is_origin(text):
        raise InvalidConfiguration(
            f"must be like https://shop.example, or * for all, got {text!r}", field="--allow-origin"
        )
    return text


def _is_origin(text: str) -> bool:
    """Whether a browser may send it: in lower case, with a host, no default port, and nothing after the port."""
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
    except ValueError:  # an incomplete IPv6 address, or an invalid port
        return False


class Cors:
    """CORS middleware for these origins."""

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

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], allowed, EXPOSED, (b"vary", b"origin")]}
            await send(message)

        await self._app(scope, receive, send_with_headers)
