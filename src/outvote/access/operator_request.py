"""Sends one request to a server's API for operators, as commands do.

A token goes only where it was meant to go: no redirect and no proxy is followed. This is `http.client` because httpx
would add a tenth of a second to the start of every command.
"""

from __future__ import annotations

import ssl
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from outvote.core.errors import OutvoteError

MAX_WAIT: Final = 15.0
"""Seconds that an answer may take: the server gives up on its engine sooner, and says so."""


class NoAnswer(OutvoteError):
    """What answers is no HTTP server, or nothing does."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


def send(
    server: str, method: str, path: str, *, token: str | None, context: ssl.SSLContext | None, body: bytes | None = None
) -> tuple[int, bytes]:
    """Return the status and the body of the answer, whatever the status is. `context` says whom https:// trusts."""
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    try:
        parts = urlsplit(server)
        if not parts.hostname:
            raise ValueError("the address names no host")
        connection: HTTPConnection
        if parts.scheme == "https":
            connection = HTTPSConnection(parts.hostname, parts.port or 443, timeout=MAX_WAIT, context=context)
        else:
            connection = HTTPConnection(parts.hostname, parts.port or 80, timeout=MAX_WAIT)
        with closing(connection):
            connection.request(method, parts.path + path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
    except (OSError, HTTPException, ValueError) as error:
        raise NoAnswer(error) from None
