"""Figures as Plotly takes them, from what a task's description holds. Pure: no page, no script.

Colours are names of the page's own, like `@leader`: the page puts in what is right for light and for dark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from msgspec import UNSET

from outvote.server.admin.views import TaskDescription, VariantView

Figure: TypeAlias = dict[str, Any]

MOST_ROWS = 40
"""Arms in a figure; the table beside it has all."""
LONGEST_NAME = 22
ROW = 34
"""Pixels."""


def means(shown: TaskDescription) -> Figure | None:
    """Each arm's mean with its interval."""
    if not shown.messages.up:
        return None
    arms = _first(shown.variants, shown)
    known = {row: arm.mean for row, arm in enumerate(arms) if isinstance(arm.mean, float)}
    values = [(mean, arms[row].interval) for row, mean in known.items()]
    trace = _points(values, [_colour(arms[row], shown) for row in known], hover="%{x:.1f} %")
    trace["y"] = list(known)
    return _rows([trace], [arm.variant for arm in arms], "mean reward, %")


def votes(shown: TaskDescription) -> Figure | None:
    """Each arm's votes against those that eliminate it."""
    arms = _first(shown.variants, shown)
    several = len(shown.votes_needed) > 1
    values = [_share(arm, shown.votes_needed) if several else _votes(arm)[0] for arm in arms]
    needed = 1.0 if several else shown.votes_needed[0]
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": values,
        "y": list(range(len(arms))),
        "marker": {"color": [_colour(arm, shown) for arm in arms]},
        "hovertemplate": "%{x}<extra></extra>",
        "width": 0.55,
    }
    title = "votes to drop it, as a share of those needed" if several else "votes to drop it"
    figure = _rows([bars], [arm.variant for arm in arms], title)
    figure["layout"]["shapes"] = [_line(needed)]
    figure["layout"]["xaxis"]["range"] = [0, 1.15 * max([needed, *values])]
    if not several and figure["layout"]["xaxis"]["range"][1] < 10:
        figure["layout"]["xaxis"]["dtick"] = 1
    figure["layout"]["annotations"] = [
        {"x": needed, "y": 1, "yref": "paper", "text": "needed", "showarrow": False, "yanchor": "bottom"}
    ]
    return figure


def lifts(shown: TaskDescription) -> Figure | None:
    """By how much the leader is better than each other arm, the nearest first."""
    rivals = sorted(shown.lifts, key=lambda each: each.difference)[:MOST_ROWS]
    if not rivals:
        return None
    values = [(each.difference, each.difference_interval) for each in rivals]
    colours = ["@remaining" if each.rival in shown.remaining else "@eliminated" for each in rivals]
    trace = _points(values, colours, hover="%{x:+.1f} points", symbol="diamond")
    figure = _rows([trace], [each.rival for each in rivals], f"{_short(str(shown.leader))} is better by, points")
    figure["layout"]["shapes"] = [_line(0)]
    return figure


def timeline(shown: TaskDescription, now: float) -> Figure:
    """From when to when each arm was in the race."""
    arms = _first(shown.variants, shown)
    end = now if shown.stopped_at is None or shown.status == "finished" else shown.stopped_at
    ends = [end if arm.eliminated is None else arm.eliminated.at for arm in arms]
    if shown.winner is not None or shown.status == "finished":
        last = max((arm.eliminated.at for arm in arms if arm.eliminated is not None), default=end)
        ends = [last if arm.eliminated is None else stop for arm, stop in zip(arms, ends, strict=True)]
    bars = {
        "type": "bar",
        "orientation": "h",
        "base": [_date(shown.created)] * len(arms),
        "x": [1000 * max(stop - shown.created, 0) for stop in ends],
        "y": list(range(len(arms))),
        "marker": {"color": [_colour(arm, shown) for arm in arms]},
        "customdata": [_date(stop) for stop in ends],
        "hovertemplate": "until %{customdata|%Y-%m-%d %H:%M:%S}<extra></extra>",
        "width": 0.5,
    }
    figure = _rows([bars], [arm.variant for arm in arms], "")
    figure["layout"]["xaxis"] |= {"type": "date", "tickangle": 0, "nticks": 4}
    return figure


FIGURES: Final[Mapping[str, Callable[[TaskDescription], Figure | None]]] = {
    "means": means,
    "votes": votes,
    "lifts": lifts,
}
"""Figures that presenters ask for by name; None if there is nothing to show yet."""


# ---- parts


def _first(arms: Sequence[VariantView], shown: TaskDescription) -> list[VariantView]:
    """Those that remain first, if not all have a place; in the order of the task."""
    if len(arms) <= MOST_ROWS:
        return list(arms)
    kept = sorted(arms, key=lambda arm: (arm.state == "eliminated", arm.variant != shown.leader))[:MOST_ROWS]
    return sorted(kept, key=lambda arm: arm.index)


def _rows(traces: list[dict[str, Any]], names: Sequence[str], title: str) -> Figure:
    return {
        "data": traces,
        "layout": {
            "height": ROW * max(len(names), 2) + (90 if title else 75),
            "xaxis": {"title": {"text": title, "standoff": 8}, "zeroline": False},
            "yaxis": {
                "tickvals": list(range(len(names))),
                "ticktext": [_short(name) for name in names],
                "range": [len(names) - 0.4, -0.6],
                "zeroline": False,
                "showgrid": False,
                "fixedrange": True,
            },
        },
    }


def _line(at: float) -> dict[str, Any]:
    return {
        "type": "line",
        "x0": at,
        "x1": at,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"color": "@text", "width": 1.5, "dash": "dot"},
    }


def _points(
    values: Sequence[tuple[Any, Any]], colours: list[str], *, hover: str, symbol: str = "circle"
) -> dict[str, Any]:
    """Values with their intervals, in points of a hundred; one in a row."""
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [100 * middle for middle, _ in values],
        "y": list(range(len(values))),
        "error_x": {
            "type": "data",
            "symmetric": False,
            "arrayminus": [100 * max(middle - low, 0) for middle, (low, _) in values],
            "array": [100 * max(high - middle, 0) for middle, (_, high) in values],
            "thickness": 2,
            "width": 5,
            "color": "@faint",
        },
        "marker": {"size": 11, "symbol": symbol, "color": colours},
        "hovertemplate": f"{hover}<extra></extra>",
    }


def _votes(arm: VariantView) -> tuple[int, ...]:
    return () if arm.votes is UNSET else tuple(arm.votes)


def _share(arm: VariantView, needed: Sequence[float]) -> float:
    return max(votes / need for votes, need in zip(_votes(arm), needed, strict=True))


def _colour(arm: VariantView, shown: TaskDescription) -> str:
    if arm.state == "eliminated":
        return "@eliminated"
    return "@leader" if arm.variant in (shown.winner, shown.leader) else "@remaining"


def _short(name: str) -> str:
    """A name that fits beside a figure. Plotly reads a little HTML: angle brackets are written out."""
    cut = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    return cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _date(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
