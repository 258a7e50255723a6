"""The bet that a block makes: that one arm is better than another, whatever else differs between blocks.

Match decisions of the suspect with as many of the rival at random. A pair in which only the rival succeeded pays 1 + β,
one in which only the suspect did 1 − β. What a block pays is the mean over all ways to match. docs/blocks.md proves
that this is at most 1 in expectation if the suspect is as good, and checks it by enumeration.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, TypeAlias

_STRENGTHS: Final = tuple(3.5 / 2**power for power in range(14))
"""Log odds ratios that the stakes are best for."""
STAKES: Final = tuple(math.tanh(strength / 2) for strength in _STRENGTHS)
"""β = (1 − θ)/(1 + θ) with θ = exp(−strength), the largest first."""
_UNNORMED: Final = tuple(math.exp(-0.25 * (6 - i) if i <= 6 else -0.9 * (i - 6)) for i in range(14))
WEIGHTS: Final = tuple(weight / math.fsum(_UNNORMED) for weight in _UNNORMED)
"""Of the stakes: how the wealth is divided among them at the start."""

Logs: TypeAlias = tuple[float, ...]
"""The logarithm of a factor for each stake."""
_UP: Final = tuple(math.log1p(stake) for stake in STAKES)
_DOWN: Final = tuple(math.log1p(-stake) for stake in STAKES)
_BOTH: Final = tuple(up + down for up, down in zip(_UP, _DOWN, strict=True))


@lru_cache(maxsize=50_000)
def matched(pairs: int, ones: int, others: int) -> tuple[float, ...]:
    """Σ P(x)(1 − β²)^x for each stake: x pairs of `pairs` have a success of the first arm alone, which has `ones` of
    them; the second arm has `others`.

    >>> [round(value, 3) for value in matched(1, 1, 0)[:3]]
    [0.114, 0.505, 0.831]
    """
    least, most = max(0, ones - others), min(ones, pairs - others)
    laws = [math.comb(pairs - others, x) * math.comb(others, ones - x) for x in range(least, most + 1)]
    total = math.comb(pairs, ones)
    shares = [law / total for law in laws]
    return tuple(
        math.fsum(share * math.exp(both * x) for x, share in enumerate(shares, least) if share) for both in _BOTH
    )


@lru_cache(maxsize=50_000)
def log_factors(decided: int, successes: int, other_decided: int, other_successes: int) -> tuple[Logs, Logs]:
    """What a block pays, by stake: on the first arm as suspect and the second as rival, and the other way round.

    With unequal counts only so many decisions of the larger one are matched as the smaller one has, drawn at random.
    """
    if decided > other_decided:
        second, first = log_factors(other_decided, other_successes, decided, successes)
        return first, second
    pairs = decided
    if other_decided == pairs:
        logs = [math.log(value) for value in matched(pairs, successes, other_successes)]
        return _paid(logs, other_successes - successes)
    first_sums, second_sums = [0.0] * len(STAKES), [0.0] * len(STAKES)
    total = math.comb(other_decided, pairs)
    least, most = max(0, pairs - (other_decided - other_successes)), min(pairs, other_successes)
    for drawn in range(least, most + 1):
        share = math.comb(other_successes, drawn) * math.comb(other_decided - other_successes, pairs - drawn) / total
        more = drawn - successes
        for i, value in enumerate(matched(pairs, successes, drawn)):
            first_sums[i] += share * value * math.exp(more * _UP[i])
            second_sums[i] += share * value * math.exp(more * _DOWN[i])
    return tuple(map(math.log, first_sums)), tuple(map(math.log, second_sums))


def _paid(logs: Sequence[float], more: int) -> tuple[Logs, Logs]:
    """With equal counts the rival's lead is the same however they are matched."""
    first = tuple(log + more * up for log, up in zip(logs, _UP, strict=True))
    second = tuple(log + more * down for log, down in zip(logs, _DOWN, strict=True))
    return first, second


def log_mean(logs: Sequence[float], weights: Sequence[float] = WEIGHTS) -> float:
    """The logarithm of the weighted mean of the exponentials."""
    largest = max(logs)
    shares = (weight * math.exp(log - largest) for log, weight in zip(logs, weights, strict=True))
    return largest + math.log(math.fsum(shares))
