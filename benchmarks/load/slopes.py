"""Does it grow? A line through what was noted, with an interval that does not take neighbours for strangers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from scipy.stats import t as student

BLOCKS = 15
"""Samples close in time are alike: a line goes through the means of so many stretches."""


def line(x: Sequence[float], y: Sequence[float]) -> dict[str, float]:
    """The slope of the line through the means of blocks, with its 95 % interval; and where the values lie."""
    xs, ys = blocks(x), blocks(y)
    count = len(xs)
    if count < 3:
        return {"first": y[0], "last": y[-1], "least": min(y), "most": max(y)}
    mean_x, mean_y = sum(xs) / count, sum(ys) / count
    square = sum((each - mean_x) ** 2 for each in xs)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(xs, ys, strict=True)) / square
    rest = sum((b - mean_y - slope * (a - mean_x)) ** 2 for a, b in zip(xs, ys, strict=True))
    half = float(student.ppf(0.975, count - 2)) * math.sqrt(rest / (count - 2) / square)
    return {
        "first": ys[0],
        "last": ys[-1],
        "least": min(y),
        "most": max(y),
        "slope": slope,
        "low": slope - half,
        "high": slope + half,
    }


def blocks(values: Sequence[float]) -> list[float]:
    """Means of stretches of equal length."""
    cut: Callable[[int], int] = lambda number: number * len(values) // BLOCKS  # noqa: E731
    found = [values[cut(number) : cut(number + 1)] for number in range(BLOCKS)]
    return [sum(each) / len(each) for each in found if each]
