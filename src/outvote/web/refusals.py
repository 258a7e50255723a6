"""Refusals by authentication, host and origin checks, shared by both HTTP APIs.

A refusal says what to do, and is counted by one of a few reasons. Nothing of a request is stored or logged: no token,
address or path.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from outvote.observability.logs import event
from outvote.observability.once_per_minute import OncePerMinute
from outvote.web.exposure import host_of
from outvote.web.problems import Problem, problem

MOST_KNOWN: Final = 100
"""Maximum number of accepted `Host` headers to remember: they may have any port."""
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""
CHALLENGE: Final = (b"www-authenticate", b"Bearer")

_log = logging.getLogger(__name__)


class Refusal(NamedTuple):
    """The response to a refused request."""

    reason: str
    """For logs and metrics."""
    status: int
    kind: str
    """For programs: the end of the problem's type."""
    detail: str

    @property
    def problem(self) -> Problem:
        return problem(self.kind, self.status, self.detail)

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        return [CHALLENGE] if self.status == 401 else []


NO_TOKEN: Final[Mapping[str, Refusal]] = {
    "missing": Refusal(
        "missing",
        401,
        "token-missing",
        "a token is needed, as `Authorization: Bearer TOKEN`; operators give them",
    ),
    "unknown": Refusal(
        "unknown", 401, "token-unknown", "this token is not known here: it is wrong, or was revoked; ask for a new one"
    ),
    "expired": Refusal("expired", 401, "token-expired", "this token has expired: ask for a new one"),
}
ONLY_LOOKS: Final = Refusal(
    "role", 403, "not-allowed", "this token is a viewer's, who may look and change nothing: an admin's is needed"
)
NOT_FOR_SERVERS: Final = Refusal(
    "role", 403, "not-allowed", "this token is for applications at an edge: here an admin's or a viewer's is needed"
)
NOT_FOR_EDGES: Final = Refusal(
    "role", 403, "not-allowed", "this token is a viewer's, for the server: at an edge an application's is needed"
)
OTHER_HOST: Final = Refusal(
    "host",
    403,
    "unknown-host",
    "this API is for this machine only, and must be called localhost, 127.0.0.1 or [::1]: another name that leads here "
    "may be that of a hostile page. Start it with tokens to use it by another name",
)
OTHER_ORIGIN: Final = Refusal(
    "origin",
    403,
    "other-origin",
    "a page of another origin must not use this API: name its origin with --allow-origin if it may",
)
OTHER_SITE: Final = Refusal(
    "origin", 403, "other-origin", "changes are made from this server's own pages or by programs, not from other pages"
)
REASONS: Final = ("missing", "unknown", "expired", "role", "host", "origin")


class Refusals:
    """Counts refused requests, by reason."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys(REASONS, 0))
        self._often = OncePerMinute[str]()

    def note(self, reason: str) -> None:
        self.counts[reason] += 1
        if count := self._often.note(reason, time.monotonic()):
            event(_log, logging.WARNING, "requests_refused", reason=reason, count=count)


class Hosts:
    """The `Host` headers that a process accepts, with any port."""

    def __init__(self, hosts: Collection[str]) -> None:
        self._hosts = frozenset(hosts)
        self.known: set[bytes] = set()
        """A cache of accepted headers, for the hot path."""

    def __contains__(self, header: bytes) -> bool:
        if header in self.known:
            return True
        if host_of(header.decode("latin-1")) not in self._hosts:
            return False
        if len(self.known) < MOST_KNOWN:
            self.known.add(header)
        return True


class Origins:
    """Which pages may make changes: those of these origins, and those of the same origin."""

    def __init__(self, origins: Iterable[str] = ()) -> None:
        self._origins = {origin.encode() for origin in origins}
        self._any = b"*" in self._origins

    def refuses(self, headers: Mapping[bytes, bytes], *, scheme: str = "http") -> bool:
        """Programs send neither header; old browsers send only `Origin`. `scheme` is that of the request."""
        origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site")
        if self._any or origin in self._origins:
            return False
        if site is not None:
            return site not in (b"same-origin", b"none")
        host = headers.get(b"host", b"").decode("latin-1")
        return origin is not None and not is_own(origin.decode("latin-1"), host, scheme=scheme)


def is_own(origin: str, host: str, *, scheme: str = "http") -> bool:
    """Whether a page of this origin belongs to `host`. An http page does not belong to an https host. An https page may
    belong to an http host, where a proxy terminates TLS."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return bool(host) and parts.netloc == host and (parts.scheme == "https" or parts.scheme == scheme == "http")
