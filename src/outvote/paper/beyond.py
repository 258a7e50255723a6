"""Past the paper: its figures once more with Tally in them, and what regret costs in bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from outvote.paper.study import CURVE_PLAYERS, FIGURE_6_PLAYERS, PANELS, PLAYERS, panel_name, shared_name
from outvote.simulation.plots import Curve, Panel
from outvote.simulation.results import Result
from outvote.simulation.settings import Settings

FLOORS = (3, 7, 15, 31)
"""Tally's anonymity floors on the frontier; the first is the default."""
BUDGET = 1.0
"""The privacy budget on the frontier."""
Cell = Callable[..., Settings]


def cells(figures: tuple[int, ...], cell: Cell) -> dict[str, Settings]:
    """What the second set of figures needs besides the cells of the first."""
    found: dict[str, Settings] = {}
    for figure in figures:
        if figure == 6:
            for problem in (1, 2):
                options: dict[str, Any] = {"problem": problem, "activity": "80-20", "players": FIGURE_6_PLAYERS}
                found[panel_name("tally", problem, "80-20", FIGURE_6_PLAYERS)] = cell(protocol="tally", **options)
            continue
        problem, activity = PANELS[figure]
        for players in PLAYERS:
            found[panel_name("tally", problem, activity, players)] = cell(
                protocol="tally", problem=problem, activity=activity, players=players,
                grid=200 if players == CURVE_PLAYERS else 1,
            )  # fmt: skip
        setting: dict[str, Any] = {"problem": problem, "activity": activity, "players": CURVE_PLAYERS}
        found[panel_name("edme", problem, activity, CURVE_PLAYERS)] = cell(protocol="edme", instances=8, **setting)
        for floor in FLOORS[1:]:
            found[floor_name(problem, activity, floor)] = cell(protocol="tally", floor=floor, **setting)
        found[private_name(problem, activity)] = cell(protocol="tally", privacy_budget=BUDGET, **setting)
    return found


def floor_name(problem: int, activity: str, floor: int) -> str:
    if floor == FLOORS[0]:
        return panel_name("tally", problem, activity, CURVE_PLAYERS)
    return f"{panel_name('tally', problem, activity, CURVE_PLAYERS)}, floor {floor}"


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
        swept = [results[panel_name("tally", problem, activity, players)] for players in PLAYERS]
        added = Curve.at_horizon("tally", [*map(float, PLAYERS)], swept)
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
    curves = [
        Curve.at_horizon(protocol, [result.bits.total], [result], [""])
        for protocol, result in (
            ("me-local", results[panel_name("me-local", problem, activity, CURVE_PLAYERS)]),
            ("dme", results[panel_name("dme", problem, activity, CURVE_PLAYERS)]),
            ("edme", results[panel_name("edme", problem, activity, CURVE_PLAYERS)]),
            ("me-unlimited", results[shared_name("me-unlimited", problem)]),
            ("ucb-unlimited", results[shared_name("ucb-unlimited", problem)]),
        )
    ]
    curves += [
        Curve.at_horizon("tally", [result.bits.total for result in floors], floors, [str(floor) for floor in FLOORS]),
        Curve.at_horizon("tally-named", [result.bits.with_arm for result in floors], floors, ["" for _ in FLOORS]),
        Curve.at_horizon("tally-private", [private.bits.total], [private], [""]),
    ]
    players = "uniform" if activity == "uniform" else "80-20"
    return Panel(
        name=f"frontier-{figure}",
        title=f"Problem {problem}, {CURVE_PLAYERS} players, {players}: what regret costs in bits (numbers: floors)",
        x_label="bits, up and down",
        curves=curves,
        log_y=True,
        points=True,
    )
