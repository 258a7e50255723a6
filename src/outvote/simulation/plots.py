"""The picture of one simulation: regret with its confidence band, and when arms were eliminated."""

from __future__ import annotations

from pathlib import Path

from outvote.core.errors import InvalidTask, one_of
from outvote.files import open_whole
from outvote.simulation.palette import COLOURS
from outvote.simulation.results import Result

FORMATS = (".png", ".svg", ".pdf")


def check_format(path: str) -> None:
    if Path(path).suffix not in FORMATS:
        raise InvalidTask(f"a plot's name must end in one of {one_of(FORMATS)}, got {path!r}")


def draw_regret(result: Result, path: str) -> None:
    """Write the plot; the file appears whole or not at all."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    colour = COLOURS[result.protocol]
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    draws = [0, *result.draws]
    axes.plot(
        draws, [0.0, *result.regret.mean], color=colour, label=f"{result.protocol}, mean of {result.trials} trials"
    )
    low, high = result.regret.low, result.regret.high
    if low[0] is not None:
        axes.fill_between(draws, [0.0, *low], [0.0, *high], color=colour, alpha=0.25, lw=0, label="95 % confidence")  # type: ignore[arg-type]
    axes.set_xlim(0, result.horizon)
    axes.set_ylim(bottom=0)
    _mark_eliminations(axes, result)
    axes.set_xlabel("draws of players")
    axes.set_ylabel("regret")
    thousands = FuncFormatter(lambda value, _: f"{value:,.0f}")
    axes.xaxis.set_major_formatter(thousands)
    axes.yaxis.set_major_formatter(thousands)
    axes.set_title(
        f"{result.protocol}: {len(result.arms)} arms, {result.players} players ({result.activity}), "
        f"ε = {result.epsilon:g}, δ = {result.delta:g}",
        loc="left",
        fontsize="medium",
        pad=24,
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", frameon=False)
    with open_whole(path) as file:
        figure.savefig(file, format=Path(path).suffix[1:], dpi=150)


def _mark_eliminations(axes: object, result: Result) -> None:
    """A line where an arm falls on average; arms that fall close together share one label above the axes."""
    marks = sorted((each.mean, result.arms[each.arm]) for each in result.eliminations if each.mean is not None)
    groups: list[tuple[float, list[str]]] = []
    for draw, arm in marks:
        if groups and draw - groups[-1][0] < 0.04 * result.horizon:
            groups[-1][1].append(arm)
        else:
            groups.append((draw, [arm]))
    for draw, arms in groups:
        axes.axvline(draw, color="0.6", lw=0.8, ls="--", zorder=0)  # type: ignore[attr-defined]
        label = ", ".join(arms) if len(arms) <= 3 else f"{len(arms)} arms"
        axes.annotate(  # type: ignore[attr-defined]
            f"out: {label}",
            (draw, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize="small",
            color="0.35",
        )
