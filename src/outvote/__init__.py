"""Outvote finds the best variant across a fleet of edge sites without one user event leaving its site.

Light to import: the protocols need the standard library only. `outvote.simulate` loads what it needs when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outvote.core import protocols
from outvote.core.errors import OutvoteError
from outvote.core.ledger import Ledger
from outvote.core.messages import Elimination, Tally, Vote
from outvote.core.task import Task

if TYPE_CHECKING:
    from outvote.simulation import Result, simulate

__version__ = "0.1.0"
__all__ = [
    "Elimination",
    "Ledger",
    "OutvoteError",
    "Result",
    "Tally",
    "Task",
    "Vote",
    "__version__",
    "protocols",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name in ("simulate", "Result"):
        from outvote import simulation

        return getattr(simulation, name)
    raise AttributeError(f"module 'outvote' has no attribute {name!r}")
