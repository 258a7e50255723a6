"""Authentication middleware of the server's API and pages. It runs before a request is read.

A token comes in a header or in the cookie of the login page; a page of another origin can send neither. Paths that need
no token reveal nothing about the fleet.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from outvote.access.tokens import TokenBook, Verdict, bearer
from outvote.web.problems import Problem
from outvote.web.refusals import (
    NO_TOKEN,
    NOT_FOR_SERVERS,
    ONLY_LOOKS,
    OTHER_HOST,
    OTHER_SITE,
    SAFE,
    Hosts,
    Origins,
    Refusal,
    Refusals,
)

LOGIN: Final = "/login"
LOGOUT: Final = "/logout"
HEALTH: Final = "/healthz"
OPEN: Final = frozenset({LOGIN, LOGOUT, HEALTH, "/openapi.json"})
"""Paths that need no token; `HEALTH` without one returns only its status."""
STATIC: Final = "/static/"
LONGEST_LOGIN: Final = 12 * 3600
"""Longest lifetime of the login cookie, in seconds."""
LOOKS: Final = ("GET", "HEAD")
OWN_PAGES: Final = Origins()
"""Only our own pages may change anything: a page of another origin in an operator's browser may not."""

Refuse = Callable[[Request, Problem, Mapping[str, str] | None], Response]


class AdminGuard:
    """The middleware. It puts the verdict on the token into `request.state.visitor`."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        refuse: Refuse,
        refusals: Refusals,
        tokens: TokenBook | None = None,
        hosts: Collection[str] | None = None,
        has_login: bool = False,
    ) -> None:
        """Without `tokens` anybody may do anything; without `hosts` any Host header is accepted."""
        self._app = app
        self._refuse = refuse
        self._refusals = refusals
        self._tokens = tokens
        self._hosts = None if hosts is None else Hosts(hosts)
        self._has_login = has_login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._judge(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
            return
        self._refusals.note(refusal.reason)
        await self._answer(Request(scope), refusal)(scope, receive, send)

    def _judge(self, scope: Scope) -> Refusal | None:
        headers = dict(scope["headers"])
        if self._hosts is not None and b"host" in headers and headers[b"host"] not in self._hosts:
            return OTHER_HOST
        if scope["method"] not in SAFE and OWN_PAGES.refuses(headers, scheme=scope.get("scheme", "http")):
            return OTHER_SITE
        if self._tokens is None or scope["path"].startswith(STATIC):
            return None
        look = functools.partial(self._tokens.check, _presented(scope, headers))
        verdict = look()
        scope.setdefault("state", {}).update(visitor=verdict, look=look)
        if scope["path"] in OPEN:
            return None
        only_looks = verdict.role == "viewer" and scope["method"] not in LOOKS
        return refusal_of(verdict) or (ONLY_LOOKS if only_looks else None)

    def _answer(self, request: Request, refusal: Refusal) -> Response:
        wants_page = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1/")
        if refusal.status == 401 and self._has_login and wants_page:
            return RedirectResponse(login_path(request, refusal.reason), status_code=303)
        headers = {name.decode(): value.decode() for name, value in refusal.headers}
        return self._refuse(request, refusal.problem, headers)


def refusal_of(verdict: Verdict) -> Refusal | None:
    """Refuse a token that is not valid, or not for servers."""
    if verdict.role is None:
        return NO_TOKEN[verdict.why]
    return NOT_FOR_SERVERS if verdict.role == "application" else None


def visitor(request: Request) -> Verdict | None:
    """Return the verdict on the request's token; None if no tokens are needed."""
    verdict: Verdict | None = getattr(request.state, "visitor", None)
    return verdict


def is_known(request: Request) -> bool:
    """Whether the client may see more than a status."""
    verdict = visitor(request)
    return verdict is None or verdict.role in ("admin", "viewer")


def is_still_known(request: Request) -> bool:
    """Whether the token is still valid: some answers are streamed for days."""
    look: Callable[[], Verdict] | None = getattr(request.state, "look", None)
    return look is None or look().role is not None


# ---- the login page


def login_path(request: Request, why: str) -> str:
    """Return the path of the login page, with the requested page as `next`. The content of a form is lost."""
    asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    back = local_path(asked) if request.method in LOOKS else "/"
    query = {"next": back} if back != "/" else {}
    if why != "missing":
        query["why"] = why
    return LOGIN + (f"?{urlencode(query)}" if query else "")


def local_path(text: str) -> str:
    """Return the text if it is a path of this server, else "/": never redirect elsewhere or back to the login."""
    printable = text.isascii() and text.isprintable() and " " not in text
    if not printable or not text.startswith("/") or text.startswith("//") or "\\" in text:
        return "/"
    return "/" if text.partition("?")[0] in (LOGIN, LOGOUT) else text


def remember(response: Response, request: Request, token: str, verdict: Verdict) -> None:
    """Set the login cookie: the browser sends it to this server only, from its own pages, and hides it from scripts."""
    lasts = min(int(verdict.expires - time.time()), LONGEST_LOGIN)
    response.set_cookie(_cookie(request.url.scheme), quote(token, safe=""), max_age=lasts, **_how(request))


def forget(response: Response, request: Request) -> None:
    response.set_cookie(_cookie(request.url.scheme), "", max_age=0, **_how(request))


def _how(request: Request) -> dict[str, Any]:
    return {"path": "/", "httponly": True, "samesite": "strict", "secure": request.url.scheme == "https"}


def _cookie(scheme: str) -> str:
    """Return the cookie's name. Browsers accept the prefix `__Host-` only over TLS and for this host."""
    return "__Host-outvote" if scheme == "https" else "outvote"


def _presented(scope: Scope, headers: Mapping[bytes, bytes]) -> bytes | None:
    """Return the token of a request. An invalid header is not replaced by the cookie."""
    if b"authorization" in headers:
        return bearer(headers[b"authorization"])
    if b"cookie" not in headers:
        return None
    value = cookie_parser(headers[b"cookie"].decode("latin-1")).get(_cookie(scope.get("scheme", "http")))
    return None if value is None else unquote(value).encode()
