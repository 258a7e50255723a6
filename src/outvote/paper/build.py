"""`outvote paper`: run the study, then write figures, curves, claims and the report into one folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

from outvote.core.errors import InvalidConfiguration
from outvote.paper import beyond, figures, report
from outvote.paper.claims import judge_all
from outvote.paper.study import Study
from outvote.paper.verdicts import Claim
from outvote.simulation.executors import Forks, fork
from outvote.simulation.plots import Panel, draw
from outvote.simulation.settings import Settings
from outvote.simulation.sweep import sweep

FORMATS = (".png", ".svg")
CELLS = "cells"
"""The folder of finished cells, from which an interrupted run goes on."""


def prepare(folder: Path, *, resume: bool) -> None:
    """Make the folder ready for writing, or say at once why it cannot be."""
    try:
        store = folder / CELLS
        store.mkdir(parents=True, exist_ok=True)
        if not resume:
            for cell in store.glob("*.json"):
                cell.unlink()
        probe = folder / ".writable"
        probe.write_text("", encoding="utf-8")
        probe.unlink()
    except OSError as error:
        raise InvalidConfiguration(
            f"the folder {str(folder)!r} cannot be written: {error.strerror}; name another"
        ) from None


def all_cells(study: Study) -> dict[str, Settings]:
    """The cells of the paper's figures, of its claims, and of what goes beyond."""
    return beyond.cells(study) | study.cells()


def build(
    study: Study,
    folder: Path,
    *,
    executor: Executor | Forks | None,
    drawers: int = 1,
    progress: Callable[[float], None] | None = None,
) -> list[Claim]:
    """Run what is missing and write everything; returns the claims (none where only some figures were chosen).

    `executor` runs the cells, without one they run here. So many processes draw the panels.
    """
    cells = all_cells(study)
    results = dict(
        zip(cells, sweep(list(cells.values()), executor=executor, store=folder / CELLS, progress=progress), strict=True)
    )
    panels = figures.panels(study, results)
    panels += beyond.panels(panels, study.figures, results)
    for panel in panels:
        write_csv(panel, folder)
    files = [[folder / f"{panel.name}{form}" for form in FORMATS] for panel in panels]
    with fork(drawers) as pool:
        for _ in pool.map(draw, panels, *zip(*files, strict=True)):
            pass
    claims = judge_all(study, results) if study.whole else []
    if claims:
        text = json.dumps([claim.to_json() for claim in claims], ensure_ascii=False, indent=1, allow_nan=False)
        (folder / "claims.json").write_text(text + "\n", encoding="utf-8")
    report.write(folder / "report.html", study, panels, claims, folder)
    return claims


def write_csv(panel: Panel, folder: Path) -> None:
    """One file for each curve: x, mean, low, high."""
    for curve in panel.curves:
        rows = ["x,mean,low,high"]
        for x, mean, low, high in zip(curve.x, curve.mean, curve.low, curve.high, strict=True):
            rows.append(",".join("" if value is None else f"{value:.10g}" for value in (x, mean, low, high)))
        (folder / f"{panel.name}-{curve.protocol}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
