"""What the bets of a variant pay, as arrays that compiled code reads. Its one rule: a size pays what the core says."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from outvote.core.bets import Bets, bets, border_mean
from outvote.core.codes import fixed_width
from outvote.simulation.arrays import Floats, Integers

Array: TypeAlias = np.ndarray[Any, Any]
Prior: TypeAlias = tuple[tuple[float, float, float], ...]
"""Of every bet the two means that it names, the lower first, and its weight."""


class Tables(NamedTuple):
    """What bets pay: by the level (the place of a size among the sizes), the successes and the bet."""

    sizes: Integers
    bits: Integers
    """Of the successes in a tally of each size."""
    log_weights: Floats
    worse: Array
    better: Array


@functools.cache
def tables_of(sizes: tuple[int, ...], prior: Prior | None, budget: float | None) -> Tables:
    """The bets on tallies of these sizes; no prior is the protocol's own."""
    each = [bets(size, budget, 0.0) if prior is None else bets_on(prior, size) for size in sizes]
    shape = (len(each), max(sizes) + 1, len(each[0].log_weights))
    worse, better = np.zeros(shape), np.zeros(shape)
    for level, size in enumerate(sizes):
        worse[level, : size + 1] = each[level].worse
        better[level, : size + 1] = each[level].better
    bits = np.array([fixed_width(size + 1) for size in sizes])
    return Tables(np.array(sizes), bits, np.array(each[0].log_weights), worse, better)


def bets_on(prior: Prior, size: int) -> Bets:
    """Other bets than the protocol's, on tallies without noise."""
    total = math.fsum(weight for _, _, weight in prior)
    borders = [border_mean(low, high, 0.0) for low, high, _ in prior]

    def payment(successes: int, mean: float, reference: float) -> float:
        failures = size - successes
        return successes * math.log(mean / reference) + failures * math.log((1 - mean) / (1 - reference))

    return Bets(
        log_weights=tuple(math.log(weight / total) for _, _, weight in prior),
        worse=tuple(
            tuple(payment(z, low, border) for (low, _, _), border in zip(prior, borders, strict=True))
            for z in range(size + 1)
        ),
        better=tuple(
            tuple(payment(z, high, border) for (_, high, _), border in zip(prior, borders, strict=True))
            for z in range(size + 1)
        ),
    )
