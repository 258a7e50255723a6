"""Pictures of regret: panels with curves and their confidence bands, and how they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outvote.core.errors import InvalidSettings, one_of
from outvote.files import open_whole

if TYPE_CHECKING:
    from outvote.simulation.results import Result

COLOURS = {
    "dme": "#0072B2",
    "edme": "#009E73",
    "me-local": "#E69F00",
    "me-unlimited": "#CC79A7",
    "ucb-unlimited": "#000000",
    "tally": "#D55E00",
    "tally-named": "#F0A878",
    "tally-private": "#56B4E9",
}
"""One colour for one protocol, in every picture: Okabe and Ito's palette, which the colour-blind can tell apart."""
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
OTHER = ("#8B5A2B", "h")
"""Colour and marker of what users registered."""
FORMATS = (".png", ".svg", ".pdf")


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
    label: str = ""
    """What the legend says; empty for the protocol's label in the paper's figures."""

    @classmethod
    def at_horizon(cls, protocol: str, x: list[float], cells: Sequence[Result], notes: Sequence[str] = ()) -> Curve:
        """The regret at the end of each cell."""
        bands = [cell.regret for cell in cells]
        means, lows = [band.mean[-1] for band in bands], [band.low[-1] for band in bands]
        return cls(protocol, x, means, lows, [band.high[-1] for band in bands], list(notes))

    @classmethod
    def over_time(cls, cell: Result) -> Curve:
        """The regret of one cell from the first draw to the last."""
        band = cell.regret
        return cls(cell.protocol, [0.0, *cell.draws], [0.0, *band.mean], [0.0, *band.low], [0.0, *band.high])


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
    marks: Sequence[tuple[float, str]] = ()
    """Places on the x axis, and what is there."""


def check_format(path: str) -> None:
    """Refuse a file name from which no format can be read."""
    if Path(path).suffix not in FORMATS:
        raise InvalidSettings(f"must end in one of {one_of(FORMATS)}, got {path!r}", field="plot", code="choice")


def regret_panel(result: Result) -> Panel:
    """The picture of one simulation: its regret, and when arms were eliminated."""
    return Panel(
        name="regret",
        title=f"{len(result.arms)} arms, {result.players} players ({result.activity}), ε = {result.epsilon:g}, "
        f"δ = {result.delta:g}; {result.trials} trials",
        x_label="draws of players",
        curves=[replace(Curve.over_time(result), label=result.protocol)],
        marks=_eliminations(result),
    )


def _eliminations(result: Result) -> list[tuple[float, str]]:
    """Where arms fall on average; arms that fall close together share a mark."""
    groups: list[tuple[float, list[str]]] = []
    fallen = [(each.mean, result.arms[each.arm]) for each in result.eliminations if each.mean is not None]
    for draw, arm in sorted(fallen):
        if groups and draw - groups[-1][0] < 0.04 * result.horizon:
            groups[-1][1].append(arm)
        else:
            groups.append((draw, [arm]))
    return [(draw, f"out: {', '.join(arms) if len(arms) <= 3 else f'{len(arms)} arms'}") for draw, arms in groups]


def draw(panel: Panel, *paths: Path) -> None:
    """Write one panel to files, in the formats of their names. A file appears whole or not at all."""
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
        for place, text in panel.marks:
            axes.axvline(place, color="0.55", lw=0.9, ls=":", zorder=0)
            axes.annotate(
                text, (place, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 3),
                textcoords="offset points", ha="center", va="bottom", fontsize="small", color="0.35",
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
        axes.set_title(panel.title, loc="left", fontsize="medium", pad=20 if panel.marks else None)
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
        for path in paths:
            form = path.suffix[1:]
            with open_whole(path) as file:
                figure.savefig(file, format=form, dpi=130, metadata={"Date": None} if form == "svg" else None)


def _draw_points(axes: Any, curve: Curve) -> None:
    """Points with their intervals; those of one protocol are joined."""
    errors = None
    if curve.low[-1] is not None:
        below = [mean - (low or 0.0) for mean, low in zip(curve.mean, curve.low, strict=True)]
        above = [(high or 0.0) - mean for mean, high in zip(curve.mean, curve.high, strict=True)]
        errors = [below, above]
    axes.errorbar(
        curve.x, curve.mean, yerr=errors, color=COLOURS[curve.protocol], label=curve.label or LABELS[curve.protocol],
        marker=MARKERS[curve.protocol], ms=7, lw=1.2, capsize=2,
        mfc="none" if curve.protocol == "tally-named" else None,
    )  # fmt: skip
    for x, y, note in zip(curve.x, curve.mean, curve.notes, strict=True):
        axes.annotate(note, (x, y), xytext=(-5, 6), textcoords="offset points", fontsize="x-small", ha="right")


def _draw_curve(axes: Any, curve: Curve, markers: bool) -> None:
    colour = COLOURS.get(curve.protocol, OTHER[0])
    axes.plot(
        curve.x, curve.mean, color=colour, label=curve.label or LABELS[curve.protocol], lw=1.8,
        ls="--" if len(curve.x) == 2 else "-",  # a level to compare with, not a curve
        marker=MARKERS.get(curve.protocol, OTHER[1]) if markers else None,
        ms=7.5 if curve.protocol == "me-local" else 4.5,  # drawn first: larger, so that it shows where others cover it
    )  # fmt: skip
    if curve.low[-1] is not None:
        axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.22, lw=0)
