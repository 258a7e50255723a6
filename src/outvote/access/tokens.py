"""Tokens of the HTTP APIs: the client has a secret, the server its hash.

A file of tokens holds no secret, so reading it gives no access. Several tokens are valid at once: to rotate one, add
the new token, move its users over, and then remove the old one. No request is refused in between.
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
from outvote.core.errors import InvalidConfiguration
from outvote.log.records import check_name
from outvote.observability.logs import event

Role = Literal["admin", "viewer", "application"]
"""admin: a server's whole API; viewer: reads a server's API; application: an edge's API."""
PREFIX: Final = "outvote-"
"""The prefix of every token, so that secret scanners find leaked ones."""
LOOK_AGAIN: Final = 1.0
"""Seconds between two checks of a file of tokens."""

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
    """The result of checking a token."""

    role: Role | None
    name: str | None = None
    why: str = ""
    """The reason of a refusal: `missing`, `unknown` or `expired`."""
    expires: int = 0
    """The expiry of a valid token, in seconds since 1970."""


_MISSING: Final = Verdict(None, why="missing")
_UNKNOWN: Final = Verdict(None, why="unknown")


def make_token(name: str, role: Role, *, days: float, now: float | None = None) -> tuple[str, Token]:
    """Return a new secret, to be shown once, and the token to store."""
    check_name("a token's name", name)
    secret = PREFIX + secrets.token_urlsafe(32)
    issued = int(time.time() if now is None else now)
    return secret, Token(name, role, _hash(secret.encode()), issued, issued + int(days * 86400))


def read_tokens(path: Path) -> list[Token]:
    """Read the tokens of a file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=_File).tokens
    except OSError as error:
        raise InvalidConfiguration(f"no tokens can be read from {str(path)!r}: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        problem = f"{str(path)!r} is not a token file: {error}; `outvote fleet token` writes them"
        raise InvalidConfiguration(problem) from None


def tokens_file(tokens: Iterable[Token]) -> bytes:
    """Return the content of a file for `read_tokens`."""
    return json_file(_File(list(tokens)))


def json_file(content: msgspec.Struct) -> bytes:
    """Return the content of a file of JSON that people can read, too."""
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def check_private(path: Path) -> None:
    """Refuse a secret that any user of this machine can read. Its group may read it: Kubernetes mounts files so."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise InvalidConfiguration(f"{str(path)!r} cannot be read: {error.strerror}") from None
    if mode & 0o027:
        raise InvalidConfiguration(
            f"{str(path)!r} holds a secret and has mode {mode:o}: others may read or change it. chmod 600 it, and "
            "make a new one if somebody may have read it"
        )


def read_secret(path: Path) -> str:
    """Read one token from a private file."""
    check_private(path)
    try:
        secret = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise InvalidConfiguration(f"no token can be read from {str(path)!r}: {error}") from None
    if not secret or not secret.isprintable() or " " in secret:
        raise InvalidConfiguration(f"{str(path)!r} must hold one token and nothing else")
    return secret


class TokenBook:
    """Checks tokens against a file, which is reloaded when it changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = WatchedFiles([path])
        self._load()
        self._checked = time.monotonic()

    def check(self, presented: bytes | None, *, now: float | None = None) -> Verdict:
        """Compare with every token in constant time."""
        if time.monotonic() - self._checked > LOOK_AGAIN:
            self._read_again()
        if not presented:
            return _MISSING
        digest = _hash(presented)
        verdict: Verdict | None = None
        for sha256, accepted in self._accepted:
            if hmac.compare_digest(sha256, digest):
                verdict = accepted
        if verdict is None:
            return _UNKNOWN
        if verdict.expires <= (time.time() if now is None else now):
            return Verdict(None, verdict.name, "expired")
        return verdict

    def _read_again(self) -> None:
        """Reload a changed file. If it is missing or damaged, keep the previous tokens."""
        self._checked = time.monotonic()
        try:
            if self._file.reload(self._load):
                event(_log, logging.INFO, "tokens_read", tokens=len(self._accepted))
        except InvalidConfiguration:
            event(_log, logging.ERROR, "tokens_not_read", file=self._path.name)

    def _load(self) -> None:
        """Prepare the verdict of each token here, not at each request."""
        tokens = read_tokens(self._path)
        self._accepted = [(token.sha256, Verdict(token.role, token.name, expires=token.expires)) for token in tokens]


def bearer(header: bytes | None) -> bytes | None:
    """Return the token of an `Authorization` header, or None."""
    if header is None or header[:7].lower() != b"bearer ":
        return None
    return header[7:].strip() or None


def _hash(secret: bytes) -> str:
    """A token has 256 random bits and cannot be guessed: a fast hash is enough."""
    return hashlib.sha256(secret).hexdigest()
