"""Certificates: a fleet's own authority, and what it signs for engines and HTTPS listeners; time is an argument.

An authority signs for hosts only, and only engines may also present theirs as clients: so they join a cluster, and no
other certificate of the fleet can.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from outvote.core.errors import InvalidConfiguration
from outvote.web.exposure import LOCAL

AUTHORITY_DAYS: Final = 3650
CERTIFICATE_DAYS: Final = 730
DAY: Final = 86400
_BACKDATED: Final = 300
"""Seconds by which clocks may differ: a certificate is good so long before it was made."""
_LONGEST_NAME: Final = 64  # of a common name in X.509


@dataclass(frozen=True)
class Signed:
    """A certificate and its key, as PEM. The key is a secret."""

    chain: bytes = field(repr=False)
    key: bytes = field(repr=False)


def new_authority(name: str, *, now: float, days: float = AUTHORITY_DAYS) -> Signed:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(f"Outvote {name}")
    builder = (
        _builder(subject, subject, key.public_key(), now=now, days=days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _pem(builder.sign(key, hashes.SHA256()), key)


def new_certificate(
    authority: Signed, hosts: Iterable[str], *, now: float, days: float = CERTIFICATE_DAYS, client: bool = False
) -> Signed:
    """For a listener that is reached under these names and addresses, and always from its own machine. With `client` it
    may also present it to others."""
    signer = x509.load_pem_x509_certificate(authority.chain)
    signer_key = serialization.load_pem_private_key(authority.key, None)
    if not isinstance(signer_key, ec.EllipticCurvePrivateKey):
        raise InvalidConfiguration("the key of the fleet's authority is not ours: restore it from your backup")
    names = list(dict.fromkeys([*hosts, *sorted(LOCAL)]))  # a server and its engine talk on one machine
    key = ec.generate_private_key(ec.SECP256R1())
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, *([ExtendedKeyUsageOID.CLIENT_AUTH] if client else [])]
    left = signer.not_valid_after_utc.timestamp() - now
    if left <= 0:
        raise InvalidConfiguration(
            f"the fleet's authority has expired on {signer.not_valid_after_utc:%Y-%m-%d}: make a new fleet"
        )
    builder = (
        _builder(_name(names[0]), signer.subject, key.public_key(), now=now, days=min(days, left / DAY))
        .add_extension(x509.SubjectAlternativeName([_general_name(each) for each in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer_key.public_key()), critical=False)
    )
    return _pem(builder.sign(signer_key, hashes.SHA256()), key)


def expires(pem: bytes) -> int:
    """When the first certificate of a chain ends: seconds since 1970."""
    return int(x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, now: float, days: float
) -> x509.CertificateBuilder:
    made = datetime.datetime.fromtimestamp(int(now), datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(made - datetime.timedelta(seconds=_BACKDATED))
        .not_valid_after(made + datetime.timedelta(seconds=int(days * DAY)))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:_LONGEST_NAME])])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Signed:
    return Signed(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
