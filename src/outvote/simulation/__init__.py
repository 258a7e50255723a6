"""Simulated fleets: who is active, what they earn, and what the protocols make of it.

Light to import: the engines are loaded when `simulate` or `Result` is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outvote.simulation.results import Result
    from outvote.simulation.run import simulate

__all__ = ["Result", "simulate"]


def __getattr__(name: str) -> Any:
    if name == "simulate":
        from outvote.simulation.run import simulate

        return simulate
    if name == "Result":
        from outvote.simulation.results import Result

        return Result
    raise AttributeError(f"module 'outvote.simulation' has no attribute {name!r}")
