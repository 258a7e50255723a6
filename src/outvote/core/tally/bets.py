"""Bets that arm k is worse than arm j: what each pays for a tally of k and a tally of j.

A bet names a pair of means a < b and pays p_a(z_k)·p_b(z_j) / (p_c(z_k)·p_c'(z_j)), where c = c' + ε lies on the border
of what the bet is against, μ_k ≥ μ_j + ε, nearest to (a, b). If that is true, a bet is worth at most 1 on average,
whatever the means are (docs/tally.md proves it): whoever grows rich by bets has evidence.

Many bets are held at once, with the weights below: a fixed prior over how good the arms are and how much they differ.
"""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from outvote.core.tally.noise import Channel, binomial_law

CENTRES = {-4.0: 1.0, -2.0: 2.0, 0.0: 2.0, 2.0: 2.0, 4.0: 1.0}
"""Where two arms may lie (log odds), and how much is staked on it."""
EFFECTS = {0.1: 1.0, 0.3: 2.0, 0.9: 4.0, 2.7: 2.0}
"""How much they may differ (log odds ratio), and how much is staked on it."""
MARGINS = (-0.5, 0.0, 0.5)
"""For the ε-stop: b − a in units of ε."""
UNDERFLOW = 1e-290
"""Less probable than this is impossible: a large budget leaves next to nothing in the tails of a large tally."""
TOLERANCE = 2e-5
"""How closely, per event of a tally, the largest mean payment of a bet on noisy tallies is bounded from above."""


@dataclass(frozen=True, slots=True)
class Bets:
    """The bets on tallies of one size; payments are logarithms."""

    log_weights: tuple[float, ...]
    worse: tuple[tuple[float, ...], ...]
    """What the suspect's tally contributes: a row for each z, a column for each bet."""
    better: tuple[tuple[float, ...], ...]
    """What the rival's tally contributes."""


def wealth(log_weights: Sequence[float], suspect: Sequence[float], rival: Sequence[float]) -> float:
    """ln Σ weight·payment, from the sums of the contributions of both arms."""
    values = [weight + one + other for weight, one, other in zip(log_weights, suspect, rival, strict=True)]
    top = max(values)
    return top + math.log(sum(map(math.exp, [value - top for value in values])))


def means_bet_on(epsilon: float) -> list[tuple[float, float, float]]:
    """(a, b, weight) of every bet. With an ε the arms may be equal, or k even a little better."""
    found = []
    for centre, stake in CENTRES.items():
        if epsilon == 0.0:
            found += [
                (_odds(centre - effect / 2), _odds(centre + effect / 2), stake * part)
                for effect, part in EFFECTS.items()
            ]
        else:
            for margin in MARGINS:
                half = margin * epsilon / 2
                middle = min(max(_odds(centre), abs(half) + 1e-3), 1 - abs(half) - 1e-3)
                found.append((middle - half, middle + half, stake))
    return found


@functools.lru_cache(maxsize=256)
def bets(size: int, budget: float | None, epsilon: float) -> Bets:
    """The bets on tallies of one size, with the noise of a budget, against μ_k ≥ μ_j + ε."""
    channel = Channel(size, budget)
    chosen = means_bet_on(epsilon)
    total = math.fsum(weight for _, _, weight in chosen)
    columns_worse, columns_better = [], []
    for low, high, _ in chosen:
        worse, better = (
            _exact_payments(size, low, high, epsilon)
            if budget is None
            else _noisy_payments(channel, low, high, epsilon)
        )
        columns_worse.append(worse)
        columns_better.append(better)
    return Bets(
        log_weights=tuple(math.log(weight / total) for _, _, weight in chosen),
        worse=tuple(zip(*columns_worse, strict=True)),
        better=tuple(zip(*columns_better, strict=True)),
    )


def _exact_payments(size: int, low: float, high: float, epsilon: float) -> tuple[list[float], list[float]]:
    """Without noise the mean payment on the border is (1 − x²)^size, so nothing needs to be taken off."""
    border = border_mean(low, high, epsilon)
    return _log_ratios(size, low, border + epsilon), _log_ratios(size, high, border)


def _log_ratios(size: int, mean: float, reference: float) -> list[float]:
    yes, no = math.log(mean / reference), math.log((1 - mean) / (1 - reference))
    return [z * yes + (size - z) * no for z in range(size + 1)]


def border_mean(low: float, high: float, epsilon: float) -> float:
    """The rival's mean at the point of the border nearest to (low, high): (low + high)/2 for ε = 0."""
    if epsilon == 0.0:
        return (low + high) / 2
    left, right = max(low - epsilon, 0.0), min(high, 1.0 - epsilon)
    for _ in range(80):
        middle = (left + right) / 2
        suspect = middle + epsilon
        slope = (low - suspect) / (suspect * (1 - suspect)) + (high - middle) / (middle * (1 - middle))
        if slope > 0:
            left = middle
        else:
            right = middle
    return (left + right) / 2


def _noisy_payments(channel: Channel, low: float, high: float, epsilon: float) -> tuple[list[float], list[float]]:
    """With noise the largest mean payment on the border is found and taken off, half from each side."""
    sent_low, sent_high = channel.sent(low), channel.sent(high)

    def fit(rival: float) -> float:
        """How well a point of the border explains what (low, high) would send."""
        worse, better = channel.sent(rival + epsilon), channel.sent(rival)
        return math.fsum(p * math.log(max(q, UNDERFLOW)) for p, q in zip(sent_low, worse, strict=True)) + math.fsum(
            p * math.log(max(q, UNDERFLOW)) for p, q in zip(sent_high, better, strict=True)
        )

    border = _maximum(fit, max(low - epsilon, 1e-9), min(high, 1.0 - epsilon - 1e-9))
    worse = _ratios(sent_low, channel.sent(border + epsilon))
    better = _ratios(sent_high, channel.sent(border))
    half = math.log(largest_mean_payment(channel, worse, better, epsilon)) / 2
    return [math.log(value) - half for value in worse], [math.log(value) - half for value in better]


def _ratios(sent: Sequence[float], reference: Sequence[float]) -> list[float]:
    """Of two laws, for each z. Where one of them has no probability left that a float can hold, the nearest z decides:
    a ratio that falls or rises with z goes on doing so, which is all that a fair bet needs."""
    sound = [z for z, (p, q) in enumerate(zip(sent, reference, strict=True)) if min(p, q) >= UNDERFLOW]
    nearest = [min(max(z, sound[0]), sound[-1]) for z in range(len(sent))]
    return [sent[z] / reference[z] for z in nearest]


def largest_mean_payment(
    channel: Channel, worse: Sequence[float], better: Sequence[float], epsilon: float = 0.0
) -> float:
    """An upper bound, a little above the largest, of the mean payment over all μ_k = μ_j + ε.

    The suspect's part falls and the rival's part rises with the mean, so over an interval their product is at most
    the one part at its beginning times the other at its end. Intervals are halved until that is close enough.
    """
    fall, rise = channel.expected(worse), channel.expected(better)

    def mean_of(values: Sequence[float], mean: float) -> float:
        return math.fsum(p * value for p, value in zip(binomial_law(channel.trials, mean), values, strict=True))

    def part(left: float, right: float, fallen: float, risen: float) -> tuple[float, float, float, float, float]:
        return (-fallen * risen, left, right, fallen, risen)

    last = 1.0 - epsilon
    heap = [part(0.0, last, mean_of(fall, epsilon), mean_of(rise, last))]
    reached = 0.0
    while True:
        bound, left, right, fallen, risen = heapq.heappop(heap)
        if -bound <= reached * (1 + TOLERANCE * channel.trials):
            return max(-bound, 1.0)
        middle = (left + right) / 2
        falls, rises = mean_of(fall, middle + epsilon), mean_of(rise, middle)
        reached = max(reached, falls * rises)
        heapq.heappush(heap, part(left, middle, fallen, rises))
        heapq.heappush(heap, part(middle, right, falls, risen))


def _maximum(function: Callable[[float], float], left: float, right: float) -> float:
    """Golden-section search; a bet stays fair wherever this ends, only less or more worth its while."""
    ratio = (math.sqrt(5) - 1) / 2
    a, b = right - ratio * (right - left), left + ratio * (right - left)
    at_a, at_b = function(a), function(b)
    for _ in range(40):
        if at_a < at_b:
            left, a, at_a = a, b, at_b
            b = left + ratio * (right - left)
            at_b = function(b)
        else:
            right, b, at_b = b, a, at_a
            a = right - ratio * (right - left)
            at_a = function(a)
    return (left + right) / 2


def _odds(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-log_odds))
