"""Certificates that the user brings. They are tried before they are taken: by a TLS handshake in memory, with the
verifier that edges use."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from outvote.core.errors import InvalidConfiguration
from outvote.fleet.certificates import Signed


@dataclass(frozen=True)
class ExternalCertificate:
    """Where the user's certificate is; for a new fleet with its authority's."""

    certificate: Path
    key: Path
    ca: Path | None = None


def read_brought(brought: ExternalCertificate, ca: bytes, *, hosts: Sequence[str], client: bool = False) -> Signed:
    """Read a certificate, those that sign it, and its key.

    Clients that trust `ca` only must accept it under each of the hosts. With `client` it must also be good to present
    to others, as engines of a cluster do.
    """
    chain, key = _bytes(brought.certificate), _bytes(brought.key)
    _certificates(chain, brought.certificate)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=ca.decode())
    caller = ssl.create_default_context(cadata=ca.decode())
    # As strict as the strictest client: Python before 3.13 wants the whole chain, 3.13 wants it by the letter of
    # RFC 5280, and browsers and engines read no host from a common name.
    caller.verify_flags = (caller.verify_flags | ssl.VERIFY_X509_STRICT) & ~ssl.VERIFY_X509_PARTIAL_CHAIN
    caller.hostname_checks_common_name = False
    contexts = (server, caller) if client else (server,)
    for context in contexts:
        _load(context, brought)
    try:
        for host in hosts:
            handshake(server, caller, host)
        if client:
            server.verify_mode = ssl.CERT_REQUIRED
            handshake(server, caller, hosts[0])
    except ssl.SSLCertVerificationError as error:
        purpose = ", and for TLS clients, too (extended key usage clientAuth)" if client else ""
        raise InvalidConfiguration(
            f"the certificate {str(brought.certificate)!r} would be refused: {error.verify_message.rstrip('.')}. It "
            f"must be for {', '.join(hosts)}{purpose}, be good now, and be signed by an authority in --ca; put "
            "certificates in between behind it, into the same file"
        ) from None
    except ssl.SSLError as error:
        raise InvalidConfiguration(f"no TLS with the certificate {str(brought.certificate)!r}: {error}") from None
    return Signed(chain, key)


def read_authorities(path: Path) -> bytes:
    """The certificates in a file, as PEM, and nothing else that is in it."""
    found = _certificates(_bytes(path), path)
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in found)


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> None:
    """Let a client call a server under this name, in memory; raises what either of them objects to."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    waiting = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while waiting:
        for side in tuple(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass


def _load(context: ssl.SSLContext, brought: ExternalCertificate) -> None:
    try:
        context.load_cert_chain(brought.certificate, brought.key, password="")  # not asked for at the terminal
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise InvalidConfiguration(
                f"{str(brought.key)!r} is not that of the first certificate in {str(brought.certificate)!r}",
                field="key",
            ) from None
        raise InvalidConfiguration(
            f"{str(brought.key)!r} holds no private key in PEM without a password", field="key"
        ) from None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidConfiguration(f"the file {str(path)!r} cannot be read: {error.strerror}") from None


def _certificates(content: bytes, path: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        raise InvalidConfiguration(f"{str(path)!r} holds no certificate in PEM") from None
