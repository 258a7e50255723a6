"""Draws the simulated day from measures.json into docs/figures/scale-day.png: `python benchmarks/scale/figure.py`"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

ROOT = Path(__file__).parents[2]
MEASURES = Path(__file__).with_name("measures.json")
SPEED = ROOT / "benchmarks" / "results.json"
FIGURE = ROOT / "docs" / "figures" / "scale-day.png"
STRETCH = 10
"""Minutes over which news is averaged: there is a few a minute."""
UP, ALL, OWN, LIMIT = "#D55E00", "#0072B2", "#009E73", "#000000"


def main() -> int:
    day = json.loads(MEASURES.read_text(encoding="utf-8"))["day"]
    network = json.loads(SPEED.read_text(encoding="utf-8"))["network"]
    part = FIGURE.with_name(FIGURE.name + ".part")
    draw(day, network).savefig(part, format="png", dpi=150)
    part.replace(FIGURE)
    return 0


def draw(day: dict[str, Any], network: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(8, 7), layout="constrained")
    up, down = figure.subplots(2, 1, sharex=True)
    hours = [minute / 60 for minute in range(len(day["minutes"]["up"]))]
    up.plot(hours, day["minutes"]["up_peak"], color=UP, lw=0.6, alpha=0.5, label="the busiest second of each minute")
    up.plot(hours, day["minutes"]["up"], color=UP, label="mean of each minute")
    stored = network["log"]["stored_per_s"]
    up.axhline(stored, color=LIMIT, ls="--", lw=1, label="what one log stores, measured")
    up.set_ylabel("messages up, a second")
    up.set_ylim(0, stored * 1.35)
    up.set_title(
        f"A day of {day['edges']:,} edges and {day['tasks']:,} tasks, simulated", loc="left", fontsize="medium"
    )
    largest = max(network["fan_out"]["fleets"], key=lambda each: int(each["edges"]))
    node = largest["edges"] / (largest["bare"]["last_ms"] / 1e3)
    stretches = [(minute + STRETCH / 2) / 60 for minute in range(0, len(hours), STRETCH)]
    everybody = [each * day["edges"] for each in means(day["minutes"]["news"])]
    own = means(day["minutes"]["deliveries"])
    down.plot(stretches, everybody, color=ALL, label="every edge hears of every task, as now")
    down.plot(stretches, own, color=OWN, label="each edge hears of its own tasks")
    down.axhline(node, color=LIMIT, ls="--", lw=1, label="what one engine delivered here, measured")
    down.set_yscale("log")
    down.set_ylim(100, 1e7)
    down.set_ylabel("deliveries of news, a second")
    down.set_xlabel("hour of the day")
    down.set_xlim(0, 24)
    down.set_xticks(range(0, 25, 3))
    for axes in (up, down):
        tidy(axes)
    return figure


def means(minutes: list[float]) -> list[float]:
    return [sum(minutes[start : start + STRETCH]) / STRETCH for start in range(0, len(minutes), STRETCH)]


def tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.legend(loc="upper left", frameon=False, fontsize="small", ncols=2)


if __name__ == "__main__":
    sys.exit(main())
