"""Figures, from what a task's description holds, as templates draw them. Pure.

Places are percentages of a figure's width: it is as wide as its page, and needs no script.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from outvote.presenters.durations import duration
from outvote.server.admin.views import TaskDescription, VariantView

MOST_ROWS: Final = 40
"""Variants in a figure; the table beside it has all."""
STEPS: Final = 4
"""Fewest steps of an axis."""
DAY: Final = 86_400.0

Colour: TypeAlias = Literal["leader", "remaining", "eliminated"]


@dataclass(frozen=True)
class Row:
    """One line of a figure: a bar from `low` to `high`, or an interval around its `mark`; None if nothing is known."""

    name: str
    colour: Colour
    low: float | None = None
    high: float | None = None
    mark: float | None = None


@dataclass(frozen=True)
class Figure:
    """Rows over an axis with its ticks, each a place and a text. `line` crosses all rows."""

    title: str
    rows: tuple[Row, ...]
    ticks: tuple[tuple[float, str], ...]
    line: float | None = None


def means(shown: TaskDescription) -> Figure | None:
    """Each variant's mean with its interval, in percent."""
    if not shown.messages.up:
        return None
    rows = []
    for each in _first(shown):
        row = Row(each.variant, _colour(each, shown))
        if isinstance(each.mean, float) and isinstance(each.interval, tuple):
            low, high = each.interval
            row = Row(row.name, row.colour, 100 * low, 100 * high, 100 * each.mean)
        rows.append(row)
    return _over_axis("mean reward, %", rows)


def votes(shown: TaskDescription) -> Figure:
    """Each variant's votes against those that eliminate it; of several instances the largest share of those needed."""
    needed = shown.votes_needed
    rows = []
    for each in _first(shown):
        counts = each.votes if isinstance(each.votes, tuple) else ()
        shares = (count / need for count, need in zip(counts, needed, strict=True))
        rows.append(Row(each.variant, _colour(each, shown), 0, counts[0] if len(needed) == 1 else max(shares)))
    if len(needed) == 1:
        return _over_axis(f"votes to drop it; {needed[0]:g} are needed", rows, line=needed[0], least_step=1)
    return _over_axis("votes to drop it, as a share of those needed", rows, line=1)


def lifts(shown: TaskDescription) -> Figure | None:
    """By how much the leader is better than each other variant, in points, the nearest first."""
    rivals = sorted(shown.lifts, key=lambda each: each.difference)[:MOST_ROWS]
    if not rivals:
        return None
    rows = [
        Row(
            each.rival,
            "remaining" if each.rival in shown.remaining else "eliminated",
            100 * each.difference_interval[0],
            100 * each.difference_interval[1],
            100 * each.difference,
        )
        for each in rivals
    ]
    return _over_axis(f"{shown.leader} is better by, points", rows, line=0)


def timeline(shown: TaskDescription, now: float) -> Figure:
    """From when to when each variant was in the race. It ends when the task was stopped, or its winner was found."""
    end = now if shown.stopped_at is None else shown.stopped_at
    if shown.status == "finished":
        end = max((each.eliminated.at for each in shown.variants if each.eliminated is not None), default=end)
    whole = max(end - shown.created, 1e-3)  # the engine's clock may be ahead of this one
    rows = []
    for each in _first(shown):
        stop = end if each.eliminated is None else each.eliminated.at
        rows.append(Row(each.variant, _colour(each, shown), 0, round(100 * max(stop - shown.created, 0) / whole, 2)))
    return Figure("", tuple(rows), ((0, "created"), (100, f"after {duration(whole / DAY)}")))


FIGURES: Final[Mapping[str, Callable[[TaskDescription], Figure | None]]] = {
    "means": means,
    "votes": votes,
    "lifts": lifts,
}
"""Figures that presenters ask for by name; None if there is nothing to show yet."""


# ---- parts


def _first(shown: TaskDescription) -> list[VariantView]:
    """In the order of the task; those that remain first, if not all have a place."""
    kept = sorted(shown.variants, key=lambda each: (each.state == "eliminated", each.variant != shown.leader))
    return sorted(kept[:MOST_ROWS], key=lambda each: each.index)


def _colour(each: VariantView, shown: TaskDescription) -> Colour:
    if each.state == "eliminated":
        return "eliminated"
    return "leader" if each.variant in (shown.winner, shown.leader) else "remaining"


def _over_axis(title: str, rows: Sequence[Row], *, line: float | None = None, least_step: float = 0) -> Figure:
    """Put values, as they are, in their places over an axis of round numbers."""
    values = [value for row in rows for value in (row.low, row.high, line) if value is not None]
    raw = max(max(values) - min(values), 1e-9) / STEPS
    power = 10.0 ** math.floor(math.log10(raw))
    step = max(least_step, next(times * power for times in (1, 2, 5, 10) if times * power >= raw * 0.999))
    start, steps = math.floor(min(values) / step) * step, 1
    while start + steps * step < max(values):
        steps += 1

    def place(value: float | None) -> float | None:
        return None if value is None else round(100 * (value - start) / (steps * step), 2)

    return Figure(
        title,
        tuple(Row(row.name, row.colour, place(row.low), place(row.high), place(row.mark)) for row in rows),
        tuple((round(100 * number / steps, 2), f"{start + number * step:.6g}") for number in range(steps + 1)),
        place(line),
    )
