"""Where an engine or a server is: a host and a port, as people write them. Pure."""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from outvote.core.errors import InvalidConfiguration
from outvote.web.exposure import is_loopback

_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST: Final = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def listen(self) -> Address:
        """What to listen on: this machine only where that is the address, else all of its addresses."""
        if is_loopback(self.host):
            return Address("127.0.0.1" if self.host == "localhost" else self.host, self.port)
        return Address("::" if ":" in self.host else "0.0.0.0", self.port)


def read_address(text: str, *, default_port: int, field: str = "address") -> Address:
    """`HOST`, `HOST:PORT`, `[IPv6]` or `[IPv6]:PORT`. `field` is the name of the value in an error."""
    match = re.fullmatch(r"(\[[^\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?", text)
    port = int(match[2] or default_port) if match else 0
    if match and 0 < port <= 65535:
        if not match[1].startswith("["):
            return Address(check_host(match[1], field), port)
        with suppress(ValueError):
            return Address(str(ipaddress.IPv6Address(match[1][1:-1])), port)
    allowed = "HOST or HOST:PORT, like 10.0.0.5:4322, engine.example.org or [fd00::5]:4322"
    raise InvalidConfiguration(f"must be {allowed}, got {text!r}", field=field)


def check_host(text: str, field: str = "host") -> str:
    """A name of the DNS or an IP address, such as a certificate can be made for."""
    with suppress(ValueError):
        return str(ipaddress.ip_address(text))
    if not _HOST.fullmatch(text) or re.fullmatch(r"[0-9.]+", text):
        raise InvalidConfiguration(
            f"must be a name like engine.example.org or an address like 10.0.0.5, got {text!r}; write an IPv6 address "
            "in brackets where a port may follow",
            field=field,
        )
    return text.lower()
