"""How everything here is timed: several rounds in which all parts take turns, and the best of each part.

Noise on a machine only ever adds time, so the best is the steadiest figure; taking turns spreads a slow spell over all.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Protocol

WORTH_TIMING = 0.05
"""Seconds that one timing should last: long enough for the clock, short enough to fall between two disturbances."""
MOST_TRIALS = 2000


class Timed(Protocol):
    """Does its work once and says how many nanoseconds one draw took."""

    def __call__(self) -> float: ...


def best_of(parts: Mapping[str, Timed], *, rounds: int) -> dict[str, float]:
    """The best figure of each part over several rounds."""
    best = dict.fromkeys(parts, float("inf"))
    for _ in range(rounds):
        for name, part in parts.items():
            best[name] = min(best[name], part())
    return best


def timed_calls(work: Callable[[], object], draws: int) -> Timed:
    """Time a function that makes so many draws."""

    def part() -> float:
        start = time.perf_counter()
        work()
        return (time.perf_counter() - start) / draws * 1e9

    return part


def say(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)
