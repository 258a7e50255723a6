"""Certificates that the user brings: read, and refused with the reason where an edge would refuse them later."""

from __future__ import annotations

import datetime
import fnmatch
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from outvote.core.errors import InvalidTask
from outvote.fleet.certificates import Signed, covers

_PUBLIC = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def read_brought(
    certificate: Path, key: Path, ca: bytes, *, hosts: Sequence[str], now: float, client: bool = False
) -> Signed:
    """A certificate with those that sign it, and its key: for these hosts, good now, and signed by one of `ca`. With
    `client` it must also be good to present to others, as engines of a cluster do."""
    chain, secret = _bytes(certificate), _bytes(key)
    found = _certificates(chain, certificate)
    first = found[0]
    try:
        pair = serialization.load_pem_private_key(secret, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InvalidTask(f"{str(key)!r} holds no private key in PEM without a password") from None
    if pair.public_key().public_bytes(*_PUBLIC) != first.public_key().public_bytes(*_PUBLIC):
        raise InvalidTask(f"the key {str(key)!r} is not that of the first certificate in {str(certificate)!r}")
    _check_good(found, certificate, now)
    missing = [host for host in hosts if not _is_covered(host, covers(first))]
    if missing:
        raise InvalidTask(
            f"the certificate {str(certificate)!r} is for {', '.join(covers(first)) or 'no host'}, needed is also "
            f"{', '.join(missing)}: edges would refuse it there"
        )
    if client and not _may_be_client(first):
        raise InvalidTask(
            f"the certificate {str(certificate)!r} is for servers only, and engines of a cluster present theirs to "
            "each other: have it signed for TLS clients, too (extended key usage clientAuth)"
        )
    _check_signed(found, _certificates(ca, None), certificate)
    return Signed(chain, secret)


def read_authorities(path: Path, *, now: float) -> bytes:
    """Certificates of authorities, as PEM."""
    content = _bytes(path)
    found = _certificates(content, path)
    for each in found:
        try:
            is_authority = each.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        except x509.ExtensionNotFound:
            is_authority = False
        if not is_authority:
            raise InvalidTask(f"{str(path)!r} must hold certificates of authorities, {_called(each)} is none")
    _check_good(found, path, now)
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in found)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidTask(f"the file {str(path)!r} cannot be read: {error.strerror}") from None


def _certificates(content: bytes, path: Path | None) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        raise InvalidTask(f"{'ca.pem' if path is None else repr(str(path))} holds no certificate in PEM") from None


def _check_good(found: list[x509.Certificate], path: Path, now: float) -> None:
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
    for each in found:
        if each.not_valid_after_utc <= moment:
            raise InvalidTask(f"{_called(each)} in {str(path)!r} has expired on {each.not_valid_after_utc:%Y-%m-%d}")
        if each.not_valid_before_utc > moment:
            raise InvalidTask(
                f"{_called(each)} in {str(path)!r} is good only from {each.not_valid_before_utc:%Y-%m-%d}"
            )


def _check_signed(found: list[x509.Certificate], authorities: list[x509.Certificate], path: Path) -> None:
    """From the first on, each must be signed by the next, until one is signed by an authority."""
    current, rest = found[0], found[1:]
    while True:
        if any(_signs(authority, current) for authority in authorities):
            return
        signer = next((each for each in rest if _signs(each, current)), None)
        if signer is None:
            raise InvalidTask(
                f"{_called(current)} in {str(path)!r} is signed by {current.issuer.rfc4514_string()!r}, which is not "
                "among the authorities given: give the right --ca, and put certificates in between into --certificate"
            )
        rest = [each for each in rest if each is not signer]
        current = signer


def _signs(signer: x509.Certificate, signed: x509.Certificate) -> bool:
    try:
        signed.verify_directly_issued_by(signer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _is_covered(host: str, names: Sequence[str]) -> bool:
    try:
        return str(ipaddress.ip_address(host)) in names
    except ValueError:
        pass
    for name in names:
        if name.lower() == host.lower():
            return True
        if name.startswith("*.") and host.count(".") == name.count(".") and fnmatch.fnmatchcase(host, name.lower()):
            return True
    return False


def _may_be_client(certificate: x509.Certificate) -> bool:
    try:
        purposes = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return ExtendedKeyUsageOID.CLIENT_AUTH in purposes or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in purposes


def _called(certificate: x509.Certificate) -> str:
    return f"the certificate of {certificate.subject.rfc4514_string()!r}"
