"""The kernels' samplers against the laws they claim. False-alarm rate of each test: 1e-6; seeds are fixed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from outvote.simulation.activity import weighted
from outvote.simulation.arrays import Floats, Words
from outvote.simulation.kernels import samplers
from outvote.simulation.kernels.arrival import draws_until_all_active, first_events
from outvote.simulation.kernels.compiling import compiled
from outvote.simulation.kernels.generator import choose_player, count_ones, trial_state, uniform, uniform_open

ALARM = 1e-6
MANY = 100_000


@compiled
def sample(kind: int, count: int, first: float, second: float, state: Words) -> Floats:
    found = np.empty(count)
    for i in range(count):
        if kind == 0:
            found[i] = samplers.normal(state)
        elif kind == 1:
            found[i] = samplers.gamma(state, first)
        elif kind == 2:
            found[i] = samplers.order_statistic(state, int(first), int(second))
        elif kind == 3:
            found[i] = samplers.binomial(state, int(first), second)
        elif kind == 4:
            found[i] = samplers.fair_binomial(state, int(first))
        elif kind == 5:
            found[i] = samplers.poisson(state, first)
        elif kind == 6:
            found[i] = uniform(state)
        else:
            found[i] = uniform_open(state)
    return found


def drawn(kind: int, first: float = 1.0, second: float = 1.0) -> Floats:
    return sample(kind, MANY, float(first), float(second), trial_state(np.random.SeedSequence([kind, int(first), 7])))


def chi_square(values: Floats, law: Any) -> float:
    edges = np.unique(law.ppf(np.linspace(0, 1, 42)[1:-1]))
    seen = np.histogram(values, np.r_[-np.inf, edges + 0.5, np.inf])[0]
    expected = np.diff(np.r_[0, law.cdf(edges), 1]) * len(values)
    kept = expected > 5
    if kept.sum() < 2:
        return 1.0
    return float(stats.chisquare(seen[kept], expected[kept] * seen[kept].sum() / expected[kept].sum()).pvalue)


def test_uniform_numbers() -> None:
    assert stats.kstest(drawn(6), "uniform").pvalue > ALARM
    inside = drawn(7)
    assert 0 < inside.min() < inside.max() < 1


def test_normal() -> None:
    values = drawn(0)
    assert stats.kstest(values, "norm").pvalue > ALARM
    assert (
        stats.binomtest(int((abs(values) > 3.442619855899).sum()), MANY, 2 * stats.norm.sf(3.442619855899)).pvalue
        > ALARM
    )


@pytest.mark.parametrize("shape", [1.0, 1.2, 30.0, 10_720.0])
def test_gamma(shape: float) -> None:
    assert stats.kstest(drawn(1, shape), stats.gamma(shape).cdf).pvalue > ALARM


@pytest.mark.parametrize(("rank", "count"), [(1, 1), (1, 900), (2, 2), (3, 900), (900, 900), (10_720, 15_625)])
def test_order_statistic(rank: int, count: int) -> None:
    assert stats.kstest(drawn(2, rank, count), stats.beta(rank, count - rank + 1).cdf).pvalue > ALARM


@pytest.mark.parametrize(
    ("n", "p"),
    [
        (1, 0.5),
        (5, 0.3),
        (100, 0.05),
        (100, 0.7),
        (50, 0.999),
        (1_073, 0.1),
        (5_000, 1 / 64),
        (10**9, 1 / 64),
        (10**9, 0.8),
    ],
)
def test_binomial(n: int, p: float) -> None:
    assert chi_square(drawn(3, n, p), stats.binom(n, p)) > ALARM


@pytest.mark.parametrize(("n", "p", "value"), [(0, 0.5, 0), (7, 0.0, 0), (7, 1.0, 7), (-1, 0.5, 0)])
def test_certain_binomials(n: int, p: float, value: int) -> None:
    assert samplers.binomial(trial_state(np.random.SeedSequence(1)), n, p) == value


@pytest.mark.parametrize("n", [1, 63, 64, 65, 2_999, 3_001, 10**7])
def test_fair_binomial(n: int) -> None:
    assert chi_square(drawn(4, n), stats.binom(n, 0.5)) > ALARM


@pytest.mark.parametrize("mean", [0.3, 5.0, 12.0, 300.0, 1e6])
def test_poisson(mean: float) -> None:
    assert chi_square(drawn(5, mean), stats.poisson(mean)) > ALARM


def test_counting_ones() -> None:
    @compiled
    def ones(word: np.uint64) -> int:
        return int(count_ones(word))  # type: ignore[call-arg]

    for word in (0, 1, 255, 2**63, 2**64 - 1, 0x5555_5555_5555_5555):
        assert ones(np.uint64(word)) == word.bit_count()


@pytest.mark.parametrize("weights", [(1,) * 7, (1,) * 64, (0.8, 0.1, 0.1), (5, 5, 1, 0, 0, 3), (0, 1)])
@pytest.mark.parametrize("draws", [0, 1, 30, 100_000])
def test_draws_per_player_are_multinomial(weights: tuple[float, ...], draws: int) -> None:
    activity = weighted(weights)
    ends, shares = activity.groups()
    state, counts = trial_state(np.random.SeedSequence(5)), np.empty(len(weights), np.int64)
    repeats = 2_000
    totals, squares = np.zeros(len(weights)), np.zeros(len(weights))
    for _ in range(repeats):
        samplers.draws_per_player(state, draws, ends, shares, counts, np.empty((64, 3), np.int64))
        assert counts.sum() == draws
        assert (counts >= 0).all()
        totals += counts
        squares += (counts - draws * activity.shares()) ** 2
    expected = activity.shares()
    assert (totals[expected == 0] == 0).all()
    if draws:
        # all counts together are one multinomial of repeats·draws
        awake = expected > 0
        if awake.sum() > 1:
            assert stats.chisquare(totals[awake], repeats * draws * expected[awake]).pvalue > ALARM
        variance = draws * expected * (1 - expected)
        spread = squares[variance > 1] / variance[variance > 1]  # about chi-square with `repeats` degrees of freedom
        assert (stats.norm.sf(abs(spread - repeats) / np.sqrt(2 * repeats) / 1.5) > ALARM / 64).all()


def test_players_are_chosen_by_their_weights() -> None:
    activity = weighted((5, 0, 1, 2.5, 0.01))
    keep, alias = activity.alias_table()
    state = trial_state(np.random.SeedSequence(6))
    seen = np.bincount([choose_player(state, keep, alias) for _ in range(MANY)], minlength=5)
    assert seen[1] == 0
    awake = activity.shares() > 0
    assert stats.chisquare(seen[awake], MANY * activity.shares()[awake]).pvalue > ALARM


@pytest.mark.parametrize("wanted", [(True, True, True, True), (False, True, False, True), (False, False, True, False)])
def test_the_draw_at_which_all_have_been_active(wanted: tuple[bool, ...]) -> None:
    """Against drawing players one by one until all that are wanted have come."""
    shares = np.array([0.6, 0.2, 0.15, 0.05])
    state, times, rng = trial_state(np.random.SeedSequence(8)), np.empty(4), np.random.default_rng(9)
    fast, slow = [], []
    for _ in range(5_000):
        first_events(state, shares, times)
        fast.append(draws_until_all_active(state, shares, times, np.array(wanted)))
        missing, draws = {n for n in range(4) if wanted[n]}, 0
        while missing:
            draws += 1
            missing.discard(int(np.searchsorted(np.cumsum(shares), rng.random(), side="right")))
        slow.append(draws)
    assert stats.ks_2samp(fast, slow).pvalue > ALARM


def test_a_player_that_never_wakes_is_waited_for_in_vain() -> None:
    shares, times = np.array([1.0, 0.0]), np.empty(2)
    state = trial_state(np.random.SeedSequence(8))
    first_events(state, shares, times)
    assert draws_until_all_active(state, shares, times, np.array([True, True])) == -1
    assert draws_until_all_active(state, shares, times, np.array([True, False])) == 1
