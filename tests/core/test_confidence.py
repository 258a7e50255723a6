"""Intervals for people: by hand, by their defining inequality, and their coverage by enumeration."""

from __future__ import annotations

import math
from itertools import pairwise, product

import pytest

from outvote.core.tally.confidence import JeffreysOutbid, interval, outbid
from outvote.core.tally.noisy_outbid import GRID

from . import laws

LIMIT = math.log(40.0)


# ---- without noise


def test_nothing_is_known_before_the_first_event() -> None:
    assert interval(JeffreysOutbid(0, 0), LIMIT) == (0.0, 1.0)
    assert interval(outbid([(3, [0, 0, 0, 0])], 1.0), LIMIT) == (0.0, 1.0)
    assert interval(outbid([], 1.0), LIMIT) == (0.0, 1.0)


@pytest.mark.parametrize("limit", [0.5, LIMIT, 10.0])
def test_small_intervals_by_hand(limit: float) -> None:
    x = math.exp(-limit)
    # m(0 of 1) = B(½, 3/2)/π = ½: 1 − μ ≥ ½·e^−limit
    assert interval(JeffreysOutbid(0, 1), limit) == pytest.approx((0.0, 1 - x / 2))
    assert interval(JeffreysOutbid(1, 1), limit) == pytest.approx((x / 2, 1.0))
    # m(0 of 2) = ½·¾ = 3/8: (1 − μ)² ≥ 3/8·e^−limit
    assert interval(JeffreysOutbid(0, 2), limit) == pytest.approx((0.0, 1 - math.sqrt(3 / 8 * x)))
    # m(1 of 2, in one order) = B(3/2, 3/2)/π = 1/8: μ(1 − μ) ≥ 1/8·e^−limit
    half = math.sqrt(1 - x / 2) / 2
    assert interval(JeffreysOutbid(1, 2), limit) == pytest.approx((0.5 - half, 0.5 + half))


def kl(p: float, q: float) -> float:
    return sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a)


@pytest.mark.parametrize(("successes", "trials"), [(0, 9), (3, 9), (9, 9), (120, 1000), (999, 1000), (5, 100_000)])
def test_an_interval_holds_the_means_of_its_inequality(successes: int, trials: int) -> None:
    # {μ : n·kl(μ̂, μ) ≤ limit + ln(L(μ̂)/m)}
    share = successes / trials
    mixture = math.lgamma(successes + 0.5) + math.lgamma(trials - successes + 0.5) - math.lgamma(trials + 1)
    best = sum(n * math.log(n / trials) for n in (successes, trials - successes) if n)
    allowed = LIMIT + best - (mixture - math.log(math.pi))
    low, high = interval(JeffreysOutbid(successes, trials), LIMIT)
    assert low <= share <= high
    for end, edge in ((low, 0.0), (high, 1.0)):
        if end != edge:
            assert trials * kl(share, end) == pytest.approx(allowed, rel=1e-6)
        outside = end + (edge - end) * 0.01
        if end != edge:
            assert trials * kl(share, outside) > allowed


def test_intervals_move_with_the_successes_and_widen_with_the_limit() -> None:
    intervals = [interval(JeffreysOutbid(successes, 50), LIMIT) for successes in range(51)]
    assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(intervals))
    assert all(a[0] < b[0] or a[1] < b[1] for a, b in pairwise(intervals))
    wider = [interval(JeffreysOutbid(successes, 50), LIMIT + 1) for successes in range(51)]
    assert all(w[0] <= i[0] and i[1] <= w[1] and w != i for w, i in zip(wider, intervals, strict=True))


def test_the_interval_of_failures_is_the_mirror_image() -> None:
    for successes in range(21):
        low, high = interval(JeffreysOutbid(successes, 20), LIMIT)
        assert interval(JeffreysOutbid(20 - successes, 20), LIMIT) == pytest.approx((1 - high, 1 - low))


def test_more_events_of_the_same_share_narrow_an_interval() -> None:
    widths = [high - low for low, high in (interval(JeffreysOutbid(3 * n, 10 * n), LIMIT) for n in (1, 4, 16, 64, 256))]
    assert all(b < a for a, b in pairwise(widths))
    assert widths[-1] < 0.08


MEANS = [0.0, 1e-3, 0.02, 0.1, 0.3, 0.5, 0.75, 0.99, 1.0]


@pytest.mark.parametrize("limit", [math.log(2), LIMIT])
def test_at_any_fixed_number_of_events_the_mean_is_missed_with_at_most_the_stated_probability(limit: float) -> None:
    for trials, mean in product((1, 2, 5, 12), MEANS):
        law = laws.binomial(trials, mean)
        intervals = [interval(JeffreysOutbid(successes, trials), limit) for successes in range(trials + 1)]
        missed = math.fsum(p for p, (low, high) in zip(law, intervals, strict=True) if not low <= mean <= high)
        assert missed <= math.exp(-limit)


@pytest.mark.parametrize("mean", MEANS)
def test_over_eighty_events_the_mean_is_ever_missed_with_at_most_the_stated_probability(mean: float) -> None:
    # All paths of successes, those that were inside so far: P(ever outside) ≤ e^−limit by Ville's inequality.
    limit, inside, missed = math.log(4), {0: 1.0}, 0.0
    for trials in range(1, 81):
        after: dict[int, float] = {}
        for successes, p in inside.items():
            for up, weight in ((1, mean), (0, 1 - mean)):
                if weight:
                    after[successes + up] = after.get(successes + up, 0.0) + p * weight
        inside = {}
        for successes, p in after.items():
            low, high = interval(JeffreysOutbid(successes, trials), limit)
            if low <= mean <= high:
                inside[successes] = p
            else:
                missed += p
    assert missed <= math.exp(-limit)
    if 0.1 <= mean <= 0.75:
        assert missed > 0.02  # the bound is not idle


# ---- with noise


@pytest.mark.parametrize(("size", "successes"), [(3, 0), (3, 2), (7, 3), (7, 7)])
def test_with_hardly_any_noise_the_interval_is_nearly_jeffreys(size: int, successes: int) -> None:
    often = [0] * (size + 1)
    often[successes] = 6
    exact = interval(JeffreysOutbid(6 * successes, 6 * size), LIMIT)
    assert interval(outbid([(size, often)], 18.0), LIMIT) == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("budget", [0.5, 1.0, 3.0])
def test_with_noise_an_interval_holds_the_means_that_the_mixture_has_not_outbid(budget: float) -> None:
    counts = [(3, [4, 3, 1, 1]), (7, [0, 2, 1, 0, 0, 0, 0, 0])]

    def log_likelihood(mean: float) -> float:
        return math.fsum(
            count * math.log(p)
            for size, often in counts
            for count, p in zip(often, laws.sent(size, mean, budget), strict=True)
        )

    grid = [math.sin((index + 0.5) * math.pi / (2 * GRID)) ** 2 for index in range(GRID)]
    mixture = math.log(math.fsum(math.exp(log_likelihood(mean)) for mean in grid) / GRID)
    low, high = interval(outbid(counts, budget), LIMIT)
    for mean in [index / 200 for index in range(201)]:
        if abs(mean - low) > 1e-6 and abs(mean - high) > 1e-6:
            assert (mixture - log_likelihood(mean) <= LIMIT) == (low <= mean <= high)


def test_more_noise_widens_an_interval() -> None:
    counts = [(7, [0, 5, 20, 20, 5, 0, 0, 0])]
    widths = [high - low for low, high in (interval(outbid(counts, budget), LIMIT) for budget in (3.0, 1.0, 0.5, 0.2))]
    assert all(a < b for a, b in pairwise(widths))


@pytest.mark.parametrize("budget", [0.5, 2.0])
@pytest.mark.parametrize("limit", [math.log(2), math.log(10)])
def test_noisy_tallies_miss_the_mean_with_at_most_the_stated_probability(budget: float, limit: float) -> None:
    results = list(product(range(4), repeat=2))  # two tallies of 3
    intervals = {}
    for one, two in results:
        often = [0] * 4
        often[one] += 1
        often[two] += 1
        intervals[one, two] = interval(outbid([(3, often)], budget), limit)
    for mean in MEANS:
        law = laws.sent(3, mean, budget)
        missed = math.fsum(
            law[one] * law[two] for (one, two), (low, high) in intervals.items() if not low <= mean <= high
        )
        assert missed <= math.exp(-limit)
