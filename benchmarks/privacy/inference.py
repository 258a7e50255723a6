"""The rest of what docs/adversary.md computes exactly: bounds, several messages of one user, and the best arm."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.privacy.posterior import Laws
from outvote.core.tally.noise import Channel, binomial_law, times_log

SAME = 9
"""Digits of ln(factor) by which two messages are told apart where only what they say of the reward counts."""
MOST_ASSIGNMENTS = 200_000
"""Ways to give means to arms that are gone through one by one."""


def guess(laws: Laws, seen: int) -> float:
    """The best guess at even odds: 1, 0, or ½ where what was seen says nothing."""
    difference = laws.succeeded[seen] - laws.failed[seen]
    return 0.5 if not difference else float(difference > 0)


def certain(laws: Laws, prior: float) -> float:
    """How often what is seen leaves no doubt, where a success has this probability beforehand."""
    pairs = zip(laws.failed, laws.succeeded, strict=True)
    return math.fsum((1 - prior) * none + prior * one for none, one in pairs if not none or not one)


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
