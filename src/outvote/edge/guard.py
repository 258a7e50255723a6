"""Authentication of an edge's API, decided from the headers of a request before its body is read.

Without tokens, only programs on this machine may use the API: requests for another host name, or from a page of another
origin, are refused. With tokens, every path but `/healthz` needs one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Collection, Mapping, Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

from outvote.access.tokens import TokenBook, bearer
from outvote.edge.ofrep import refused
from outvote.web.refusals import (
    NO_TOKEN,
    NOT_FOR_EDGES,
    OTHER_HOST,
    OTHER_ORIGIN,
    SAFE,
    Hosts,
    Origins,
    Refusal,
    Refusals,
)


class EdgeGuard:
    """Authentication middleware."""

    def __init__(
        self,
        app: ASGIApp,
        refused: Counter[int],
        *,
        tokens: TokenBook | None = None,
        hosts: Collection[str] | None = None,
        origins: Sequence[str] = (),
    ) -> None:
        """`refused` counts refusals by status; without `hosts`, any `Host` header is accepted."""
        self._app = app
        self._refused = refused
        self._tokens = tokens
        self._hosts = None if hosts is None else Hosts(hosts)
        self._origins = Origins(origins)
        self._refusals = Refusals()

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Return the application's own awaitable for an allowed request, so that it costs no extra step."""
        refusal = self._judge(scope, dict(scope.get("headers", ())))
        return self._app(scope, receive, send) if refusal is None else self._turn_away(refusal, scope, send)

    def _judge(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Refusal | None:
        hosts = self._hosts
        if hosts is not None:
            host = headers.get(b"host")
            if host not in hosts.known and host is not None and host not in hosts:
                return OTHER_HOST
        if (
            (b"origin" in headers or b"sec-fetch-site" in headers)
            and scope["method"] not in SAFE
            and self._origins.refuses(headers)
        ):
            return OTHER_ORIGIN
        if self._tokens is None or scope["path"] == "/healthz":
            return None
        verdict = self._tokens.check(bearer(headers.get(b"authorization")))
        if verdict.role is None:
            return NO_TOKEN[verdict.why]
        return NOT_FOR_EDGES if verdict.role == "viewer" else None

    async def _turn_away(self, refusal: Refusal, scope: Scope, send: Send) -> None:
        self._refused[refusal.status] += 1
        self._refusals.note(refusal.reason)
        response = refused(scope["path"], refusal.problem)
        headers = [*response.headers, *refusal.headers]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})
