"""The paper's figures: which curves of which results make which panel."""

from __future__ import annotations

from collections.abc import Mapping

from outvote.paper.study import (
    ACTIVE_PLAYERS,
    CURVE_PLAYERS,
    FIGURE_6_PLAYERS,
    PANELS,
    PLAYERS,
    Study,
    active_name,
    panel_name,
)
from outvote.simulation.plots import Curve, Panel
from outvote.simulation.results import Result

COMPARED = ("me-local", "dme", "me-unlimited", "ucb-unlimited")


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
    return Panel(
        name=f"figure-{figure}a",
        title=f"Problem {problem}, {describe(activity)}: regret after {study.horizon:,} draws",
        x_label="players",
        curves=[over_players(results, protocol, problem, activity) for protocol in COMPARED],
        log_x=True,
    )


def _over_time(results: Mapping[str, Result], figure: int, problem: int, activity: str) -> Panel:
    cells = [results[panel_name(protocol, problem, activity, CURVE_PLAYERS)] for protocol in COMPARED]
    return Panel(
        name=f"figure-{figure}b",
        title=f"Problem {problem}, {describe(activity)}, {CURVE_PLAYERS} players",
        x_label="draws of players",
        curves=[Curve.over_time(cell) for cell in cells],
    )


def over_players(results: Mapping[str, Result], protocol: str, problem: int, activity: str) -> Curve:
    """The regret of one protocol at the horizon, over the number of players."""
    cells = [results[panel_name(protocol, problem, activity, players)] for players in PLAYERS]
    return Curve.at_horizon(protocol, [*map(float, PLAYERS)], cells)


def _over_active_players(study: Study, results: Mapping[str, Result], problem: int) -> Panel:
    xs = [float(active) for active in ACTIVE_PLAYERS]
    curves = [Curve.at_horizon("dme", xs, [results[active_name(problem, active)] for active in ACTIVE_PLAYERS])]
    for protocol in ("me-local", "edme"):
        cell = results[panel_name(protocol, problem, "80-20", FIGURE_6_PLAYERS)]
        curves.append(Curve.at_horizon(protocol, [xs[0], xs[-1]], [cell, cell]))
    return Panel(
        name=f"figure-6{'ab'[problem - 1]}",
        title=f"Problem {problem}, {FIGURE_6_PLAYERS} players, {describe('80-20')}: regret after {study.horizon:,}",
        x_label="N_γ given to DME",
        curves=curves,
        marks=[(round(0.2 * FIGURE_6_PLAYERS), "true N_γ")],
    )


def describe(activity: str) -> str:
    return "uniform players" if activity == "uniform" else "20 % of players make 80 % of events"
