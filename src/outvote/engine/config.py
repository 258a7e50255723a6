"""The configuration file of `nats-server`, for the embedded engine and for engines that operators run.

Pure, and the only place where settings are chosen. Acknowledged records are on disk: `sync_interval: always`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from outvote.access.kits import EngineKit

MAX_PAYLOAD: Final = 1024 * 1024
"""Largest message in bytes, the default of NATS. Records and catch-up answers are smaller."""
MAX_MEMORY: Final = 256 * 1024 * 1024
"""Bytes for streams in memory. We have none; JetStream's default is three quarters of the machine's memory."""
AUTH_TIMEOUT: Final = 5
"""Timeout of authentication and of the TLS handshake, in seconds."""


@dataclass(frozen=True)
class Cluster:
    """Settings that all nodes of a cluster share."""

    name: str
    listen: str
    routes: Sequence[str]
    """Addresses at which the nodes listen for each other."""
    password: str


def settings(
    *,
    name: str,
    listen: str,
    store: PurePath,
    accounts: PurePath,
    trust: EngineKit | None = None,
    cluster: Cluster | None = None,
    ports: PurePath | None = None,
) -> dict[str, Any]:
    """Return all settings of one engine. `accounts` is the folder for account claims, `ports` the one where the engine
    writes its ports. `trust` says who may connect (claims that it is sent later take precedence); without it anybody
    may."""
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
            # Otherwise an attacker on the path could claim that TLS is not offered.
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
    """Format settings with one on a line, for people. NATS accepts JSON values."""
    return "\n".join([*(f"# {comment}" for comment in comments), *_lines(chosen, ""), ""])


def _lines(chosen: dict[str, Any], indent: str) -> list[str]:
    lines = []
    for name, value in chosen.items():
        if isinstance(value, dict):
            lines += [f"{indent}{name} {{", *_lines(value, indent + "  "), f"{indent}}}"]
        else:
            lines.append(f"{indent}{name}: {json.dumps(value, ensure_ascii=False)}")
    return lines


def _tls(trust: EngineKit) -> dict[str, Any]:
    return {
        "cert_file": str(trust.certificate.chain),
        "key_file": str(trust.certificate.key),
        "ca_file": str(trust.ca),
        "min_version": "1.2",
    }
