"""Tokens of the HTTP APIs: a secret for who asks, its hash for who answers.

A file of tokens holds no secret, so whoever reads it cannot ask. Several tokens are good at once: a new one is added,
its users change over, the old one goes, and nobody is refused in between.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from outvote.access.watched_files import WatchedFiles
from outvote.core.errors import InvalidTask
from outvote.log.records import check_name
from outvote.observability.logs import event

Role = Literal["admin", "viewer", "application"]
"""admin: all of a server's API; viewer: only to look; application: an edge's API."""
PREFIX: Final = "outvote-"
"""What every token begins with, so that one that got somewhere by mistake is found."""
LOOK_AGAIN: Final = 1.0
"""Seconds after which a file of tokens is looked at again."""

_log = logging.getLogger(__name__)


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One token, without its secret."""

    name: str
    role: Role
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    issued: int
    """Seconds since 1970."""
    expires: int


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tokens: list[Token]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of looking at a token."""

    role: Role | None
    name: str | None = None
    why: str = ""
    """Of a refusal: `missing`, `unknown` or `expired`."""
    expires: int = 0
    """Of a good one, in seconds since 1970."""


_MISSING: Final = Verdict(None, why="missing")
_UNKNOWN: Final = Verdict(None, why="unknown")


def make_token(name: str, role: Role, *, days: float, now: float | None = None) -> tuple[str, Token]:
    """A new secret, which is shown once, and what is kept of it."""
    check_name("a token's name", name)
    secret = PREFIX + secrets.token_urlsafe(32)
    issued = int(time.time() if now is None else now)
    return secret, Token(name, role, _hash(secret.encode()), issued, issued + int(days * 86400))


def read_tokens(path: Path) -> list[Token]:
    """The tokens of a file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=_File).tokens
    except OSError as error:
        raise InvalidTask(f"no tokens can be read from {str(path)!r}: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise InvalidTask(f"{str(path)!r} is no file of tokens: {error}; `outvote fleet token` writes them") from None


def tokens_file(tokens: Iterable[Token]) -> bytes:
    """What `read_tokens` reads."""
    return msgspec.json.format(msgspec.json.encode(_File(list(tokens))), indent=1) + b"\n"


def check_private(path: Path) -> None:
    """Refuse a secret that anybody on this machine can read. Its group may: so Kubernetes gives files to a pod."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise InvalidTask(f"{str(path)!r} cannot be read: {error.strerror}") from None
    if mode & 0o027:
        raise InvalidTask(
            f"{str(path)!r} holds a secret and has mode {mode:o}: others may read or change it. chmod 600 it, and "
            "make a new one if somebody may have read it"
        )


def read_secret(path: Path) -> str:
    """A token from a file of its own, which only its owner can read."""
    check_private(path)
    try:
        secret = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise InvalidTask(f"no token can be read from {str(path)!r}: {error}") from None
    if not secret or not secret.isprintable() or " " in secret:
        raise InvalidTask(f"{str(path)!r} must hold one token and nothing else")
    return secret


class TokenBook:
    """The tokens that are good now; the file is read again when it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = WatchedFiles([path])
        self._load()
        self._looked = time.monotonic()

    def check(self, presented: bytes | None, *, now: float | None = None) -> Verdict:
        """Every token is compared, in a time that does not depend on where they differ."""
        if time.monotonic() - self._looked > LOOK_AGAIN:
            self._read_again()
        if not presented:
            return _MISSING
        digest = _hash(presented)
        found: Verdict | None = None
        for sha256, good in self._good:
            if hmac.compare_digest(sha256, digest):
                found = good
        if found is None:
            return _UNKNOWN
        if found.expires <= (time.time() if now is None else now):
            return Verdict(None, found.name, "expired")
        return found

    def _read_again(self) -> None:
        """If the file is gone or damaged, the tokens that were good stay good."""
        self._looked = time.monotonic()
        try:
            if self._file.reload(self._load):
                event(_log, logging.INFO, "tokens_read", tokens=len(self._good))
        except InvalidTask:
            event(_log, logging.ERROR, "tokens_not_read", file=self._path.name)

    def _load(self) -> None:
        """What is said of each token until it expires is made here, and not at each request."""
        tokens = read_tokens(self._path)
        self._good = [(each.sha256, Verdict(each.role, each.name, expires=each.expires)) for each in tokens]


def bearer(header: bytes | None) -> bytes | None:
    """The token of an `Authorization` header; None if it has none."""
    if header is None or header[:7].lower() != b"bearer ":
        return None
    return header[7:].strip() or None


def _hash(secret: bytes) -> str:
    """A token has 256 random bits: a fast hash is enough, there is nothing to guess."""
    return hashlib.sha256(secret).hexdigest()
