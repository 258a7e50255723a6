"""What one tally tells an adversary of one reward: Bayes' rule, exactly. Nothing is drawn at random and nothing is run.

The adversary knows the algorithm, its parameters and every arm's mean. *Advantage* is how much likelier it is to say
"this event succeeded" where it did than where it did not, with the best rule there is: the distance in variation of
the two laws of what it sees. With even odds beforehand its best guess is right with probability (1 + advantage)/2.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from outvote.core.tally.noise import Channel, binomial_law

SMALLEST = 1e-280
"""What is less likely is not looked at for factors: near the end of floating-point numbers there are no ratios. So
factors are right up to e^60, what three events with the largest budget have."""


@dataclass(frozen=True, slots=True)
class Laws:
    """How likely each thing that can be seen is: if the event failed, and if it succeeded."""

    failed: tuple[float, ...]
    succeeded: tuple[float, ...]

    @property
    def advantage(self) -> float:
        """The distance in variation: from 0, nothing is told, to 1, everything."""
        return math.fsum(abs(one - none) for none, one in self._pairs()) / 2

    @property
    def largest_factor(self) -> float:
        """The most by which anything that is seen can change the odds, in either direction; infinite if it proves."""
        largest = 1.0
        for none, one in self._pairs():
            low, high = sorted((none, one))
            if high > SMALLEST:
                largest = max(largest, high / low if low else math.inf)
        return largest

    def success(self, prior: float) -> float:
        """How often the best guess is right where a success has this probability beforehand."""
        return math.fsum(max((1 - prior) * none, prior * one) for none, one in self._pairs())

    def _pairs(self) -> Iterable[tuple[float, float]]:
        return zip(self.failed, self.succeeded, strict=True)


# ---- one event of one tally


@functools.lru_cache(maxsize=4096)
def others_unknown(trials: int, mean: float, budget: float | None = None) -> Laws:
    """A tally with the event in it, to an adversary who knows of the others' rewards their mean alone."""
    others = binomial_law(trials - 1, mean)
    return Laws(_sent(trials, (*others, 0.0), budget), _sent(trials, (0.0, *others), budget))


def others_known(trials: int, others: int, budget: float | None = None, *, events: int = 1) -> Laws:
    """The same to one who knows that so many of the others succeeded; of `events` events that succeed or fail alike."""
    if not 0 <= others <= trials - events:
        raise ValueError(f"of {trials} events at most {trials - events} are others, got {others} successes of others")
    rows = _matrix(trials, budget)
    return Laws(rows[others], rows[others + events])


def worst_case(trials: int, budget: float | None = None) -> Laws:
    """The others known, and such that the message tells most."""
    return max((others_known(trials, others, budget) for others in range(trials)), key=lambda laws: laws.advantage)


def _sent(trials: int, law: Sequence[float], budget: float | None) -> tuple[float, ...]:
    """The law of what is sent, from that of the successes."""
    if budget is None:
        return tuple(law)
    columns = zip(*_matrix(trials, budget), strict=True)
    return tuple(math.fsum(map(float.__mul__, law, column)) for column in columns)


@functools.lru_cache(maxsize=64)
def _matrix(trials: int, budget: float | None) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, Channel(trials, budget).matrix()))
