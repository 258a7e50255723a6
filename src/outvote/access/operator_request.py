"""Sends one request of a command to a server's API for operators.

The token is sent only to the named server: no redirects, no proxies. It uses `http.client` because httpx would add a
tenth of a second to the start of every command.
"""

from __future__ import annotations

import ssl
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from outvote.core.errors import OutvoteError

MAX_WAIT: Final = 15.0
"""Timeout in seconds: longer than the server's own timeout for its engine, so that its error arrives."""


class NoAnswer(OutvoteError):
    """No answer, or not one in HTTP."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


def send(
    server: str, method: str, path: str, *, token: str | None, context: ssl.SSLContext | None, body: bytes | None = None
) -> tuple[int, bytes]:
    """Return the status and the body of the response, for any status. `context` is the TLS context for https."""
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
