"""The picture of a plan: how many events each way needs, against the bits it sends."""

from __future__ import annotations

from pathlib import Path

from outvote.files import open_whole
from outvote.planner.plan import Option, Plan
from outvote.simulation.plots import COLOURS


def draw(plan: Plan, path: str) -> None:
    """Write the plot; the file appears whole or not at all."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    shown = [option for option in plan.options if option.estimate is not None]
    for option in shown:
        _point(axes, option)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(0.15)
    axes.set_xlabel("bits over the network, up and down")
    axes.set_ylabel("events of the whole fleet (5 % to 95 % of trials)")
    question = plan.question
    axes.set_title(
        f"{question.arms} arms, {question.players} sites ({question.activity.name}), difference "
        f"{question.difference:.3g}, δ = {question.delta:g}",
        loc="left",
        fontsize="medium",
    )
    axes.legend(frameon=False, fontsize=8, loc="best")
    axes.grid(which="major", color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    with open_whole(path) as file:
        figure.savefig(file, format=Path(path).suffix[1:], dpi=150)


def _point(axes: object, option: Option) -> None:
    found = option.estimate
    assert found is not None
    bits = found.bits_up + found.bits_down
    private = option.task.privacy_budget is not None
    axes.errorbar(  # type: ignore[attr-defined]
        [bits],
        [found.draws],
        yerr=[[max(found.draws - found.low, 0)], [max(found.high - found.draws, 0)]],
        fmt="D" if private or option.task.quorum == "certified" else "o",
        ms=10 if option.recommended else 7,
        mec="black" if option.recommended else "none",
        color=COLOURS[option.task.protocol],
        capsize=3,
        alpha=0.9,
        label=option.name + (" (recommended)" if option.recommended else ""),
    )
