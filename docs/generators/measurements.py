"""Tables of what was measured, from the results of the last full runs that were kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.guarantees import tables as guarantees
from benchmarks.hostile import tables as hostile
from benchmarks.liars import tables as liars
from benchmarks.scale import tables as scale
from benchmarks.tally import page as ideas
from benchmarks.tally import tables as measured

from outvote.paper import report
from outvote.paper.study import Study
from outvote.paper.verdicts import Claim

DOCS = Path(__file__).parents[1]


def claims() -> str:
    """The verdicts of the last full run of `outvote paper` that was taken into the documents."""
    found = json.loads((DOCS / "claims.json").read_text(encoding="utf-8"))
    return report.markdown(Study(), [Claim(**claim) for claim in found])


def tally_tables() -> dict[str, Callable[[], str]]:
    """The tables of what was measured about Tally."""
    found = {f"tally-{name}": text for name, text in measured.tables(_kept("measures.json")).items()}
    found |= {f"tally-idea-{name}": text for name, text in ideas.tables(_kept("ideas.json")).items()}
    return {name: lambda text=text: text for name, text in found.items()}  # type: ignore[misc]


def guarantee_tables() -> dict[str, Callable[[], str]]:
    """What is proved, computed and measured about the rules for η."""
    found = guarantees.tables(_kept("measures.json", of="guarantees"))
    return {f"guarantees-{name}": lambda text=text: text for name, text in found.items()}  # type: ignore[misc]


def scale_tables() -> dict[str, Callable[[], str]]:
    """What one machine bore, and what that means for a fleet of a million."""
    speed = json.loads((DOCS.parent / "benchmarks" / "results.json").read_text(encoding="utf-8"))
    kept = [_kept(f"{name}.json", of="load") for name in ("load", "soak", "churn")]
    found = scale.tables(speed, _kept("measures.json", of="scale"), *kept)
    return {f"scale-{name}": lambda text=text: text for name, text in found.items()}  # type: ignore[misc]


def hostile_tables() -> dict[str, Callable[[], str]]:
    """What hostile clients cost a listener."""
    found = _kept("measures.json", of="hostile")
    return {name: lambda make=make: make(found) for name, make in hostile.ALL.items()}  # type: ignore[misc]


def liar_tables() -> dict[str, Callable[[], str]]:
    """What sites that lie can do, and what it costs to tolerate them."""
    found = liars.tables(_kept("measures.json", of="liars"))
    return {f"liars-{name}": lambda text=text: text for name, text in found.items()}  # type: ignore[misc]


def _kept(name: str, of: str = "tally") -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((DOCS.parent / "benchmarks" / of / name).read_text(encoding="utf-8"))
    return kept
