"""The lift of one arm over another, with intervals that hold at all times at once.

The means (p, q) of a pair are possible while the sum of their outbids is within the limit. The one rule: an end of an
interval is proved by two lines of support, one below each outbid, so a search that stops early can only widen it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from outvote.core.tally.confidence import Outbid

_CLOSE = 1e-8
"""How near an end is to the exact one: absolute for p − q, in parts of p for p/q."""
_MOST_LOOSE = 3e-7
"""Lines that all but touch may prove a ratio that is too large by this part; more is searched for once more."""
_ROUNDING = 1e-9
"""What an end is moved outwards, against the rounding of sums."""
_MOST_STEPS = 100
"""Of a search: far beyond what any needs."""


@dataclass(frozen=True, slots=True)
class Lift:
    """By how much an arm's mean p is above its rival's q."""

    difference: float
    """p − q at the likeliest means; a mean of which nothing was reported counts ½."""
    difference_interval: tuple[float, float]
    """p − q lies in here."""
    relative: float | None
    """p/q − 1 at the likeliest means; None if nothing was reported of one of them, or the rival's is 0."""
    relative_interval: tuple[float, float | None]
    """p/q − 1 lies in here; no upper end (None) where the rival's mean may be 0. (−1, None) says nothing at all."""


def lift(arm: Outbid, rival: Outbid, log_limit: float) -> Lift:
    """The lift over all pairs of means whose outbids sum to the limit at most."""
    known = arm.known and rival.known and rival.best > 0.0
    above, below = _Pair(arm, rival, log_limit), _Pair(rival, arm, log_limit)
    ratio, inverse = above.most_ratio(), below.most_ratio()
    return Lift(
        difference=arm.best - rival.best,
        difference_interval=(-below.most_difference(), above.most_difference()),
        relative=arm.best / rival.best - 1.0 if known else None,
        relative_interval=(-1.0 if inverse is None else 1.0 / inverse - 1.0, None if ratio is None else ratio - 1.0),
    )


class _Pair:
    """The largest p − price·q over the pairs that are possible, for any price.

    On lines of support with slopes s and −price·s, touching at p' and q' with heights a and b,
    a + b + s·(p − p') − price·s·(q − q') ≤ limit, so p − price·q ≤ p' − price·q' + (limit − a − b)/s, whatever s > 0.
    The best s is the one at which nothing of the limit is left.
    """

    def __init__(self, arm: Outbid, rival: Outbid, limit: float) -> None:
        self._arm, self._rival, self._limit = arm, rival, limit
        self._room = limit - arm.least - rival.least
        self._slope = math.sqrt(2.0 * self._room) / math.hypot(arm.deviation, rival.deviation)
        """Where the last search ended, or for the first a guess: the next is not far."""

    def most_difference(self) -> float:
        """An upper end of p − q."""
        if self._arm(1.0) + self._rival(0.0) <= self._limit:
            return 1.0
        bound, _ = self._search(1.0)
        return min(bound + _ROUNDING, 1.0)

    def most_ratio(self) -> float | None:
        """An upper end of p/q; None if q may be 0.

        p/q ≤ r for all pairs once p − r·q ≤ 0 for all. Newton's steps approach the least such r from below, for the
        bound is convex in r and its slope is −q; a nudge brings the last of them over.
        """
        if self._rival(0.0) + self._arm.least <= self._limit:
            return None
        start = ratio = self._arm.best / self._rival.best
        least = math.inf
        for _ in range(_MOST_STEPS):
            bound, q = self._search(ratio, relative=True)
            if bound <= 0.0:
                least = min(least, ratio)
                if -bound <= _MOST_LOOSE * ratio * q or q <= 0.0:
                    break
            step = ratio + bound / q if q > 0.0 else 2.0 * ratio + 1.0
            ratio = max(step, start) * (1.0 + _CLOSE)
        return None if math.isinf(least) else least * (1.0 + _ROUNDING)

    def _search(self, price: float, *, relative: bool = False) -> tuple[float, float]:
        """A bound of p − price·q, and the q where it touches.

        A slope at which so much is `left` makes the bound about left²/(4·room·slope) too large if outbids rise with the
        square of the slope, and some times that if they rise more slowly.
        """
        slope, room = self._slope, self._room
        least = math.inf
        ends: dict[bool, tuple[float, float]] = {}
        for _ in range(_MOST_STEPS):
            p, height = self._arm.support(slope)
            q, depth = self._rival.support(-price * slope)
            left = self._limit - height - depth
            bound = p - price * q + left / slope
            if bound < least:
                least, touching, self._slope = bound, q, slope
            if 4.0 * left * left <= _CLOSE * room * slope * (p if relative else 1.0):
                break
            slope = _next_slope(slope, math.log(room / (room - left)) if left < room else math.inf, ends)
        return least, touching


def _next_slope(slope: float, short: float, ends: dict[bool, tuple[float, float]]) -> float:
    """Where a line of logarithms has used up all, from by how much each slope falls `short`; `ends` are the nearest.

    At first outbids are taken to rise with the square of the slope. From one side the line goes a little too far, to
    have an end on the other. An end that stays counts half as much each time (the Illinois rule): so both close in.
    """
    within = short >= 0.0
    last = ends.get(within)
    ends[within] = slope, short
    if len(ends) < 2:
        step = short / 2.0
        if last is not None and math.isfinite(last[1]) and (last[1] - short) * (slope - last[0]) > 0.0:
            step = 1.1 * short * math.log(slope / last[0]) / (last[1] - short)
        return slope * math.exp(min(max(step, -3.0), 3.0))
    if last is not None:
        at, other = ends[not within]
        ends[not within] = at, other / 2.0
    (low, more), (high, less) = ends[True], ends[False]
    part = more / (more - less) if math.isfinite(more) and math.isfinite(less) else 0.5
    return low * math.pow(high / low, min(max(part, 0.001), 0.999))
