"""Certificates: what we sign is accepted by OpenSSL for the names it is for; what the user brings is checked first."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from pathlib import Path

import pytest

from outvote.core.errors import InvalidTask
from outvote.fleet.addresses import Address, check_host, read_address
from outvote.fleet.brought import read_authorities, read_brought
from outvote.fleet.certificates import Signed, expires, new_authority, new_certificate

NOW = time.time()
DAY = 86400


@pytest.fixture(scope="module")
def authority() -> Signed:
    return new_authority("fleet", now=NOW)


def handshake(served: Signed, ca: bytes, host: str, folder: Path) -> str:
    """What a client says of a listener that shows the certificate."""
    (folder / "c.pem").write_bytes(served.chain)
    (folder / "c.key").write_bytes(served.key)
    listening = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    listening.load_cert_chain(folder / "c.pem", folder / "c.key")
    client = ssl.create_default_context(cadata=ca.decode())
    here, there = socket.socketpair()

    def serve() -> None:
        try:
            with listening.wrap_socket(there, server_side=True) as secured:
                secured.recv(1)
        except OSError:
            pass

    serving = threading.Thread(target=serve)
    serving.start()
    try:
        with here, client.wrap_socket(here, server_hostname=host):
            return "good"
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    finally:
        serving.join(10)


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
    assert handshake(served, authority.chain, host, tmp_path).startswith(said)


def test_a_certificate_of_another_authority_or_whose_time_is_over_is_refused(authority: Signed, tmp_path: Path) -> None:
    other = new_certificate(new_authority("fleet", now=NOW), [], now=NOW)
    assert handshake(other, authority.chain, "localhost", tmp_path) != "good"
    old = new_certificate(authority, [], now=NOW - 3 * DAY, days=2)
    assert "expired" in handshake(old, authority.chain, "localhost", tmp_path)


def test_ends_are_as_asked_for_and_never_after_the_authority(authority: Signed) -> None:
    assert expires(authority.chain) == int(NOW) + 3650 * DAY
    assert expires(new_certificate(authority, [], now=NOW).chain) == int(NOW) + 730 * DAY
    assert expires(new_certificate(authority, [], now=NOW, days=9000).chain) <= expires(authority.chain)
    with pytest.raises(InvalidTask, match="authority has expired"):
        new_certificate(authority, [], now=NOW + 4000 * DAY)


class Files:
    """What a user brings, as files."""

    def __init__(self, folder: Path, authority: Signed) -> None:
        self.ca = authority.chain
        self.folder = folder

    def put(self, signed: Signed, name: str = "mine") -> tuple[Path, Path]:
        chain, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        chain.write_bytes(signed.chain)
        key.write_bytes(signed.key)
        return chain, key


@pytest.fixture
def files(tmp_path: Path, authority: Signed) -> Files:
    return Files(tmp_path, authority)


def test_a_certificate_that_is_good_is_taken(files: Files, authority: Signed) -> None:
    signed = new_certificate(authority, ["*.example.org"], now=NOW, client=True)
    chain, key = files.put(signed)
    found = read_brought(chain, key, files.ca, hosts=["a.example.org", "localhost"], now=NOW, client=True)
    assert (found.chain, found.key) == (signed.chain, signed.key)
    assert "PRIVATE" not in repr(found)


@pytest.mark.parametrize(
    ("hosts", "days", "client", "said"),
    [
        (["other.org"], 1, True, "needed is also other.org"),
        (["a.b.example.org"], 1, True, r"needed is also a\.b\.example\.org"),
        (["10.0.0.9"], 1, True, r"needed is also 10\.0\.0\.9"),
        (["a.example.org"], -1, True, "has expired on"),
        (["a.example.org"], 1, False, "for servers only"),
    ],
)
def test_a_certificate_that_edges_would_refuse_is_refused_here(
    files: Files, authority: Signed, hosts: list[str], days: int, client: bool, said: str
) -> None:
    then = NOW if days > 0 else NOW - 3 * DAY
    chain, key = files.put(new_certificate(authority, ["*.example.org"], now=then, days=abs(days), client=client))
    with pytest.raises(InvalidTask, match=said):
        read_brought(chain, key, files.ca, hosts=hosts, now=NOW, client=True)


def test_a_wrong_key_authority_or_file_is_refused(files: Files, authority: Signed) -> None:
    chain, key = files.put(new_certificate(authority, [], now=NOW))
    _, other_key = files.put(new_certificate(authority, [], now=NOW), "other")
    with pytest.raises(InvalidTask, match="is not that of the first certificate"):
        read_brought(chain, other_key, files.ca, hosts=[], now=NOW)
    with pytest.raises(InvalidTask, match="is not among the authorities given"):
        read_brought(chain, key, new_authority("x", now=NOW).chain, hosts=[], now=NOW)
    with pytest.raises(InvalidTask, match="holds no private key"):
        read_brought(chain, chain, files.ca, hosts=[], now=NOW)
    with pytest.raises(InvalidTask, match="holds no certificate"):
        read_brought(key, key, files.ca, hosts=[], now=NOW)
    with pytest.raises(InvalidTask, match="cannot be read: No such file"):
        read_brought(files.folder / "none.pem", key, files.ca, hosts=[], now=NOW)
    with pytest.raises(InvalidTask, match="must hold certificates of authorities"):
        read_authorities(chain, now=NOW)
    with pytest.raises(InvalidTask, match="has expired on"):
        read_authorities(files.put(authority)[0], now=NOW + 4000 * DAY)
    with pytest.raises(InvalidTask, match="is good only from"):
        read_authorities(files.put(authority)[0], now=NOW - DAY)


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
    with pytest.raises(InvalidTask, match=r"is no (address|host)"):
        read_address(text, default_port=4322)


def test_a_host_may_be_an_address_of_ipv6() -> None:
    assert check_host("FD00::5") == "fd00::5"


def test_engines_listen_no_wider_than_their_address(tmp_path: Path) -> None:
    assert str(Address("localhost", 1).listen) == "127.0.0.1:1"
    assert str(Address("::1", 1).listen) == "[::1]:1"
    assert str(Address("10.0.0.5", 1).listen) == "0.0.0.0:1"
    assert str(Address("fd00::5", 1).listen) == "[::]:1"
