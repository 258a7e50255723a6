"""The table of attacks, from what `make attacks` has kept of their tests."""

from __future__ import annotations

import json
from pathlib import Path

from generators.tables import table

KEPT = Path(__file__).parent.parent / "attacks.json"


def attacks() -> str:
    """One line for what a test tried; attacks that ended alike share one."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for row in json.loads(KEPT.read_text(encoding="utf-8")):
        test = row["test"].partition("[")[0]
        rows.setdefault((test, row["by"], row["happened"], row["logged"]), []).append(row["attack"])
    lines = [("; ".join(tried), by, happened, logged) for (_, by, happened, logged), tried in rows.items()]
    return table(["attack", "by", "what happened", "logged"], lines)
