"""What a verdict is, and the form in which claims are judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from outvote.paper.statistics import Estimate
from outvote.simulation.results import Result

HOLDS = "holds"
IN_PART = "holds in part"
DOES_NOT = "does not hold"

Results = Mapping[str, Result]
Verdict = tuple[Estimate, str, str]
"""What was measured, the verdict, and why."""


@dataclass(frozen=True)
class Claim:
    """One statement of the paper and its verdict: an object of claims.json."""

    id: str
    place: str
    statement: str
    measured: float
    low: float
    high: float
    verdict: str
    why: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
