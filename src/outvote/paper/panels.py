"""Panels: the lines of one picture, and how they are drawn and written. Light to import, so that it can start early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outvote.files import open_whole
from outvote.simulation.palette import COLOURS

if TYPE_CHECKING:
    from outvote.simulation.results import Result

LABELS = {
    "dme": "Distributed Median Elimination",
    "edme": "Extended DME, 8 instances",
    "me-local": "Median Elimination on each player",
    "me-unlimited": "Median Elimination, unlimited communication",
    "ucb-unlimited": "UCB1, unlimited communication",
    "tally": "Tally, the exact best arm",
    "tally-named": "Tally, had every message named its arm",
    "tally-private": "Tally with a privacy budget of 1",
}
MARKERS = {
    "dme": "o", "edme": "D", "me-local": "s", "me-unlimited": "^", "ucb-unlimited": "v",
    "tally": "P", "tally-named": "P", "tally-private": "X",
}  # fmt: skip
FORMATS = ("png", "svg")


@dataclass(frozen=True)
class Curve:
    """One line of a panel with its confidence band."""

    protocol: str
    x: list[float]
    mean: list[float]
    low: list[float | None]
    high: list[float | None]
    notes: list[str] = field(default_factory=list)
    """What to write beside each point."""

    @classmethod
    def at_horizon(cls, protocol: str, x: list[float], cells: Sequence[Result], notes: Sequence[str] = ()) -> Curve:
        """The regret at the end of each cell."""
        bands = [cell.regret for cell in cells]
        means, lows = [band.mean[-1] for band in bands], [band.low[-1] for band in bands]
        return cls(protocol, x, means, lows, [band.high[-1] for band in bands], list(notes))


@dataclass(frozen=True)
class Panel:
    """One picture."""

    name: str
    title: str
    x_label: str
    curves: list[Curve]
    log_x: bool = False
    log_y: bool = False
    points: bool = False
    """Points and not lines; the x axis reaches from 0 over many powers of ten."""
    mark: tuple[float, str] | None = None
    """A place on the x axis, and what is there."""


def draw(panel: Panel, folder: Path, formats: Sequence[str] = FORMATS) -> None:
    """Write one panel in every format."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": panel.name, "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(7.2, 5.0), layout="constrained")
        axes = figure.add_subplot()
        markers = len(panel.curves[0].x) < 40
        for curve in panel.curves:
            if panel.points:
                _draw_points(axes, curve)
            else:
                _draw_curve(axes, curve, markers and len(curve.x) > 2)
        if panel.mark is not None:
            axes.axvline(panel.mark[0], color="0.55", lw=0.9, ls=":", zorder=0)
            axes.annotate(
                panel.mark[1], (panel.mark[0], 0.02), xycoords=("data", "axes fraction"), xytext=(4, 0),
                textcoords="offset points", va="bottom", fontsize="small", color="0.35",
            )  # fmt: skip
        if panel.points:
            axes.set_xscale("symlog", linthresh=100)
            axes.set_xlim(-15, 2e9)
        elif panel.log_x:
            axes.set_xscale("log", base=2)
            axes.set_xticks(panel.curves[0].x, [f"{x:g}" for x in panel.curves[0].x])
            axes.minorticks_off()
        else:
            axes.set_xlim(0, max(curve.x[-1] for curve in panel.curves))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.margins(y=0.08)
        if panel.log_y:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_xlabel(panel.x_label)
        axes.set_ylabel("regret")
        axes.grid(axis="y", color="0.92", lw=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(panel.title, loc="left", fontsize="medium")
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
        for form in formats:
            with open_whole(folder / f"{panel.name}.{form}") as file:
                figure.savefig(file, format=form, dpi=130, metadata={"Date": None} if form == "svg" else None)


def _draw_points(axes: Any, curve: Curve) -> None:
    """Points with their intervals; those of one protocol are joined."""
    errors = None
    if curve.low[-1] is not None:
        below = [mean - (low or 0.0) for mean, low in zip(curve.mean, curve.low, strict=True)]
        above = [(high or 0.0) - mean for mean, high in zip(curve.mean, curve.high, strict=True)]
        errors = [below, above]
    axes.errorbar(
        curve.x, curve.mean, yerr=errors, color=COLOURS[curve.protocol], label=LABELS[curve.protocol],
        marker=MARKERS[curve.protocol], ms=7, lw=1.2, capsize=2,
        mfc="none" if curve.protocol == "tally-named" else None,
    )  # fmt: skip
    for x, y, note in zip(curve.x, curve.mean, curve.notes, strict=True):
        axes.annotate(note, (x, y), xytext=(-5, 6), textcoords="offset points", fontsize="x-small", ha="right")


def _draw_curve(axes: Any, curve: Curve, markers: bool) -> None:
    colour = COLOURS[curve.protocol]
    axes.plot(
        curve.x, curve.mean, color=colour, label=LABELS[curve.protocol], lw=1.8,
        ls="--" if len(curve.x) == 2 else "-",  # a level to compare with, not a curve
        marker=MARKERS[curve.protocol] if markers else None,
        ms=7.5 if curve.protocol == "me-local" else 4.5,  # drawn first: larger, so that it shows where others cover it
    )  # fmt: skip
    if curve.low[-1] is not None:
        axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.22, lw=0)


def write_csv(panel: Panel, folder: Path) -> None:
    """One file for each curve: x, mean, low, high."""
    for curve in panel.curves:
        rows = ["x,mean,low,high"]
        for x, mean, low, high in zip(curve.x, curve.mean, curve.low, curve.high, strict=True):
            rows.append(",".join("" if value is None else f"{value:.10g}" for value in (x, mean, low, high)))
        (folder / f"{panel.name}-{curve.protocol}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def load_matplotlib() -> None:
    """What drawing needs, ahead of the first panel: a picture that nobody sees loads fonts and back ends, too."""
    from io import BytesIO

    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    figure.add_subplot().plot([1, 2], label="N_γ")
    figure.legend(loc="outside lower center")
    for form in FORMATS:
        figure.savefig(BytesIO(), format=form)
