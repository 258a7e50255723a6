"""TLS for the HTTP listeners and their clients: version 1.2 or later, with certificates reloaded while running."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Final

from outvote.access.kits import Certificate
from outvote.access.tokens import check_private
from outvote.access.watched_files import WatchedFiles
from outvote.core.errors import InvalidConfiguration
from outvote.observability.logs import event

LOOK_AGAIN: Final = 1.0
"""Seconds between two checks of the files of a certificate."""
PROTOCOLS: Final = ["http/1.1"]

_log = logging.getLogger(__name__)


def server_context(certificate: Certificate) -> ssl.SSLContext:
    """Return the TLS context of a listener."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(PROTOCOLS)
    check_private(certificate.key)
    try:
        context.load_cert_chain(certificate.chain, certificate.key, password=_no_password)
    except (OSError, ValueError) as error:  # SSLError is one
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidConfiguration(
            f"the certificate {str(certificate.chain)!r} with the key {str(certificate.key)!r} cannot be used: {why}; "
            "needed are PEM files that belong together, the key without a password"
        ) from None
    return context


def client_context(ca: Path | None) -> ssl.SSLContext:
    """Return the TLS context of a client. It trusts only `ca`; with None, the CAs of this machine."""
    try:
        context = ssl.create_default_context(cafile=None if ca is None else str(ca))
    except OSError as error:
        raise InvalidConfiguration(f"no certificates can be read from {str(ca)!r}: {error.strerror or error}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


async def keep_fresh(context: ssl.SSLContext, certificate: Certificate) -> None:
    """Reload a certificate whenever its files change. New connections use the new one. Runs until cancelled."""
    files = WatchedFiles(certificate)
    while True:
        await asyncio.sleep(LOOK_AGAIN)
        renew(context, certificate, files)


def renew(context: ssl.SSLContext, certificate: Certificate, files: WatchedFiles) -> None:
    """Replace the certificate in use by a renewed one, once that is loaded completely."""

    def load() -> None:
        fresh = server_context(certificate)

        def use_renewed(connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, first: ssl.SSLContext) -> None:
            connection.context = fresh

        context.sni_callback = use_renewed  # called at each handshake, also without a server name

    try:
        if files.reload(load):
            event(_log, logging.INFO, "certificate_renewed", file=certificate.chain.name)
    except InvalidConfiguration:
        event(_log, logging.ERROR, "certificate_not_loaded", file=certificate.chain.name)


def _no_password() -> str:
    """Fail instead of letting OpenSSL ask the terminal for a password."""
    raise ValueError("it has a password")
