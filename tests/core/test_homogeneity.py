"""Do all sites see the same means? Cumulants and Tarone's statistic against their closed forms and by enumeration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from scipy import stats

from outvote.core.tally.homogeneity import (
    FALSE_ALARM,
    PATIENCE,
    RELEASE,
    Cumulants,
    Homogeneity,
    cumulants,
    looks,
    normal_score,
    of_square,
)
from outvote.core.task import Task

from . import laws


def new_test(arms: int = 2, **options: Any) -> Homogeneity:
    fields: dict[str, Any] = {"players": 4, "epsilon": 0, "delta": 0.05, "protocol": "tally", "floor": 3}
    return Homogeneity(Task(arms=arms, **{**fields, **options}))


def fill(test: Homogeneity, arm: int, sites: Sequence[Sequence[int]], size: int = 3) -> None:
    """Each site's tallies of an arm."""
    for site, tallies in enumerate(sites):
        for successes in tallies:
            test.add(site, arm, size, successes)


# ---- cumulants


@pytest.mark.parametrize("mean", [0.05, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("trials", [1, 3, 15])
def test_the_cumulants_of_a_tally_are_those_of_its_events_times_their_number(trials: int, mean: float) -> None:
    # Of one event: p, pq, pq(1 − 2p), pq(1 − 6pq), pq(1 − 2p)(1 − 12pq), pq(1 − 30pq + 120p²q²)
    found, v, tilt = cumulants(laws.binomial(trials, mean)), mean * (1 - mean), 1 - 2 * mean
    each = [mean, v, v * tilt, v * (1 - 6 * v), v * tilt * (1 - 12 * v), v * (1 - 30 * v + 120 * v * v)]
    values = [found.mean, found.variance, found.third, found.fourth, found.fifth, found.sixth]
    assert values == pytest.approx([trials * value for value in each], rel=1e-9, abs=1e-9)


def moment(law: Sequence[float], values: Sequence[float], power: int) -> float:
    centre = laws.mean_of(law, values)
    return laws.mean_of(law, [(value - centre) ** power for value in values])


@pytest.mark.parametrize("bend", [0.0, 0.4, -0.7])
@pytest.mark.parametrize(("budget", "mean"), [(None, 0.3), (None, 0.5), (1.0, 0.05), (0.5, 0.7)])
def test_the_moments_of_a_square_by_enumeration(budget: float | None, mean: float, bend: float) -> None:
    law = laws.sent(7, mean, budget)
    centre = laws.mean_of(law, range(8))
    squares = [(z - centre) ** 2 - bend * (z - centre) for z in range(8)]
    expected = moment(law, squares, 2), moment(law, squares, 3)
    assert of_square(cumulants(law), bend) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("mean", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("trials", [2, 7, 30])
def test_without_noise_the_variance_of_a_square_is_tarones(trials: int, mean: float) -> None:
    # The variance n·p·q changes with the mean n·p by 1 − 2p; then Var = 2n(n − 1)·(pq)²
    variance, _ = of_square(cumulants(laws.binomial(trials, mean)), 1 - 2 * mean)
    assert variance / (mean * (1 - mean)) ** 2 == pytest.approx(2 * trials * (trials - 1))


# ---- the statistic


def test_the_statistic_of_two_sites_by_hand() -> None:
    # Sites of 6 events with 5 and 1 successes: p̂ = ½, pq = ¼, (5 − 3)² + (1 − 3)² = 8, 8/¼ = 32.
    # Its mean is Σ n_i(1 − n_i/n) = 2·6·½ = 6, and 1 for the estimated variance: an excess of 25.
    # Its variance is 2·(2·6·5) = 120.
    test = new_test()
    fill(test, 0, [[3, 2], [0, 1]])
    of_arm = test._of_arm(list(test.cells[0].values()))
    assert of_arm is not None
    excess, variance, _ = of_arm
    assert (excess, variance) == pytest.approx((25.0, 120.0), rel=1e-3)


def test_sites_of_different_sizes_by_hand() -> None:
    # 3 of 3, 2 of 10 = 3 + 7, 5 of 7: p̂ = 10/20 = ½. Σ (x − n/2)² = 2.25 + 9 + 2.25 = 13.5, /¼ = 54.
    # Σ n_i(1 − n_i/20) = 20 − (9 + 100 + 49)/20 = 12.1; an excess of 54 − 12.1 − 1 = 40.9
    # Σ 2n(n − 1) = 2·(6 + 90 + 42) = 276
    test = new_test()
    for site, size, successes in [("a", 3, 3), ("b", 3, 1), ("b", 7, 1), ("c", 7, 5)]:
        test.add(site, 1, size, successes)
    of_arm = test._of_arm(list(test.cells[1].values()))
    assert of_arm is not None
    assert of_arm[:2] == pytest.approx((40.9, 276.0), rel=1e-3)


def test_the_score_puts_all_arms_together() -> None:
    test, one, two = new_test(), new_test(), new_test()
    fill(one, 0, [[3, 2], [0, 1]])
    fill(two, 1, [[3, 1, 0], [1, 2, 3], [2, 2, 0]])
    for site, arm, successes in [(0, 0, 3), (0, 0, 2), (1, 0, 0), (1, 0, 1)]:
        test.add(site, arm, 3, successes)
    fill(test, 1, [[3, 1, 0], [1, 2, 3], [2, 2, 0]])
    first, second = one._of_arm(list(one.cells[0].values())), two._of_arm(list(two.cells[1].values()))
    assert first is not None
    assert second is not None
    together = [a + b for a, b in zip(first, second, strict=True)]
    assert test.score() == pytest.approx(normal_score(*together))


def test_the_order_of_tallies_and_sites_does_not_matter() -> None:
    one, two = new_test(privacy_budget=1.0), new_test(privacy_budget=1.0)
    fill(one, 0, [[3, 2, 1], [0, 1, 0]])
    fill(two, 0, [[1, 0, 0], [1, 2, 3]])
    assert one.score() == pytest.approx(two.score())


@pytest.mark.parametrize("budget", [None, 1.0])
def test_where_nothing_can_differ_the_score_is_0(budget: float | None) -> None:
    test = new_test(privacy_budget=budget)
    assert (test.score(), test.agree()) == (0.0, True)
    fill(test, 0, [[3, 2, 0]])  # one site
    fill(test, 1, [[3, 3], [3, 3]])  # successes only
    assert (test.score(), test.agree()) == (0.0, True)


@pytest.mark.parametrize("budget", [0.5, 1.0, 3.0])
def test_with_noise_the_mean_is_the_one_that_explains_the_successes(budget: float) -> None:
    test = new_test(privacy_budget=budget)
    found = test._mean([10, 4, *[0] * (len(test._channels) - 2)], 25, 58)
    assert found is not None
    sent = 10 * laws.mean_of(laws.sent(3, found, budget), range(4))
    sent += 4 * laws.mean_of(laws.sent(7, found, budget), range(8))
    assert sent == pytest.approx(25)


@pytest.mark.parametrize(("budget", "mean"), [(1.0, 0.1), (0.5, 0.5)])
def test_with_noise_the_excess_is_0_on_average(budget: float, mean: float) -> None:
    """By enumeration of all that two sites with two noisy tallies of 3 each can send."""
    law = laws.sent(3, mean, budget)
    of_sum = [math.fsum(law[a] * law[total - a] for a in range(4) if 0 <= total - a <= 3) for total in range(7)]
    found = []
    for one, two in product(range(7), repeat=2):
        test = new_test(privacy_budget=budget)
        for site, total in ((0, one), (1, two)):
            fill(test, 0, [[]] * site + [[min(total, 3), total - min(total, 3)]])
        of_arm = test._of_arm(list(test.cells[0].values()))
        if of_arm is not None:
            found.append((of_sum[one] * of_sum[two], of_arm[0]))
    weights = [weight / math.fsum(weight for weight, _ in found) for weight, _ in found]
    excesses = [excess for _, excess in found]
    assert abs(laws.mean_of(weights, excesses)) < 0.15 * math.sqrt(moment(weights, excesses, 2))


@pytest.mark.parametrize("budget", [None, 0.5, 2.0])
def test_mean_variance_and_third_cumulant_of_the_statistic_are_sums_over_the_sites(budget: float | None) -> None:
    # Two sites with 2 and 4 tallies of 3; everything from the law at the estimated mean p, and from how it changes.
    test = new_test(privacy_budget=budget)
    sites = [[3, 1], [0, 1, 2, 1]]
    fill(test, 0, sites)
    of_arm = test._of_arm(list(test.cells[0].values()))
    mean = test._mean([6, *[0] * (len(test._channels) - 1)], 8, 18)
    assert of_arm is not None
    assert mean is not None
    at, above, below = (cumulants(laws.sent(3, mean + step, budget)) for step in (0.0, 1e-5, -1e-5))
    bend = (above.variance - below.variance) / (above.mean - below.mean)
    unit = 6 * at.variance / 18
    excess, variance, third = -unit, 0.0, 0.0
    for tallies in sites:
        count = len(tallies)
        cell = Cumulants(*(count * getattr(at, name) for name in Cumulants.__dataclass_fields__))
        excess += (sum(tallies) - cell.mean) ** 2 - cell.variance * (1 - count / 6)
        second, skew = of_square(cell, bend)
        variance, third = variance + second, third + skew
    assert of_arm == pytest.approx((excess / unit, variance / unit**2, third / unit**3), rel=2e-3)


# ---- from the statistic to the verdict


def test_without_skewness_the_score_is_the_number_of_standard_deviations() -> None:
    assert normal_score(6.0, 4.0, 0.0) == 3.0
    assert normal_score(5.0, 0.0, 0.0) == 0.0  # nothing can vary


@pytest.mark.parametrize("shape", [2.0, 5.0, 40.0])
@pytest.mark.parametrize("tail", [0.2, 0.01, 0.0005])
def test_a_skewed_number_is_judged_as_a_gamma_law(shape: float, tail: float) -> None:
    # A gamma law of that shape has mean and variance `shape` and third cumulant 2·shape.
    excess = stats.gamma.isf(tail, shape) - shape
    assert normal_score(excess, shape, 2 * shape) == pytest.approx(stats.norm.isf(tail), abs=0.05)


def test_a_number_far_below_its_mean_is_no_error() -> None:
    # 1 − 9/√9·… would be negative: the cube root is of 0, and the score −3·√shape·(1 − 1/(9·shape))
    assert normal_score(-100.0, 4.0, 16.0) == pytest.approx(3 * 1.0 * (-1 + 1 / 9))


@pytest.mark.parametrize(("arms", "most"), [(2, 2), (3, 3), (4, 3), (5, 4), (8, 4), (9, 5), (10, 5), (16, 5), (17, 6)])
def test_the_looks_of_a_task_are_its_announcements_and_share_the_false_alarms(arms: int, most: int) -> None:
    assert looks(arms) == most
    assert new_test(arms).level == pytest.approx(FALSE_ALARM / most)
    # Each announcement leaves at most half of the arms: 1 + log₂ K of them at most, the last leaves one.
    assert most >= math.ceil(math.log2(arms))


def test_sites_that_differ_are_noticed_and_equal_ones_are_not() -> None:
    apart, alike = new_test(), new_test()
    for _ in range(10):
        fill(apart, 0, [[3], [0]])
        fill(apart, 1, [[2], [1]])
        fill(alike, 0, [[3, 0], [0, 3]])
        fill(alike, 1, [[2, 1], [1, 2]])
    assert not apart.agree()
    assert apart.held
    assert apart.score() > 5
    assert alike.agree()
    assert not alike.held
    assert alike.score() < 0


@pytest.mark.parametrize(("factor", "held"), [(1.001, False), (0.999, True)])
def test_the_verdict_changes_where_the_tail_is_the_level(
    factor: float, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = new_test()  # K = 2: two looks
    monkeypatch.setattr(test, "score", lambda: stats.norm.isf(FALSE_ALARM / 2 * factor))
    assert test.agree() == (not held)
    assert test.held == held


def test_while_held_the_sites_are_looked_at_again_after_a_quarter_more_tallies(monkeypatch: pytest.MonkeyPatch) -> None:
    test = new_test()
    looked: list[int] = []

    def score() -> float:
        looked.append(test.tallies)
        return 9.0

    monkeypatch.setattr(test, "score", score)
    for tallies in range(1, 41):
        test.add(0, 0, 3, 1)
        if tallies >= 10:
            assert not test.agree()
    # 1.25·10 = 12.5: 13; 1.25·13 = 16.25: 17; 21.25: 22; 27.5: 28; 35
    assert (PATIENCE, looked) == (1.25, [10, 13, 17, 22, 28, 35])


def test_what_is_held_is_released_when_the_score_has_fallen_far_below_what_held_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    test = new_test()
    held_at = stats.norm.isf(FALSE_ALARM / 2)
    assert held_at > RELEASE + 0.5

    def ask(score: float) -> bool:
        """With so many more tallies that a look is due."""
        monkeypatch.setattr(test, "score", lambda: score)
        for _ in range(2 * test.tallies + 1):
            test.add(0, 0, 3, 1)
        return test.agree()

    assert ask(held_at - 0.01)  # not held yet
    assert not ask(held_at + 0.01)
    assert not ask(held_at - 0.01)
    assert not ask(RELEASE)
    assert ask(RELEASE - 0.01)
    assert not test.held
    assert ask(held_at - 0.01)  # from now on as in the beginning
    assert not ask(held_at + 0.01)


def test_nothing_waits_for_a_look_unless_it_is_held() -> None:
    test = new_test()
    for _ in range(5):
        fill(test, 0, [[1, 2], [2, 1]])
        assert test.agree()
        assert test.agree()


def test_noise_makes_the_same_difference_less_telling() -> None:
    plain, noisy = new_test(), new_test(privacy_budget=0.3)
    for test in (plain, noisy):
        fill(test, 0, [[3, 2, 3], [0, 1, 0]])
    assert plain.score() > noisy.score() > 0


def test_a_glance_is_reckoned_again_when_a_quarter_more_tallies_are_in() -> None:
    sites = Homogeneity(Task(arms=2, players=4, epsilon=0, delta=0.1, protocol="tally"))
    glances = []
    for number in range(100):
        site = number % 4
        sites.add(f"site-{site}", 0, 3, 3 if site < 2 else 0)
        glances.append(sites.glance())
    assert glances[-1] > 5  # two sites see nothing but successes, two nothing but failures
    assert 5 < len(set(glances)) < 25
    assert not sites.held  # for people: no decision depends on it
