"""Who is turned away before anything is looked at, and why: what the doors of both HTTP APIs have in common.

A refusal says what to do, and is counted by one of few reasons. Nothing of a request is kept or logged: no token,
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
"""Values of `Host` that are remembered to be good: a port may be any."""
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""
CHALLENGE: Final = (b"www-authenticate", b"Bearer")

_log = logging.getLogger(__name__)


class Refusal(NamedTuple):
    """What is answered to who is turned away."""

    reason: str
    """For logs and figures."""
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
    """How many were turned away, by reason."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys(REASONS, 0))
        self._often = OncePerMinute[str]()

    def note(self, reason: str) -> None:
        self.counts[reason] += 1
        if count := self._often.note(reason, time.monotonic()):
            event(_log, logging.WARNING, "requests_refused", reason=reason, count=count)


class Hosts:
    """What a process may be called by requests; any port will do."""

    def __init__(self, hosts: Collection[str]) -> None:
        self._hosts = frozenset(hosts)
        self.known: set[bytes] = set()
        """Those that were asked for and are good: who is in a hurry looks here first."""

    def __contains__(self, header: bytes) -> bool:
        if header in self.known:
            return True
        if host_of(header.decode("latin-1")) not in self._hosts:
            return False
        if len(self.known) < MOST_KNOWN:
            self.known.add(header)
        return True


class Origins:
    """Which pages may do more than look: those of these origins, and those that a browser calls our own."""

    def __init__(self, origins: Iterable[str] = ()) -> None:
        self._origins = {origin.encode() for origin in origins}
        self._any = b"*" in self._origins

    def refuses(self, headers: Mapping[bytes, bytes], *, scheme: str = "http") -> bool:
        """A program sends neither header; old browsers send the first only. `scheme` is how the request came."""
        origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site")
        if self._any or origin in self._origins:
            return False
        if site is not None:
            return site not in (b"same-origin", b"none")
        host = headers.get(b"host", b"").decode("latin-1")
        return origin is not None and not is_own(origin.decode("latin-1"), host, scheme=scheme)


def is_own(origin: str, host: str, *, scheme: str = "http") -> bool:
    """Whether a page of this origin is one of `host`. One in plaintext is none of a host that speaks TLS; a page over
    TLS may be ours where that ends ahead of us."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return bool(host) and parts.netloc == host and (parts.scheme == "https" or parts.scheme == scheme == "http")
