"""Which addresses are this machine's only, what it may be called there, and what is refused beyond it."""

from __future__ import annotations

import pytest

from outvote.core.errors import InvalidConfiguration
from outvote.web.exposure import check_exposed, host_of, is_loopback, own_hosts
from outvote.web.refusals import is_own

HERE = ["localhost", "LOCALHOST", "127.0.0.1", "127.8.9.10", "::1", "[::1]", "::ffff:127.0.0.1", "0:0:0:0:0:0:0:1"]
BEYOND = [
    "0.0.0.0",
    "::",
    "",
    "10.0.0.5",
    "8.8.8.8",
    "fe80::1",
    "::ffff:10.0.0.5",
    "shop.example",
    "localhost.example",
    "127.1",
]


@pytest.mark.parametrize("host", HERE)
def test_addresses_of_this_machine_need_no_protection(host: str) -> None:
    assert is_loopback(host)
    check_exposed("it listens at", host, secured=False, insecure=False)


@pytest.mark.parametrize("host", BEYOND)
def test_what_others_can_reach_needs_protection_or_a_word_that_it_needs_none(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(InvalidConfiguration) as told:
        check_exposed("the API listens at", host, secured=False, insecure=False)
    assert str(told.value).startswith(f"the API listens at {host!r}, which others can reach")
    assert "kit" in str(told.value)
    assert "--insecure" in str(told.value)
    check_exposed("it listens at", host, secured=True, insecure=False)
    check_exposed("it listens at", host, secured=False, insecure=True)


def test_a_process_of_this_machine_may_be_called_so_and_by_its_own_address() -> None:
    assert own_hosts("127.0.0.1") == frozenset({"localhost", "127.0.0.1", "::1"})
    assert own_hosts("127.0.0.9") == frozenset({"localhost", "127.0.0.1", "::1", "127.0.0.9"})
    assert own_hosts("[::1]") == own_hosts("localhost") == own_hosts("127.0.0.1")
    assert own_hosts("0.0.0.0") is None


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("localhost", "localhost"),
        ("LocalHost:8600", "localhost"),
        ("127.0.0.1:1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[::1]:8600", "::1"),
        ("shop.example:80", "shop.example"),
        ("localhost:80@evil.example", ""),
        ("localhost:", ""),
        ("localhost:8²", ""),
        ("[::1", ""),
        ("[::1]evil", ""),
        ("::1", ""),
        ("", ""),
    ],
)
def test_a_host_is_what_comes_before_its_port(header: str, host: str) -> None:
    assert host_of(header) == host


@pytest.mark.parametrize(
    ("origin", "host", "scheme", "own"),
    [
        ("http://localhost:8600", "localhost:8600", "http", True),
        ("https://ops.example", "ops.example", "https", True),
        ("https://ops.example", "ops.example", "http", True),  # TLS ends ahead of it
        ("http://ops.example", "ops.example", "https", False),
        ("http://localhost:8601", "localhost:8600", "http", False),
        ("http://localhost", "localhost:8600", "http", False),
        ("http://evil.example", "localhost:8600", "http", False),
        ("http://localhost:8600.evil.example", "localhost:8600", "http", False),
        ("http://evil@localhost:8600", "localhost:8600", "http", False),
        ("file://", "", "http", False),
        ("null", "localhost:8600", "http", False),
        ("null", "", "http", False),
        ("", "", "http", False),
        ("http://[", "localhost:8600", "http", False),
    ],
)
def test_a_page_is_our_own_if_host_port_and_scheme_are(origin: str, host: str, scheme: str, own: bool) -> None:
    assert is_own(origin, host, scheme=scheme) is own
