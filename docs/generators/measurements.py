"""Tables of what was measured, from the results of the last full runs that were kept."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.guarantees import tables as guarantees
from benchmarks.hostile import tables as hostile
from benchmarks.liars import tables as liars
from benchmarks.privacy import tables as adversary
from benchmarks.rewards import tables as rewards
from benchmarks.scale import tables as scale
from benchmarks.tally import tables as tally
from outvote.paper.report import interval
from outvote.paper.study import Study
from outvote.paper.verdicts import DOES_NOT, HOLDS, IN_PART, Claim

DOCS = Path(__file__).parents[1]
BENCHMARKS = DOCS.parent / "benchmarks"


def claims() -> str:
    """The verdicts of the last full run of `outvote paper` that was taken into the documents."""
    found = [Claim(**claim) for claim in _kept(DOCS / "claims.json")]
    study, counts = Study(), Counter(claim.verdict for claim in found)
    lines = [
        f"{study.trials} trials of {study.horizon:,} draws, seed {study.seed}: {counts[HOLDS]} claims hold, "
        f"{counts[IN_PART]} hold in part, {counts[DOES_NOT]} do not hold.",
        "",
        "| place | statement | measured (95 % interval) | verdict | why |",
        "|---|---|---|---|---|",
    ]
    for claim in found:
        cells = (claim.place, claim.statement, interval(claim), f"**{claim.verdict}**", claim.why)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


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
        **{name: lambda make=make: make(_measures("rewards")) for name, make in rewards.ALL.items()},  # type: ignore[misc]
    }


def _measures(subject: str) -> Any:
    return _kept(BENCHMARKS / subject / "measures.json")


def _kept(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
