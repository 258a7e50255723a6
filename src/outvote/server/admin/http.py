"""HTTP for the API and the pages of operators: routes, bodies, refusals. `guard` does the authentication."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outvote.server.admin.requests import LARGEST_BODY, Refused
from outvote.web.problems import Problem, problem

PIECE: Final = 64 * 1024
"""Size of a piece, in bytes."""

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


class Pages(Protocol):
    """The pages for people, beside the API."""

    @property
    def routes(self) -> list[BaseRoute]: ...

    def refuse(self, request: Request, problem: Problem) -> Response | None:
        """Return an error page; None if the client does not accept pages."""

    async def close(self) -> None:
        """Release all resources."""


def route(path: str, by_method: Mapping[str, Handler]) -> Route:
    """Make one route for all methods of a path: with several, `Allow` would name only those of the first."""

    async def dispatch(request: Request) -> Response:
        return await by_method["GET" if request.method == "HEAD" else request.method](request)

    return Route(path, dispatch, methods=list(by_method))


def answer(body: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(body), status_code=status, media_type="application/json", headers=headers)


class InPieces:
    """Middleware that sends a large answer in pieces, each once the client has read enough of the previous ones.

    Otherwise a client that does not read would make the server buffer all of it, and once more for TLS.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_pieces(message: Message) -> None:
            body = message.get("body", b"")
            for start in range(0, len(body) - PIECE, PIECE):
                await send({"type": message["type"], "body": body[start : start + PIECE], "more_body": True})
            if len(body) > PIECE:
                message = {**message, "body": body[(len(body) - 1) // PIECE * PIECE :]}
            await send(message)

        await self._app(scope, receive, send_pieces)


async def read_body(request: Request) -> bytes:
    """Read a body of at most `LARGEST_BODY` bytes."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST_BODY:
                raise Refused(413, "body-too-large", f"a request may have {LARGEST_BODY:,} bytes, this has more")
    except ClientDisconnect:
        raise Refused(400, "not-whole", "the request ended before its body") from None
    return bytes(body)


# ---- refusals


def refuser(pages: Pages | None) -> Callable[..., Response]:
    """Return a function that answers with a problem, or with an error page for browsers."""

    def refuse(request: Request, problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
        page = None if pages is None else pages.refuse(request, problem)
        if page is not None:
            page.headers.update(headers or {})
            return page
        body = msgspec.json.encode(problem)
        return Response(body, status_code=problem.status, media_type="application/problem+json", headers=headers)

    return refuse


def handlers(pages: Pages | None) -> dict[Any, Callable[[Request, Exception], Awaitable[Response]]]:
    """Return the exception handlers for Starlette."""
    refuse = refuser(pages)

    async def on_refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return refuse(request, error.problem)

    async def on_http(request: Request, error: Exception) -> Response:
        """Refuse unknown paths and methods, which Starlette detects."""
        assert isinstance(error, HTTPException)
        allowed = ", ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))  # sorted: Starlette joins a set
        hint = f"allowed is {allowed}" if allowed else "see /openapi.json for what there is"
        detail = f"{request.method} {request.url.path!r} is not possible: {hint}"
        refusal = Problem("about:blank", error.detail, error.status_code, detail)
        return refuse(request, refusal, {"Allow": allowed} if allowed else None)

    async def on_error(request: Request, error: Exception) -> Response:
        """Answer any other error with 500; its traceback goes to standard error."""
        return refuse(request, problem("", 500, "the server failed at this request: its log says where"))

    return {Refused: on_refused, HTTPException: on_http, Exception: on_error}
