"""Who can reach an address: this machine only, or others too. Pure: no name is resolved.

One rule: nothing speaks in plaintext beyond this machine unless somebody has said that it may.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from outvote.core.errors import InvalidTask

LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""How programs and browsers of this machine call it."""
_HOST: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^][:@]+))(?::[0-9]+)?")


def is_loopback(host: str) -> bool:
    """Whether only this machine can be there. Of names only `localhost` is known to be."""
    host = host.strip("[]").lower()
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def own_hosts(host: str) -> frozenset[str] | None:
    """What requests may call a process that listens at an address of this machine; None where others can reach it.

    A page whose name is made to lead here (DNS rebinding) calls it by that name, and is found out.
    """
    return LOCAL | {host.strip("[]").lower()} if is_loopback(host) else None


def host_of(header: str) -> str:
    """The host of a `Host` header, without its port and in small letters; empty if it is none."""
    match = _HOST.fullmatch(header.lower())
    return "" if match is None else match[1] or match[2]


def check_exposed(what: str, host: str, *, secured: bool, insecure: bool) -> None:
    """Refuse plaintext, or an open door, beyond this machine; `what` begins a sentence: 'the API listens at'."""
    if secured or insecure or is_loopback(host):
        return
    raise InvalidTask(
        f"{what} {host!r}, which others can reach, and nothing protects it: anybody there could read it or take part. "
        "Give a kit made by `outvote fleet`, or a certificate and tokens; or add --insecure, if all of that network is "
        "trusted"
    )
