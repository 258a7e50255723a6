"""Past the paper: its figures once more with Tally in them, and what regret costs in bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from outvote.paper.figures import over_players
from outvote.paper.study import CURVE_PLAYERS, FIGURE_6_PLAYERS, PANELS, Study, panel_name
from outvote.simulation.plots import Curve, Panel
from outvote.simulation.results import Result
from outvote.simulation.settings import Settings

FLOORS = (3, 7, 15, 31)
"""Tally's anonymity floors on the frontier; the first is the default."""
BUDGET = 1.0
"""The privacy budget on the frontier."""


def cells(study: Study) -> dict[str, Settings]:
    """What the second set of figures needs besides the cells of the first."""
    found: dict[str, Settings] = {}
    for figure in study.figures:
        if figure == 6:
            for problem in (1, 2):
                options: dict[str, Any] = {"problem": problem, "activity": "80-20", "players": FIGURE_6_PLAYERS}
                found[panel_name("tally", problem, "80-20", FIGURE_6_PLAYERS)] = study.cell(protocol="tally", **options)
            continue
        problem, activity = PANELS[figure]
        found |= study.over_players("tally", problem, activity)
        setting: dict[str, Any] = {"problem": problem, "activity": activity, "players": CURVE_PLAYERS}
        found[panel_name("edme", problem, activity, CURVE_PLAYERS)] = study.cell(
            protocol="edme", instances=8, **setting
        )
        for floor in FLOORS[1:]:
            found[floor_name(problem, activity, floor)] = study.cell(protocol="tally", floor=floor, **setting)
        found[private_name(problem, activity)] = study.cell(protocol="tally", privacy_budget=BUDGET, **setting)
    return found


def floor_name(problem: int, activity: str, floor: int) -> str:
    default = panel_name("tally", problem, activity, CURVE_PLAYERS)
    return default if floor == FLOORS[0] else f"{default}, floor {floor}"


def private_name(problem: int, activity: str) -> str:
    return f"{panel_name('tally', problem, activity, CURVE_PLAYERS)}, budget {BUDGET:g}"


def panels(papers: list[Panel], figures: tuple[int, ...], results: Mapping[str, Result]) -> list[Panel]:
    """The paper's panels again with Tally, then the frontiers."""
    again = [_with_tally(panel, results) for panel in papers]
    return again + [_frontier(figure, results) for figure in figures if figure != 6]


def _with_tally(panel: Panel, results: Mapping[str, Result]) -> Panel:
    figure, part = int(panel.name[-2]), panel.name[-1]
    if figure == 6:
        problem = "ab".index(part) + 1
        cell = results[panel_name("tally", problem, "80-20", FIGURE_6_PLAYERS)]
        added = Curve.at_horizon("tally", [panel.curves[0].x[0], panel.curves[0].x[-1]], [cell, cell])
    elif part == "a":
        problem, activity = PANELS[figure]
        added = over_players(results, "tally", problem, activity)
    else:
        problem, activity = PANELS[figure]
        cell = results[panel_name("tally", problem, activity, CURVE_PLAYERS)]
        added = Curve.over_time(cell)
    return replace(panel, name=f"tally-{panel.name}", curves=[*map(_without_zero, [*panel.curves, added])], log_y=True)


def _without_zero(curve: Curve) -> Curve:
    """A logarithmic scale has no 0."""
    if curve.mean[0] != 0.0:
        return curve
    return Curve(curve.protocol, curve.x[1:], curve.mean[1:], curve.low[1:], curve.high[1:])


def _frontier(figure: int, results: Mapping[str, Result]) -> Panel:
    problem, activity = PANELS[figure]

    floors = [results[floor_name(problem, activity, floor)] for floor in FLOORS]
    private = results[private_name(problem, activity)]
    curves = []
    for protocol in ("me-local", "dme", "edme", "me-unlimited", "ucb-unlimited"):
        result = results[panel_name(protocol, problem, activity, CURVE_PLAYERS)]
        curves.append(Curve.at_horizon(protocol, [result.bits.total], [result], [""]))
    curves += [
        Curve.at_horizon("tally", [result.bits.total for result in floors], floors, [str(floor) for floor in FLOORS]),
        Curve.at_horizon("tally-named", [result.bits.with_arm for result in floors], floors, ["" for _ in FLOORS]),
        Curve.at_horizon("tally-private", [private.bits.total], [private], [""]),
    ]
    return Panel(
        name=f"frontier-{figure}",
        title=f"Problem {problem}, {CURVE_PLAYERS} players, {activity}: what regret costs in bits (numbers: floors)",
        x_label="bits, up and down",
        curves=curves,
        log_y=True,
        points=True,
    )
