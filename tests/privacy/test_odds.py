"""Whatever the size of a tally, the mean and the budget: the odds never change by more than the budget allows."""

from __future__ import annotations

import math

from hypothesis import example, given
from hypothesis import strategies as st

from amounts import examples
from benchmarks.privacy import inference, posterior
from benchmarks.privacy.posterior import Laws

SIZES = st.integers(1, 40)
MEANS = st.floats(0, 1)
BUDGETS = st.floats(1e-6, 20)
ROUNDING = 1e-9
LARGEST = 60
"""Of m·b: beyond e^60 floating-point numbers have no ratios of probabilities as small as these."""


def obeys(laws: Laws, budget: float) -> bool:
    return (
        laws.largest_factor <= math.exp(budget) * (1 + ROUNDING)
        and laws.advantage <= inference.budget_advantage(budget) + ROUNDING
        and math.isclose(math.fsum(laws.failed), 1, rel_tol=ROUNDING)
        and math.isclose(math.fsum(laws.succeeded), 1, rel_tol=ROUNDING)
    )


@given(trials=SIZES, mean=MEANS, budget=BUDGETS)
@example(trials=127, mean=0.1, budget=20.0)
@example(trials=127, mean=0.5, budget=1e-6)
def test_others_unknown(trials: int, mean: float, budget: float) -> None:
    laws = posterior.others_unknown(trials, mean, budget)
    assert obeys(laws, budget)
    assert laws.advantage <= inference.sum_advantage(trials, mean) + ROUNDING
    assert laws.advantage <= posterior.others_unknown(trials, mean).advantage + ROUNDING


@given(trials=SIZES, data=st.data())
def test_others_known(trials: int, data: st.DataObject) -> None:
    events = data.draw(st.integers(1, trials))
    budget = data.draw(st.floats(1e-6, min(20, LARGEST / events)))
    others = data.draw(st.integers(0, trials - events))
    assert obeys(posterior.others_known(trials, others, budget, events=events), events * budget)


@given(parts=st.lists(st.tuples(st.integers(1, 8), MEANS, st.floats(0.01, 3)), min_size=1, max_size=3))
@examples(50)
def test_several_messages(parts: list[tuple[int, float, float]]) -> None:
    laws = inference.combined(posterior.others_unknown(*part) for part in parts)
    assert obeys(laws, math.fsum(budget for _, _, budget in parts))
