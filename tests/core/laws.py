"""The laws of a tally, written from their definitions and apart from the package."""

from __future__ import annotations

import math
from collections.abc import Sequence


def binomial(trials: int, mean: float) -> list[float]:
    return [math.comb(trials, s) * mean**s * (1 - mean) ** (trials - s) for s in range(trials + 1)]


def geometric(budget: float, noise: int) -> float:
    """P(G = g) = (1 − α)/(1 + α)·α^|g|."""
    alpha = math.exp(-budget)
    return (1 - alpha) / (1 + alpha) * alpha ** abs(noise)


def clamped(trials: int, budget: float) -> list[list[float]]:
    """P(z | s), a row for each s: z = 0 for s + G ≤ 0, z = trials for s + G ≥ trials, both sums of a geometric tail."""
    alpha = math.exp(-budget)
    return [
        [
            alpha**s / (1 + alpha)
            if z == 0
            else alpha ** (trials - s) / (1 + alpha)
            if z == trials
            else geometric(budget, z - s)
            for z in range(trials + 1)
        ]
        for s in range(trials + 1)
    ]


def sent(trials: int, mean: float, budget: float | None) -> list[float]:
    """P(z | mean)."""
    law = binomial(trials, mean)
    if budget is None:
        return law
    rows = clamped(trials, budget)
    return [math.fsum(p * row[z] for p, row in zip(law, rows, strict=True)) for z in range(trials + 1)]


def mean_of(law: Sequence[float], values: Sequence[float]) -> float:
    return math.fsum(p * value for p, value in zip(law, values, strict=True))
