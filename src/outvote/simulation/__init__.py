"""Simulated fleets: who is active, what they earn, and what the protocols make of it.

Light to import: what a name needs is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outvote.simulation.environments import Environment
    from outvote.simulation.registry import register_baseline, register_protocol
    from outvote.simulation.results import Result
    from outvote.simulation.run import simulate

__all__ = ["Environment", "Result", "register_baseline", "register_protocol", "simulate"]
ROOMS = {
    "Environment": "environments",
    "Result": "results",
    "register_baseline": "registry",
    "register_protocol": "registry",
    "simulate": "run",
}


def __getattr__(name: str) -> Any:
    if name not in ROOMS:
        raise AttributeError(f"module 'outvote.simulation' has no attribute {name!r}")
    return getattr(import_module(f"outvote.simulation.{ROOMS[name]}"), name)
