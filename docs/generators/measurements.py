"""Tables of what was measured, from the results of the last full runs that were kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.guarantees import tables as guarantees
from benchmarks.hostile import tables as hostile
from benchmarks.liars import tables as liars
from benchmarks.privacy import tables as adversary
from benchmarks.scale import tables as scale
from benchmarks.tally import tables as tally

from outvote.paper import report
from outvote.paper.study import Study
from outvote.paper.verdicts import Claim

DOCS = Path(__file__).parents[1]
BENCHMARKS = DOCS.parent / "benchmarks"


def claims() -> str:
    """The verdicts of the last full run of `outvote paper` that was taken into the documents."""
    found = _kept(DOCS / "claims.json")
    return report.markdown(Study(), [Claim(**claim) for claim in found])


def measured_tables() -> dict[str, Callable[[], str]]:
    """Each table by the name of its part: `tally-targets` is the table `targets` about Tally."""
    load = [_kept(BENCHMARKS / "load" / f"{name}.json") for name in ("load", "soak", "churn")]
    about = {
        "adversary": adversary.tables(_measures("privacy")),
        "guarantees": guarantees.tables(_measures("guarantees")),
        "liars": liars.tables(_measures("liars")),
        "scale": scale.tables(_kept(BENCHMARKS / "results.json"), _measures("scale"), *load),
        "tally": tally.tables(_measures("tally")),
    }
    found = {f"{subject}-{name}": text for subject, tables in about.items() for name, text in tables.items()}
    return {
        **{name: lambda text=text: text for name, text in found.items()},  # type: ignore[misc]
        **{name: lambda make=make: make(_measures("hostile")) for name, make in hostile.ALL.items()},  # type: ignore[misc]
    }


def _measures(subject: str) -> Any:
    return _kept(BENCHMARKS / subject / "measures.json")


def _kept(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
