"""TLS of the HTTP listeners and of their clients: version 1.2 at least, and certificates that are renewed as it runs.

A renewed certificate is loaded apart from the one in use, and takes its place when it is whole: a file that is half
written or damaged changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Final, TypeAlias

from outvote.core.errors import InvalidTask
from outvote.network.kits import Certificate
from outvote.network.logs import event
from outvote.network.tokens import check_private

LOOK_AGAIN: Final = 1.0
"""Seconds between two looks at the files of a certificate."""
PROTOCOLS: Final = ["http/1.1"]

_log = logging.getLogger(__name__)

_State: TypeAlias = tuple[tuple[int, int, int] | None, ...]


def server_context(certificate: Certificate) -> ssl.SSLContext:
    """What a listener shows and speaks."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(PROTOCOLS)
    try:
        check_private(certificate.key)
        context.load_cert_chain(certificate.chain, certificate.key, password=_no_password)
    except InvalidTask:
        raise
    except (OSError, ValueError) as error:  # SSLError is one
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidTask(
            f"the certificate {str(certificate.chain)!r} with the key {str(certificate.key)!r} cannot be used: {why}; "
            "needed are PEM files that belong together, the key without a password"
        ) from None
    return context


def client_context(ca: Path | None) -> ssl.SSLContext:
    """Whom a client trusts: those that `ca` signed and nobody else; None: whom this machine trusts."""
    try:
        context = ssl.create_default_context(cafile=None if ca is None else str(ca))
    except OSError as error:
        raise InvalidTask(f"no certificates can be read from {str(ca)!r}: {error.strerror or error}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


async def keep_fresh(context: ssl.SSLContext, certificate: Certificate) -> None:
    """For ever: when the files of a certificate have changed, who connects from then on is shown the new one."""
    watch = Renewal(context, certificate)
    while True:
        await asyncio.sleep(LOOK_AGAIN)
        watch.look()


class Renewal:
    """What is known of a certificate's files."""

    def __init__(self, context: ssl.SSLContext, certificate: Certificate) -> None:
        self._context = context
        self._certificate = certificate
        self._in_use = self._state()
        self._failed: _State | None = None
        self._told: _State | None = None

    def look(self) -> None:
        """Load what has changed; what cannot be loaded twice in a row, and so is not being written, is told once."""
        state = self._state()
        if state in (self._in_use, self._told):
            return
        try:
            fresh = server_context(self._certificate)
        except InvalidTask:
            if state == self._failed:
                self._told = state
                event(_log, logging.ERROR, "certificate_not_loaded", file=self._certificate.chain.name)
            self._failed = state
            return
        self._in_use, self._failed, self._told = state, None, None

        def show(connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, first: ssl.SSLContext) -> None:
            connection.context = fresh

        self._context.sni_callback = show  # it is called for each handshake, also where no name is asked for
        event(_log, logging.INFO, "certificate_renewed", file=self._certificate.chain.name)

    def _state(self) -> _State:
        return tuple(_look(path) for path in self._certificate)


def _look(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _no_password() -> str:
    """Else OpenSSL would ask the terminal for one."""
    raise ValueError("it has a password")
