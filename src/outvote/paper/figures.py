"""The paper's figures from results: one function per kind of panel, one colour per algorithm everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outvote.paper.study import (
    ACTIVE_PLAYERS,
    CURVE_PLAYERS,
    FIGURE_6_PLAYERS,
    INSTANCES,
    PANELS,
    PLAYERS,
    Study,
    active_name,
    panel_name,
    shared_name,
)
from outvote.simulation.plots import COLOURS
from outvote.simulation.results import Result

LABELS = {
    "dme": "Distributed Median Elimination",
    "edme": f"Extended DME, {INSTANCES} instances",
    "me-local": "Median Elimination on each player",
    "me-unlimited": "Median Elimination, unlimited communication",
    "ucb-unlimited": "UCB1, unlimited communication",
}
MARKERS = {"dme": "o", "edme": "D", "me-local": "s", "me-unlimited": "^", "ucb-unlimited": "v"}
FORMATS = ("png", "svg")


@dataclass(frozen=True)
class Curve:
    """One line of a panel with its confidence band."""

    protocol: str
    x: list[float]
    mean: list[float]
    low: list[float | None]
    high: list[float | None]


@dataclass(frozen=True)
class Panel:
    """One picture."""

    name: str
    title: str
    x_label: str
    curves: list[Curve]
    log_x: bool = False
    mark: tuple[float, str] | None = None
    """A place on the x axis, and what is there."""


def panels(study: Study, results: Mapping[str, Result]) -> list[Panel]:
    """The panels of the chosen figures, in the paper's order."""
    found: list[Panel] = []
    for figure in study.figures:
        if figure == 6:
            found += [_over_active_players(study, results, problem) for problem in (1, 2)]
        else:
            problem, activity = PANELS[figure]
            found += [
                _over_players(study, results, figure, problem, activity),
                _over_time(results, figure, problem, activity),
            ]
    return found


def _over_players(study: Study, results: Mapping[str, Result], figure: int, problem: int, activity: str) -> Panel:
    def final(name: Callable[[int], str], protocol: str) -> Curve:
        cells = [results[name(players)] for players in PLAYERS]
        return Curve(
            protocol,
            [float(players) for players in PLAYERS],
            [cell.regret.mean[-1] for cell in cells],
            [cell.regret.low[-1] for cell in cells],
            [cell.regret.high[-1] for cell in cells],
        )

    return Panel(
        name=f"figure-{figure}a",
        title=f"Problem {problem}, {describe(activity)}: regret after {study.horizon:,} draws",
        x_label="players",
        curves=[
            final(lambda players: panel_name("me-local", problem, activity, players), "me-local"),
            final(lambda players: panel_name("dme", problem, activity, players), "dme"),
            final(lambda players: shared_name("me-unlimited", problem), "me-unlimited"),
            final(lambda players: shared_name("ucb-unlimited", problem), "ucb-unlimited"),
        ],
        log_x=True,
    )


def _over_time(results: Mapping[str, Result], figure: int, problem: int, activity: str) -> Panel:
    cells = [
        results[panel_name("me-local", problem, activity, CURVE_PLAYERS)],
        results[panel_name("dme", problem, activity, CURVE_PLAYERS)],
        results[shared_name("me-unlimited", problem)],
        results[shared_name("ucb-unlimited", problem)],
    ]
    return Panel(
        name=f"figure-{figure}b",
        title=f"Problem {problem}, {describe(activity)}, {CURVE_PLAYERS} players",
        x_label="draws of players",
        curves=[
            Curve(
                cell.protocol,
                [0.0, *map(float, cell.draws)],
                [0.0, *cell.regret.mean],
                [0.0, *cell.regret.low],
                [0.0, *cell.regret.high],
            )
            for cell in cells
        ],
    )


def _over_active_players(study: Study, results: Mapping[str, Result], problem: int) -> Panel:
    swept = [results[active_name(problem, active)] for active in ACTIVE_PLAYERS]
    xs = [float(active) for active in ACTIVE_PLAYERS]
    curves = [
        Curve(
            "dme",
            xs,
            [cell.regret.mean[-1] for cell in swept],
            [cell.regret.low[-1] for cell in swept],
            [cell.regret.high[-1] for cell in swept],
        )
    ]
    for protocol in ("me-local", "edme"):
        cell = results[panel_name(protocol, problem, "80-20", FIGURE_6_PLAYERS)]
        band = cell.regret
        curves.append(Curve(protocol, [xs[0], xs[-1]], [band.mean[-1]] * 2, [band.low[-1]] * 2, [band.high[-1]] * 2))
    return Panel(
        name=f"figure-6{'ab'[problem - 1]}",
        title=f"Problem {problem}, {FIGURE_6_PLAYERS} players, {describe('80-20')}: regret after {study.horizon:,}",
        x_label="N_γ given to DME",
        curves=curves,
        mark=(round(0.2 * FIGURE_6_PLAYERS), "true N_γ"),
    )


def describe(activity: str) -> str:
    return "uniform players" if activity == "uniform" else "20 % of players make 80 % of events"


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
            _draw_curve(axes, curve, markers and len(curve.x) > 2)
        if panel.mark is not None:
            axes.axvline(panel.mark[0], color="0.55", lw=0.9, ls=":", zorder=0)
            axes.annotate(
                panel.mark[1], (panel.mark[0], 0.02), xycoords=("data", "axes fraction"), xytext=(4, 0),
                textcoords="offset points", va="bottom", fontsize="small", color="0.35",
            )  # fmt: skip
        if panel.log_x:
            axes.set_xscale("log", base=2)
            axes.set_xticks(panel.curves[0].x, [f"{x:g}" for x in panel.curves[0].x])
            axes.minorticks_off()
        else:
            axes.set_xlim(0, max(curve.x[-1] for curve in panel.curves))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.margins(y=0.08)
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
            target = folder / f"{panel.name}.{form}"
            part = target.with_suffix(".part")
            figure.savefig(part, format=form, dpi=130, metadata={"Date": None} if form == "svg" else None)
            part.replace(target)


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
