"""Decides whether an address is reachable from other machines. Pure: no name is resolved.

One rule: no plaintext beyond this machine unless the operator has allowed it.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from outvote.core.errors import InvalidConfiguration

LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""The usual host names of this machine for itself."""
_HOST: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^][:@]+))(?::[0-9]+)?")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host. `localhost` is the only name known to be local."""
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
    """Return the host names to accept on a loopback address; None if other machines can reach it.

    This stops DNS rebinding: a hostile page whose name resolves to this machine sends that name as `Host`.
    """
    return LOCAL | {host.strip("[]").lower()} if is_loopback(host) else None


def host_of(header: str) -> str:
    """Return the host of a `Host` header, in lower case and without its port; empty if the header is invalid."""
    match = _HOST.fullmatch(header.lower())
    return "" if match is None else match[1] or match[2]


def check_exposed(what: str, host: str, *, secured: bool, insecure: bool) -> None:
    """Refuse an unprotected address beyond this machine. `what` begins the message: 'the API listens at'."""
    if secured or insecure or is_loopback(host):
        return
    raise InvalidConfiguration(
        f"{what} {host!r}, which others can reach, and nothing protects it: anybody there could read it or take part. "
        "Give a kit made by `outvote fleet`, or a certificate and tokens; or add --insecure, if all of that network is "
        "trusted"
    )
