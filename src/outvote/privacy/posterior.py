"""What one message tells an adversary of one reward, and tallies of the best arm: Bayes' rule, exactly.

The laws of messages are the core's own. Nothing is drawn at random and nothing is run here.

The adversary knows the algorithm, its parameters and every arm's mean. *Advantage* is how much likelier it is to say
"this event succeeded" where it did than where it did not, with the best rule there is: the distance in variation of
the two laws of what it sees. With even odds beforehand its best guess is right with probability (1 + advantage)/2.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from outvote.core.noise import Channel, binomial_law, times_log

SMALLEST = 1e-280
"""What is less likely is not looked at for factors: near the end of floating-point numbers there are no ratios. So
factors are right up to e^60, what three events with the largest budget have."""
SAME = 9
"""Digits of ln(factor) by which two messages are told apart where only what they say of the reward counts."""
MOST_ASSIGNMENTS = 200_000
"""Ways to give means to arms that are gone through one by one."""


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

    def posterior(self, seen: int, prior: float) -> float:
        """The probability of a success, once this was seen."""
        one, none = prior * self.succeeded[seen], (1 - prior) * self.failed[seen]
        return one / (one + none)

    def guess(self, seen: int) -> float:
        """The best guess at even odds: 1, 0, or ½ where what was seen says nothing."""
        difference = self.succeeded[seen] - self.failed[seen]
        return 0.5 if not difference else float(difference > 0)

    def success(self, prior: float) -> float:
        """How often the best guess is right where a success has this probability beforehand."""
        return math.fsum(max((1 - prior) * none, prior * one) for none, one in self._pairs())

    def certain(self, prior: float) -> float:
        """How often what is seen leaves no doubt."""
        return math.fsum((1 - prior) * none + prior * one for none, one in self._pairs() if not none or not one)

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


# ---- what is promised


def budget_advantage(budget: float) -> float:
    """(e^b − 1)/(e^b + 1): the most that differential privacy with this budget allows."""
    return math.tanh(budget / 2)


def sum_advantage(trials: int, mean: float) -> float:
    """The most likely number of successes in the other events: the advantage, were their exact sum with it published.

    Nobody who knows the others' mean alone has more from anything that depends on the event through this sum: two laws
    come no farther apart by what is done to them. Of Binomial(t−1, μ) and the same one higher the distance is the
    largest probability, because they rise up to it and fall after it.
    """
    return max(binomial_law(trials - 1, mean))


# ---- one user with several events


def combined(laws: Iterable[Laws]) -> Laws:
    """Several independent messages about one answer; those that change the odds alike are taken together."""
    found = {0.0: (1.0, 1.0)}
    for each in laws:
        grown: dict[float, tuple[float, float]] = {}
        merged = _by_factor(each)
        for (log_a, (none_a, one_a)), (log_b, (none_b, one_b)) in itertools.product(found.items(), merged.items()):
            key = round(log_a + log_b, SAME)
            none, one = grown.get(key, (0.0, 0.0))
            grown[key] = (none + none_a * none_b, one + one_a * one_b)
        found = grown
    return Laws(tuple(none for none, _ in found.values()), tuple(one for _, one in found.values()))


def _by_factor(laws: Laws) -> dict[float, tuple[float, float]]:
    """By ln(factor): how likely it is to see something that says just that."""
    found: dict[float, tuple[float, float]] = {}
    for none, one in zip(laws.failed, laws.succeeded, strict=True):
        if none or one:
            key = round(math.log(one / none), SAME) if none and one else math.inf if one else -math.inf
            before = found.get(key, (0.0, 0.0))
            found[key] = (before[0] + none, before[1] + one)
    return found


# ---- the best arm


def best_arm_posterior(
    means: Sequence[float],
    logs: Sequence[Mapping[float, float]],
    *,
    excluded: Iterable[int] = (),
) -> list[float]:
    """For each arm the probability that it is best, if all ways to give these means to the arms were equally likely.

    `logs` has for each arm, by mean, the logarithm of how likely what was seen is. Arms that are `excluded` are known
    not to be best.
    """
    arms, best = range(len(means)), max(means)
    if means.count(best) != 1:
        raise ValueError(f"one arm must be best, got the means {list(means)}")
    usual, _ = Counter(mean for mean in means if mean != best).most_common(1)[0]
    special = sorted((mean for mean in means if mean != usual), reverse=True)  # the best first
    if math.perm(len(means), len(special)) > MOST_ASSIGNMENTS:
        raise ValueError(f"too many ways to give {len(special)} means to {len(means)} arms: give fewer that differ")
    out = frozenset(excluded)
    gains = [[logs[arm][mean] - logs[arm][usual] for mean in special] for arm in arms]
    weights: list[list[float]] = [[] for _ in arms]
    for chosen in itertools.permutations(arms, len(special)):
        if chosen[0] not in out:
            weights[chosen[0]].append(sum(gains[arm][place] for place, arm in enumerate(chosen)))
    largest = max(max(each, default=-math.inf) for each in weights)
    totals = [math.fsum(math.exp(weight - largest) for weight in each) for each in weights]
    return [total / math.fsum(totals) for total in totals]


@functools.lru_cache(maxsize=4096)
def log_tally(trials: int, mean: float, budget: float | None) -> tuple[float, ...]:
    """The logarithm of how likely each content of a tally is."""
    return tuple(times_log(1, each) for each in Channel(trials, budget).sent(mean))


def _sent(trials: int, law: Sequence[float], budget: float | None) -> tuple[float, ...]:
    """The law of what is sent, from that of the successes."""
    if budget is None:
        return tuple(law)
    columns = zip(*_matrix(trials, budget), strict=True)
    return tuple(math.fsum(map(float.__mul__, law, column)) for column in columns)


@functools.lru_cache(maxsize=64)
def _matrix(trials: int, budget: float | None) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, Channel(trials, budget).matrix()))
