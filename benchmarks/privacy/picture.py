"""Draws docs/figures/adversary.png: the advantage on one event's reward, by the size of its tally and by the budget.

    .venv/bin/python benchmarks/privacy/picture.py

Lines are computed, points were played and are taken from `measures.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.privacy import inference, posterior
from benchmarks.privacy.measure import RESULTS
from benchmarks.privacy.tables import rewards
from outvote.simulation.plots import COLOURS

FIGURE = Path(__file__).parents[2] / "docs" / "figures" / "adversary.png"
LINES = {0.1: COLOURS["dme"], 0.3: COLOURS["tally"], 0.5: COLOURS["edme"]}
"""By mean."""
SHADES = {3: COLOURS["tally"], 23: COLOURS["tally-private"], 127: COLOURS["me-unlimited"]}
"""By size."""


def draw() -> None:
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    by_size(left)
    by_budget(right)
    for axes, corner in ((left, (1.0, 0.97)), (right, (0.0, 0.97))):
        axes.set_ylim(0, 1.03)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(
            frameon=False, fontsize="small", loc="upper right" if corner[0] else "upper left", bbox_to_anchor=corner
        )
    left.set_ylabel("advantage on one event's reward")
    figure.savefig(FIGURE, dpi=130)


def by_size(axes: Axes) -> None:
    sizes = [*range(2, 32), *range(32, 128, 5), 127]
    axes.axhline(1, color="0.3", lw=1.2, label="others known, no budget: everything")
    axes.axhline(inference.budget_advantage(1.0), color="0.3", lw=1.2, ls="--", label="others known, budget 1")
    for mean, colour in LINES.items():
        exact = [posterior.others_unknown(size, mean).advantage for size in sizes]
        noisy = [posterior.others_unknown(size, mean, 1.0).advantage for size in sizes]
        axes.plot(sizes, exact, color=colour, label=f"others unknown, mean {mean:g}")
        axes.plot(sizes, noisy, color=colour, ls="--")
    axes.set_xscale("log")
    axes.set_xticks([3, 7, 15, 31, 63, 127], ["3", "7", "15", "31", "63", "127"])
    axes.minorticks_off()
    axes.set_xlabel("events in the tally (dashed: with a budget of 1)")


def by_budget(axes: Axes) -> None:
    budgets = np.geomspace(0.03, 20, 60)
    bound = [inference.budget_advantage(float(budget)) for budget in budgets]
    axes.plot(budgets, bound, color="0.3", lw=1.2, label="others known, and the bound")
    for size, colour in SHADES.items():
        found = [posterior.others_unknown(size, 0.3, float(budget)).advantage for budget in budgets]
        axes.plot(budgets, found, color=colour, label=f"others unknown, tally of {size}, mean .3")
    played = [each for each in rewards(json.loads(RESULTS.read_text(encoding="utf-8"))) if each.budget is not None]
    label: str | None = "played, with 95 % intervals"
    for each in played:
        for right in (each.worst_played, each.unknown_played):
            if right is not None and each.budget is not None:
                point, low, high = (2 * right[key] - 1 for key in ("share", "low", "high"))
                axes.errorbar(
                    [each.budget], [point], yerr=[[point - low], [high - point]], color="black", fmt="o", ms=4,
                    capsize=3, lw=1, label=label,
                )  # fmt: skip
                label = None
    axes.set_xscale("log")
    axes.set_xticks([0.1, 1, 5, 20], [".1", "1", "5", "20"])
    axes.minorticks_off()
    axes.set_xlabel("privacy budget b")


if __name__ == "__main__":
    draw()
