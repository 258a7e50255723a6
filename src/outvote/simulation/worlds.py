"""The means of one trial: they move over the draws, then site and visitor shift their log odds.

Whatever moves acts before the shifts, so that a mean never leaves 0 to 1, however far a shift goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

Row: TypeAlias = Sequence[float]
"""One mean for each arm."""
Motion: TypeAlias = Callable[[Row, int], Row]
"""(means at rest, time) -> means. Time counts draws from 1."""


class World:
    """Means by player, time and visitor. At each site visitors come one after another: who has left is forgotten."""

    def __init__(
        self,
        rows: Sequence[Row],
        shifts: Sequence[Sequence[float]],
        motions: Sequence[Motion],
        visitor_spread: float,
        rng: np.random.Generator,
    ) -> None:
        """`rows` and `shifts` have one entry for each player; `rng` draws what visitors prefer."""
        self._rows = rows
        self._motions = motions
        self._visitor_spread = visitor_spread
        self._rng = rng
        self._sites = [_Place(None, row, shift) for row, shift in zip(rows, shifts, strict=True)]
        self._visitors = list(self._sites)

    def __call__(self, player: int, time: int, visitor: int | None, context: Mapping[str, Any] | None) -> Row:
        """Return the means of one visitor, or the site's own means if no visitor is given."""
        place = self._sites[player] if visitor is None else self._visitors[player]
        if place.visitor != visitor:
            place = self._visitors[player] = self._welcome(player, visitor)
        if not self._motions:
            return place.at_rest
        row = self._rows[player]
        for motion in self._motions:
            row = motion(row, time)
        return shifted(row, place.shift)

    def _welcome(self, player: int, visitor: int | None) -> _Place:
        site = self._sites[player].shift
        preferences = self._rng.normal(0.0, self._visitor_spread, len(site)).tolist()
        return _Place(visitor, self._rows[player], [a + b for a, b in zip(site, preferences, strict=True)])


class _Place:
    """A site, or the visitor who is there."""

    __slots__ = ("at_rest", "shift", "visitor")

    def __init__(self, visitor: int | None, row: Row, shift: Sequence[float]) -> None:
        self.visitor = visitor
        self.shift = shift
        self.at_rest = shifted(row, shift)


# ---- what moves


def drift(start: Row, end: Row, horizon: int) -> Motion:
    """From start to end in a straight line."""
    moves = [(a, b - a) for a, b in zip(start, end, strict=True)]
    return lambda row, time: [a + move * (time / horizon) for a, move in moves]


def swap(start: Row, draw: int) -> Motion:
    """From a draw on the best arm and the second best, as they are at the start, have each other's means."""
    order = sorted(range(len(start)), key=lambda arm: (-start[arm], arm))
    places = list(range(len(start)))
    places[order[0]], places[order[1]] = order[1], order[0]
    return lambda row, time: row if time < draw else [row[place] for place in places]


def cycle(amplitude: float, period: int) -> Motion:
    """All arms rise and fall together, as a sine."""
    return lambda row, time: raised(row, amplitude * math.sin(2 * math.pi * (time % period) / period))


def jumps(size: float, period: int, horizon: int, rng: np.random.Generator) -> Motion:
    """All arms are raised, or not: a fair coin says it for each period anew."""
    coins = rng.integers(2, size=-(-horizon // period), dtype=np.uint8).tobytes()
    return lambda row, time: raised(row, size) if coins[(time - 1) // period] else row


def raised(row: Row, level: float) -> Row:
    """The means a level higher; what rounding takes past 0 or 1 stays there."""
    return [min(1.0, max(0.0, mean + level)) for mean in row]


# ---- what shifts


def shifted(row: Row, shift: Sequence[float]) -> Row:
    """The means with their log odds moved."""
    return tuple(map(shift_mean, row, shift))


def shift_mean(mean: float, shift: float) -> float:
    """Move the log odds of a mean; 0 and 1 stay."""
    if shift == 0.0 or mean in (0.0, 1.0):
        return mean
    logit = math.log(mean) - math.log1p(-mean) + shift
    return 1.0 / (1.0 + math.exp(-logit)) if logit > -700.0 else math.exp(logit)
