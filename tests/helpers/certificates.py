"""Certificates as somebody may bring them: made here with `cryptography`, not by the package."""

from __future__ import annotations

import datetime
import ipaddress
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from outvote.access.kits import Certificate


class Authority:
    """Signs certificates for this machine; its own is at `path`."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._made = 0
        self.path = folder / f"{name}.pem"
        own = self._builder(self._name, self._key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self.path.write_bytes(own.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str = "https") -> Certificate:
        """A certificate and its key, in files that belong together; those of the same name are replaced."""
        chain, key = self.make()
        found = Certificate(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        for path, content in zip(found, (chain, key), strict=True):
            replace(path, content)
        return found

    def make(self) -> tuple[bytes, bytes]:
        key = ec.generate_private_key(ec.SECP256R1())
        self._made += 1
        hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        built = (
            self._builder(_name(f"number {self._made}"), key.public_key())
            .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        )
        chain = built.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        form = serialization.PrivateFormat.PKCS8
        return chain, key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )


def replace(path: Path, content: bytes) -> None:
    """As programs that renew certificates do: the new file takes the old one's place."""
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
        file.write(content)
    part.replace(path)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
