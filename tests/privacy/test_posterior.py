"""Posteriors against brute force: every way that the other rewards can fall is gone through."""

from __future__ import annotations

import itertools
import math

import pytest

from benchmarks.privacy import inference, posterior
from benchmarks.privacy.posterior import Laws
from core.laws import clamped

BUDGETS = (None, 5.0, 1.0, 0.1)


def brute_force(trials: int, mean: float, budget: float | None) -> Laws:
    identity = [[float(z == s) for z in range(trials + 1)] for s in range(trials + 1)]
    rows = identity if budget is None else clamped(trials, budget)
    laws = [[0.0] * (trials + 1) for _ in range(2)]
    for reward in range(2):
        for others in itertools.product((0, 1), repeat=trials - 1):
            weight = math.prod(mean if other else 1 - mean for other in others)
            for z, probability in enumerate(rows[reward + sum(others)]):
                laws[reward][z] += weight * probability
    return Laws(tuple(laws[0]), tuple(laws[1]))


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("mean", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("trials", [1, 2, 3, 7])
def test_a_tally_tells_of_one_event_what_going_through_all_others_tells(
    trials: int, mean: float, budget: float | None
) -> None:
    found, expected = posterior.others_unknown(trials, mean, budget), brute_force(trials, mean, budget)
    assert found.failed == pytest.approx(expected.failed, abs=1e-13)
    assert found.succeeded == pytest.approx(expected.succeeded, abs=1e-13)
    right = 0.0  # the best guess, by the joint law
    for none, one in zip(expected.failed, expected.succeeded, strict=True):
        right += max((1 - mean) * none, mean * one)
    assert found.success(mean) == pytest.approx(right)
    assert found.success(0.5) == pytest.approx((1 + found.advantage) / 2)


def test_all_zeros_reveal_as_often_as_the_documents_say() -> None:
    """73 % of all tallies of 3 and 48 % of those of 7 are all zeros at a mean of .1 (docs/privacy.md)."""
    ones = 0.1**3, 0.1**7
    assert inference.certain(posterior.others_unknown(3, 0.1), 0.1) == pytest.approx(0.9**3 + ones[0])
    assert inference.certain(posterior.others_unknown(7, 0.1), 0.1) == pytest.approx(0.9**7 + ones[1])


@pytest.mark.parametrize("budget", [0.1, 1.0, 5.0])
def test_who_knows_all_others_reaches_what_the_budget_allows(budget: float) -> None:
    for trials in (1, 3, 23):
        laws = posterior.worst_case(trials, budget)
        assert laws.advantage == pytest.approx(inference.budget_advantage(budget), rel=1e-12)
        assert laws.largest_factor == pytest.approx(math.exp(budget), rel=1e-12)


def test_who_knows_all_others_knows_all_without_noise() -> None:
    assert all(posterior.others_known(7, others).advantage == 1 for others in range(7))
    with pytest.raises(ValueError, match="at most 6 are others"):
        posterior.others_known(7, 7)


@pytest.mark.parametrize("budget", [0.1, 1.0])
def test_messages_together_tell_what_going_through_all_pairs_of_them_tells(budget: float) -> None:
    first, second = posterior.others_unknown(3, 0.3, budget), posterior.others_known(2, 1, budget)
    pairs = Laws(
        *(
            tuple(a * b for a in one for b in two)
            for one, two in ((first.failed, second.failed), (first.succeeded, second.succeeded))
        )
    )
    found = inference.combined([first, second])
    assert len(found.failed) < len(pairs.failed)
    assert found.advantage == pytest.approx(pairs.advantage)
    assert found.largest_factor == pytest.approx(pairs.largest_factor)
    assert found.success(0.3) == pytest.approx(pairs.success(0.3))


@pytest.mark.parametrize("events", [1, 2, 5, 10])
@pytest.mark.parametrize("budget", [0.1, 1.0])
def test_budgets_of_several_events_add_up_and_are_reached(events: int, budget: float) -> None:
    apart = inference.combined([posterior.worst_case(23, budget)] * events)
    together = posterior.others_known(23, 3, budget, events=events)
    for laws in (apart, together):
        assert laws.largest_factor == pytest.approx(math.exp(events * budget), rel=1e-9)
        assert laws.advantage <= inference.budget_advantage(events * budget) + 1e-12


@pytest.mark.parametrize("means", [(0.7, 0.3, 0.3), (0.2, 0.9), (0.7, 0.5, 0.3, 0.1)])
@pytest.mark.parametrize("budget", [None, 1.0])
def test_the_best_arm_is_as_likely_as_all_ways_to_give_the_means_say(
    means: tuple[float, ...], budget: float | None
) -> None:
    seen = [1, 3, 2, 0][: len(means)]  # of 3 events each
    laws = {mean: inference.log_tally(3, mean, budget) for mean in means}
    logs = [{mean: law[z] for mean, law in laws.items()} for z in seen]
    expected = [0.0] * len(means)
    for ways in itertools.permutations(means):
        expected[ways.index(max(means))] += math.exp(sum(logs[arm][mean] for arm, mean in enumerate(ways)))
    assert inference.best_arm_posterior(means, logs) == pytest.approx([each / sum(expected) for each in expected])
    without = [0.0 if arm == 1 else each for arm, each in enumerate(expected)]
    assert inference.best_arm_posterior(means, logs, excluded=[1]) == pytest.approx(
        [each / sum(without) for each in without]
    )


def test_what_cannot_be_computed_is_refused() -> None:
    with pytest.raises(ValueError, match="one arm must be best"):
        inference.best_arm_posterior((0.5, 0.5), [{0.5: 0.0}] * 2)
    many = tuple(arm / 20 for arm in range(20))
    with pytest.raises(ValueError, match="too many ways"):
        inference.best_arm_posterior(many, [dict.fromkeys(many, 0.0)] * 20)
