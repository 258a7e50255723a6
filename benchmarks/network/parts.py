"""Everything about the network, one part after the other: it needs the extra `network`, and FastAPI to compare with."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks.network import edge_http, fan_out, log, memory
from outvote.engine.process import find_binary

PACKAGES = ("uvicorn", "uvloop", "httptools", "starlette", "fastapi", "nats-py")


def measure(*, quick: bool) -> dict[str, Any]:
    """Memory first: it needs no quiet machine, and fails at once where a command does not start."""
    return {
        "quick": quick,
        "memory": memory.measure(quick=quick),
        "http": edge_http.measure(quick=quick),
        "fan_out": fan_out.measure(quick=quick),
        "log": log.measure(quick=quick),
    }


def versions() -> dict[str, str]:
    """What a figure depends on besides us."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found | {"nats-server": find_binary().version}
