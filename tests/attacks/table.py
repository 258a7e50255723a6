"""What came of each attack, as rows of a table: `make attacks` keeps them for the documents."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One attack."""

    test: str
    """The test that made it."""
    attack: str
    by: str
    happened: str
    logged: str


@dataclass
class Table:
    """All attacks of a run."""

    rows: list[Row] = field(default_factory=list)

    def write(self, path: Path) -> None:
        told = sorted((asdict(row) for row in self.rows), key=lambda row: row["test"])
        path.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
