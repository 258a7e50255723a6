"""The configuration of an engine, as text that `nats-server` reads: of the one that we start, and of one of your own.

Pure, and the only place where settings are chosen. What is acknowledged is on the disk: `sync_interval: always`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

MAX_PAYLOAD: Final = 1024 * 1024
"""Bytes of the largest message, as NATS has it: records are far smaller, an answer to an edge that catches up less."""
MAX_MEMORY: Final = 256 * 1024 * 1024
"""Bytes for streams in memory, of which we have none; JetStream would take three quarters of the machine's."""
AUTH_TIMEOUT: Final = 5
"""Seconds in which a client must have said who it is; so long a handshake may take, too."""


@dataclass(frozen=True)
class Trust:
    """Who is let in, and how the engine shows who it is."""

    operator: str
    """Claims of the operator."""
    system_account: str
    accounts: dict[str, str]
    """Claims by public key: what the engine begins with. Newer ones that it was told later stay."""
    certificate: PurePath
    key: PurePath
    ca: PurePath


@dataclass(frozen=True)
class Cluster:
    """What the nodes of a cluster share."""

    name: str
    listen: str
    routes: Sequence[str]
    """Where all nodes listen for each other."""
    password: str


def settings(
    *,
    name: str,
    listen: str,
    store: PurePath,
    accounts: PurePath,
    trust: Trust | None = None,
    cluster: Cluster | None = None,
    ports: PurePath | None = None,
) -> dict[str, Any]:
    """All settings of one engine. `accounts` is where it keeps claims that it was told, `ports` where it writes which
    ports it has taken. Without `trust` everybody is let in."""
    chosen: dict[str, Any] = {"server_name": name, "listen": listen}
    if ports is not None:
        chosen["ports_file_dir"] = str(ports)
    chosen |= {
        "max_payload": MAX_PAYLOAD,
        "logtime_utc": True,
        "jetstream": {"store_dir": str(store), "sync_interval": "always", "max_memory_store": MAX_MEMORY},
    }
    if trust is not None:
        chosen |= {
            "operator": trust.operator,
            "system_account": trust.system_account,
            "resolver": {"type": "full", "dir": str(accounts), "allow_delete": False, "interval": "1s"},
            "resolver_preload": trust.accounts,
            "authorization": {"timeout": AUTH_TIMEOUT},
            # Else who is in between could say that there is no TLS here.
            "tls": _tls(trust) | {"handshake_first": True, "timeout": AUTH_TIMEOUT},
        }
    if cluster is not None:
        chosen["cluster"] = {
            "name": cluster.name,
            "listen": cluster.listen,
            "authorization": {"user": "engine", "password": cluster.password, "timeout": AUTH_TIMEOUT},
            "routes": [f"nats-route://engine:{cluster.password}@{route}" for route in cluster.routes],
            "no_advertise": True,  # clients know the addresses from their kits
        }
        if trust is not None:
            chosen["cluster"]["tls"] = _tls(trust) | {"verify": True, "timeout": AUTH_TIMEOUT}
    return chosen


def text(chosen: dict[str, Any], *comments: str) -> str:
    """One setting on a line, for people. NATS reads JSON's values."""
    return "\n".join([*(f"# {each}" for each in comments), *_lines(chosen, ""), ""])


def _lines(chosen: dict[str, Any], indent: str) -> list[str]:
    lines = []
    for name, value in chosen.items():
        if isinstance(value, dict):
            lines += [f"{indent}{name} {{", *_lines(value, indent + "  "), f"{indent}}}"]
        else:
            lines.append(f"{indent}{name}: {json.dumps(value, ensure_ascii=False)}")
    return lines


def _tls(trust: Trust) -> dict[str, Any]:
    return {
        "cert_file": str(trust.certificate),
        "key_file": str(trust.key),
        "ca_file": str(trust.ca),
        "min_version": "1.2",
    }
