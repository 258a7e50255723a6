"""The tables of what an adversary infers, from the exact posteriors and the games that were kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from benchmarks.privacy import tables

KEPT = Path(__file__).parents[2] / "benchmarks" / "privacy" / "measures.json"


def adversary_tables() -> dict[str, Callable[[], str]]:
    """Each table by the name of its part."""
    found = tables.tables(json.loads(KEPT.read_text(encoding="utf-8")))
    return {f"adversary-{name}": lambda text=text: text for name, text in found.items()}  # type: ignore[misc]
