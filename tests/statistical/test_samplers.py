"""The kernels' samplers against the laws they claim. False-alarm rate of each test: 1e-6; seeds are fixed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from outvote.simulation.activity import weighted
from outvote.simulation.arrays import Floats
from outvote.simulation.kernels import samplers
from outvote.simulation.kernels.arrival import draws_until_all_active, first_events
from outvote.simulation.kernels.compiling import compiled
from outvote.simulation.streams import generator

ALARM = 1e-6
MANY = 100_000


@compiled
def order_statistics(rng: np.random.Generator, rank: int, count: int) -> Floats:
    return np.array([samplers.order_statistic(rng, rank, count) for _ in range(MANY)])


@compiled
def many_heads(rng: np.random.Generator, coins: int) -> Floats:
    return np.array([samplers.heads(np.uint64(rng.random() * 2.0**53) << np.uint64(11), coins) for _ in range(MANY)])


def chi_square(values: Floats, law: Any) -> float:
    edges = np.unique(law.ppf(np.linspace(0, 1, 42)[1:-1]))
    seen = np.histogram(values, np.r_[-np.inf, edges + 0.5, np.inf])[0]
    expected = np.diff(np.r_[0, law.cdf(edges), 1]) * len(values)
    kept = expected > 5
    if kept.sum() < 2:
        return 1.0
    return float(stats.chisquare(seen[kept], expected[kept] * seen[kept].sum() / expected[kept].sum()).pvalue)


@pytest.mark.parametrize(("rank", "count"), [(1, 1), (1, 900), (2, 2), (3, 900), (900, 900), (10_720, 15_625)])
def test_order_statistic(rank: int, count: int) -> None:
    assert (
        stats.kstest(order_statistics(generator(7), rank, count), stats.beta(rank, count - rank + 1).cdf).pvalue > ALARM
    )


@pytest.mark.parametrize(
    ("n", "p", "value"), [(0, 0.5, 0), (7, 0.0, 0), (7, 1.0, 7), (-1, 0.5, 0), (7, float("nan"), 0)]
)
def test_certain_binomials(n: int, p: float, value: int) -> None:
    assert samplers.binomial(generator(1), n, p) == value


@pytest.mark.parametrize("n", [1, 63, 64, 65, 300, samplers.MOST_COINS])
def test_heads_of_fair_coins(n: int) -> None:
    assert chi_square(many_heads(generator(7), n), stats.binom(n, 0.5)) > ALARM


def test_counting_ones() -> None:
    @compiled
    def ones(word: np.uint64) -> int:
        return int(samplers.count_ones(word))  # type: ignore[call-arg]

    for word in (0, 1, 255, 2**63, 2**64 - 1, 0x5555_5555_5555_5555):
        assert ones(np.uint64(word)) == word.bit_count()


@pytest.mark.parametrize("weights", [(1,) * 7, (1,) * 64, (0.8, 0.1, 0.1), (5, 5, 1, 0, 0, 3), (0, 1)])
@pytest.mark.parametrize("draws", [0, 1, 30, 100_000])
def test_draws_per_player_are_multinomial(weights: tuple[float, ...], draws: int) -> None:
    activity = weighted(weights)
    ends, shares = activity.groups()
    rng, counts = generator(5), np.empty(len(weights), np.int64)
    repeats = 2_000
    totals, squares = np.zeros(len(weights)), np.zeros(len(weights))
    for _ in range(repeats):
        samplers.draws_per_player(rng, draws, ends, shares, counts, np.empty((64, 3), np.int64))
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


@pytest.mark.parametrize("wanted", [(True, True, True, True), (False, True, False, True), (False, False, True, False)])
def test_the_draw_at_which_all_have_been_active(wanted: tuple[bool, ...]) -> None:
    """Against drawing players one by one until all that are wanted have come."""
    shares = np.array([0.6, 0.2, 0.15, 0.05])
    rng, times, other = generator(8), np.empty(4), np.random.default_rng(9)
    fast, slow = [], []
    for _ in range(5_000):
        first_events(rng, shares, times)
        fast.append(draws_until_all_active(rng, shares, times, np.array(wanted)))
        missing, draws = {n for n in range(4) if wanted[n]}, 0
        while missing:
            draws += 1
            missing.discard(int(np.searchsorted(np.cumsum(shares), other.random(), side="right")))
        slow.append(draws)
    assert stats.ks_2samp(fast, slow).pvalue > ALARM


def test_a_player_that_never_wakes_is_waited_for_in_vain() -> None:
    shares, times = np.array([1.0, 0.0]), np.empty(2)
    rng = generator(8)
    first_events(rng, shares, times)
    assert draws_until_all_active(rng, shares, times, np.array([True, True])) == -1
    assert draws_until_all_active(rng, shares, times, np.array([True, False])) == 1
