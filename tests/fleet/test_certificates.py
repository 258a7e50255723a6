"""Certificates: what we sign is accepted by OpenSSL for the names it is for; what the user brings is checked first."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from outvote.core.errors import InvalidConfiguration
from outvote.fleet.addresses import Address, read_address
from outvote.fleet.brought import ExternalCertificate, handshake, read_authorities, read_brought
from outvote.fleet.certificates import Signed, expires, new_authority, new_certificate

NOW = time.time()
DAY = 86400


@pytest.fixture(scope="module")
def authority() -> Signed:
    return new_authority("fleet", now=NOW)


def answer(served: Signed, ca: bytes, host: str, folder: Path) -> str:
    """What a client says of a listener that shows the certificate."""
    (folder / "c.pem").write_bytes(served.chain)
    (folder / "c.key").write_bytes(served.key)
    listener = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    listener.load_cert_chain(folder / "c.pem", folder / "c.key")
    try:
        handshake(listener, ssl.create_default_context(cadata=ca.decode()), host)
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    return "good"


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("engine.example.org", "good"),
        ("10.0.0.5", "good"),
        ("fd00::5", "good"),
        ("localhost", "good"),
        ("127.0.0.1", "good"),
        ("::1", "good"),
        ("other.example.org", "Hostname mismatch"),
        ("10.0.0.6", "IP address mismatch"),
    ],
)
def test_a_certificate_is_for_its_names_and_this_machine(
    authority: Signed, tmp_path: Path, host: str, said: str
) -> None:
    served = new_certificate(authority, ["engine.example.org", "10.0.0.5", "fd00::5"], now=NOW)
    assert answer(served, authority.chain, host, tmp_path).startswith(said)


def test_a_certificate_of_another_authority_or_whose_time_is_over_is_refused(authority: Signed, tmp_path: Path) -> None:
    other = new_certificate(new_authority("fleet", now=NOW), [], now=NOW)
    assert answer(other, authority.chain, "localhost", tmp_path) != "good"
    old = new_certificate(authority, [], now=NOW - 3 * DAY, days=2)
    assert "expired" in answer(old, authority.chain, "localhost", tmp_path)


def test_ends_are_as_asked_for_and_never_after_the_authority(authority: Signed) -> None:
    assert expires(authority.chain) == int(NOW) + 3650 * DAY
    assert expires(new_certificate(authority, [], now=NOW).chain) == int(NOW) + 730 * DAY
    assert expires(new_certificate(authority, [], now=NOW, days=9000).chain) <= expires(authority.chain)
    with pytest.raises(InvalidConfiguration, match="authority has expired"):
        new_certificate(authority, [], now=NOW + 4000 * DAY)


def put(folder: Path, signed: Signed, name: str = "mine") -> ExternalCertificate:
    """What a user brings, as files."""
    chain, key = folder / f"{name}.pem", folder / f"{name}.key"
    chain.write_bytes(signed.chain)
    key.write_bytes(signed.key)
    return ExternalCertificate(chain, key)


def test_a_certificate_that_is_good_is_taken(tmp_path: Path, authority: Signed) -> None:
    signed = new_certificate(authority, ["*.example.org"], now=NOW, client=True)
    found = read_brought(
        put(tmp_path, signed), authority.chain, hosts=["a.example.org", "localhost", "127.0.0.1"], client=True
    )
    assert (found.chain, found.key) == (signed.chain, signed.key)
    assert "PRIVATE" not in repr(found)


@pytest.mark.parametrize(
    ("host", "days", "client", "said"),
    [
        ("other.org", 1, True, "Hostname mismatch, certificate is not valid for 'other.org'"),
        ("a.b.example.org", 1, True, r"not valid for 'a\.b\.example\.org'"),
        ("10.0.0.9", 1, True, r"IP address mismatch, certificate is not valid for '10\.0\.0\.9'"),
        ("a.example.org", -1, True, "certificate has expired"),
        ("a.example.org", 1, False, "unsuitable certificate purpose.*clientAuth"),
    ],
)
def test_a_certificate_that_edges_would_refuse_is_refused_here(
    tmp_path: Path, authority: Signed, host: str, days: int, client: bool, said: str
) -> None:
    then = NOW if days > 0 else NOW - 3 * DAY
    brought = put(tmp_path, new_certificate(authority, ["*.example.org"], now=then, days=abs(days), client=client))
    with pytest.raises(InvalidConfiguration, match=f"the certificate '.*mine.pem' would be refused: .*{said}") as told:
        read_brought(brought, authority.chain, hosts=["localhost", host], client=True)
    assert f"must be for localhost, {host}" in str(told.value)


def between(root: Signed, *, now: float) -> Signed:
    """An authority that another one has signed."""
    signer, made = x509.load_pem_x509_certificate(root.chain), new_authority("between", now=now)
    builder, old = x509.CertificateBuilder(), x509.load_pem_x509_certificate(made.chain)
    builder = builder.subject_name(old.subject).issuer_name(signer.subject).public_key(old.public_key())
    builder = builder.not_valid_before(old.not_valid_before_utc).not_valid_after(old.not_valid_after_utc)
    for each in old.extensions:
        builder = builder.add_extension(each.value, each.critical)
    key = serialization.load_pem_private_key(root.key, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), False)
    signed = builder.serial_number(x509.random_serial_number()).sign(key, hashes.SHA256())
    return Signed(signed.public_bytes(serialization.Encoding.PEM), made.key)


def test_authorities_in_between_are_in_the_file_of_the_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer = x509.BasicConstraints(ca=True, path_length=1)
    with monkeypatch.context() as patched:
        patched.setattr(x509, "BasicConstraints", lambda **_: longer)
        root = new_authority("root", now=NOW)
    middle = between(root, now=NOW)
    leaf = new_certificate(middle, [], now=NOW)
    whole = put(tmp_path, Signed(leaf.chain + middle.chain, leaf.key))
    assert read_brought(whole, root.chain, hosts=["localhost"]).chain == leaf.chain + middle.chain
    for chain, ca in ((leaf.chain, root.chain), (leaf.chain + middle.chain, middle.chain)):
        with pytest.raises(InvalidConfiguration, match=r"unable to get (local )?issuer certificate"):
            read_brought(put(tmp_path, Signed(chain, leaf.key)), ca, hosts=["localhost"])


def test_a_wrong_key_authority_or_file_is_refused(tmp_path: Path, authority: Signed) -> None:
    def refused(brought: ExternalCertificate, said: str, ca: bytes = authority.chain) -> None:
        with pytest.raises(InvalidConfiguration, match=said):
            read_brought(brought, ca, hosts=["localhost"])

    mine, other = (put(tmp_path, new_certificate(authority, [], now=NOW), name) for name in ("mine", "other"))
    refused(ExternalCertificate(mine.certificate, other.key), "is not that of the first certificate")
    refused(mine, "unable to get local issuer certificate", new_authority("x", now=NOW).chain)
    refused(mine, "unable to get local issuer certificate", mine.certificate.read_bytes())
    refused(ExternalCertificate(mine.certificate, mine.certificate), "holds no private key")
    refused(ExternalCertificate(mine.key, mine.key), "holds no certificate")
    refused(ExternalCertificate(tmp_path / "none.pem", mine.key), "cannot be read: No such file")
    pair = serialization.load_pem_private_key(mine.key.read_bytes(), None)
    sealed = serialization.BestAvailableEncryption(b"secret")
    mine.key.write_bytes(pair.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, sealed))
    refused(mine, "holds no private key in PEM without a password")


def test_of_a_file_of_authorities_certificates_are_taken_and_nothing_else(tmp_path: Path, authority: Signed) -> None:
    path = tmp_path / "ca.pem"
    path.write_bytes(authority.key + b"mine:\n" + authority.chain)
    assert read_authorities(path) == authority.chain
    path.write_bytes(authority.key)
    with pytest.raises(InvalidConfiguration, match="holds no certificate"):
        read_authorities(path)


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("localhost", Address("localhost", 4322), "localhost:4322"),
        ("Engine.Example.org:1", Address("engine.example.org", 1), "engine.example.org:1"),
        ("10.0.0.5:65535", Address("10.0.0.5", 65535), "10.0.0.5:65535"),
        ("[FD00::5]", Address("fd00::5", 4322), "[fd00::5]:4322"),
        ("[::1]:9", Address("::1", 9), "[::1]:9"),
    ],
)
def test_addresses_are_read_as_people_write_them(text: str, address: Address, shown: str) -> None:
    assert read_address(text, default_port=4322) == address
    assert str(address) == shown


@pytest.mark.parametrize(
    "text",
    ["", ":1", "a:", "a:0", "a:65536", "a:x", "a b", "a/b", "http://a", "-a", "a-", "a..b", "256.1.1.1", "::1", "[a]:1",
     "a\n", "*.example.org", "é.org", "a" * 64 + ".org"],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"^address must be "):
        read_address(text, default_port=4322)


def test_engines_listen_no_wider_than_their_address(tmp_path: Path) -> None:
    assert str(Address("localhost", 1).listen) == "127.0.0.1:1"
    assert str(Address("::1", 1).listen) == "[::1]:1"
    assert str(Address("10.0.0.5", 1).listen) == "0.0.0.0:1"
    assert str(Address("fd00::5", 1).listen) == "[::]:1"
