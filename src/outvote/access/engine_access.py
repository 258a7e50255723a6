"""How a process authenticates to an engine: its credential, and the CA that it trusts for the engine's certificate.

Both are files that may be replaced while they are in use: see `watched_files`.
"""

from __future__ import annotations

import base64
import itertools
import json
import ssl
from collections import UserString
from dataclasses import dataclass
from pathlib import Path

from outvote.core.errors import InvalidConfiguration


@dataclass(frozen=True)
class Access:
    """The credential and the trusted CA of one process."""

    creds: Path | UserString
    """The credential: a file, or the content of one."""
    ca: Path
    called: str | None = None
    """The name in the engine's certificate, if it differs from the address."""

    def context(self) -> ssl.SSLContext:
        """Return the TLS context for connections to engines: it trusts only certificates of this fleet."""
        try:
            context = ssl.create_default_context(cafile=str(self.ca))
        except (OSError, ssl.SSLError) as error:
            raise InvalidConfiguration(f"{str(self.ca)!r} is not a CA certificate: {error}") from None
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context

    @property
    def files(self) -> list[Path]:
        return [path for path in (self.creds, self.ca) if isinstance(path, Path)]

    def credential(self) -> Credential:
        """Read the claims of the credential; the engine verifies it."""
        try:
            text = self.creds.read_text(encoding="ascii") if isinstance(self.creds, Path) else str(self.creds)
            lines = text.splitlines()
            token = next(following for line, following in itertools.pairwise(lines) if "BEGIN NATS USER JWT" in line)
            body = token.split(".")[1]
            claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
            return Credential(str(claims["name"]), int(claims["exp"]) if claims.get("exp") else None)
        except (OSError, ValueError, KeyError, IndexError, StopIteration, TypeError, AttributeError):
            where = repr(str(self.creds)) if isinstance(self.creds, Path) else "what was given"
            raise InvalidConfiguration(
                f"{where} is not a NATS credential: `outvote fleet` writes them, and a copy must be whole"
            ) from None


@dataclass(frozen=True)
class Credential:
    """The name and the expiry of a credential."""

    name: str
    expires: int | None
    """Seconds since 1970."""
