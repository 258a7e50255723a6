"""Bets: what they pay by hand, and that none is worth more than its price where what it is against is true.

The fairness of a round is checked exactly: the mean payment is a finite sum over all tallies of both arms.
"""

from __future__ import annotations

import math
from itertools import pairwise, product

import pytest

from outvote.core.tally import bets as module
from outvote.core.tally.bets import (
    CENTRES,
    EFFECTS,
    MARGINS,
    TOLERANCE,
    bets,
    border_mean,
    largest_mean_payment,
    means_bet_on,
    wealth,
)
from outvote.core.tally.noise import Channel

from . import laws

ALL = [
    *product([2, 3, 7], [None, 0.5, 1.0, 3.0], [0.0, 0.05, 0.9]),
    *product([15], [None, 1.0], [0.0, 0.3]),
    (127, None, 0.0),
]
IDS = [f"size {size}, budget {budget}, epsilon {epsilon}" for size, budget, epsilon in ALL]
MEANS = [index / 20 for index in range(21)] + [0.001, 0.01, 0.99, 0.999]


# ---- by hand


def test_wealth_is_the_logarithm_of_the_weighted_payments() -> None:
    # ½·2·3 + ½·4·½ = 4
    half = math.log(0.5)
    assert wealth([half, half], [math.log(2), math.log(4)], [math.log(3), half]) == pytest.approx(math.log(4))
    # Fortunes beyond what a floating-point number can hold: ln(½·e^2000·e^0 + ½·1) = 2000 − ln 2
    assert wealth([half, half], [2000.0, 0.0], [0.0, 0.0]) == pytest.approx(2000 + half)
    assert wealth([half, half], [-2000.0, -2000.0], [0.0, 0.0]) == pytest.approx(-2000.0)


def test_the_stakes_add_up_to_1() -> None:
    for size, budget, epsilon in [(3, None, 0.0), (3, 1.0, 0.0), (3, None, 0.2)]:
        assert math.fsum(map(math.exp, bets(size, budget, epsilon).log_weights)) == pytest.approx(1.0)


def test_there_is_a_bet_for_every_centre_and_effect() -> None:
    # stakes 1 + 2 + 2 + 2 + 1 = 8, parts 1 + 2 + 4 + 2 = 9: of 72 in all, 2·4 on even odds and a log odds ratio of .9
    chosen = means_bet_on(0.0)
    assert len(chosen) == len(CENTRES) * len(EFFECTS) == 20
    low, high, stake = chosen[2 * 4 + 2]
    assert (low, high) == pytest.approx((1 / (1 + math.exp(0.45)), 1 / (1 + math.exp(-0.45))))
    assert stake == 8.0
    assert bets(3, None, 0.0).log_weights[2 * 4 + 2] == pytest.approx(math.log(8 / 72))


def test_the_bets_of_the_epsilon_stop_lie_around_the_centres() -> None:
    chosen = means_bet_on(0.2)
    assert len(chosen) == len(CENTRES) * len(MARGINS) == 15
    # margins −½, 0, ½ of .2: high − low is −.1, 0, .1
    assert [high - low for low, high, _ in chosen] == pytest.approx([-0.1, 0.0, 0.1] * 5)
    assert chosen[3 * 2 + 2][:2] == pytest.approx((0.45, 0.55))
    assert all(0 < low < 1 and 0 < high < 1 for low, high, _ in means_bet_on(0.99))


def test_the_payments_of_one_bet_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    # Log odds ∓ln 3: means ¼ and ¾, border ½. A tally of two with z successes pays (½)^z·(3/2)^(2−z) where it is the
    # suspect's, (3/2)^z·(½)^(2−z) where it is the rival's.
    monkeypatch.setattr(module, "CENTRES", {0.0: 1.0})
    monkeypatch.setattr(module, "EFFECTS", {2 * math.log(3): 1.0})
    table = bets.__wrapped__(2, None, 0.0)
    assert table.log_weights == (0.0,)
    assert [math.exp(row[0]) for row in table.worse] == pytest.approx([9 / 4, 3 / 4, 1 / 4])
    assert [math.exp(row[0]) for row in table.better] == pytest.approx([1 / 4, 3 / 4, 9 / 4])


def test_the_payments_of_every_bet_are_ratios_of_likelihoods() -> None:
    for index, (low, high, _) in enumerate(means_bet_on(0.0)):
        border = (low + high) / 2
        for z in range(8):
            p, q = laws.binomial(7, low)[z], laws.binomial(7, border)[z]
            assert math.exp(bets(7, None, 0.0).worse[z][index]) == pytest.approx(p / q)
            p = laws.binomial(7, high)[z]
            assert math.exp(bets(7, None, 0.0).better[z][index]) == pytest.approx(p / q)


def test_the_border_is_where_the_two_parts_balance() -> None:
    assert border_mean(0.2, 0.5, 0.0) == 0.35
    # By symmetry: a = .4, b = .6, ε = .2: c' + ε and c' lie at equal distances from ½, so c' = .4
    assert border_mean(0.4, 0.6, 0.2) == pytest.approx(0.4)
    for low, high, epsilon in [(0.3, 0.35, 0.1), (0.02, 0.02, 0.3), (0.7, 0.6, 0.25)]:
        border = border_mean(low, high, epsilon)

        def fit(rival: float, low: float = low, high: float = high, epsilon: float = epsilon) -> float:
            """E ln p at a point of the border, which is largest at the nearest."""
            return sum(
                mean * math.log(at) + (1 - mean) * math.log(1 - at)
                for mean, at in ((low, rival + epsilon), (high, rival))
            )

        assert fit(border) > max(fit(border - 1e-4), fit(border + 1e-4))


# ---- fairness


@pytest.mark.parametrize(("size", "budget", "epsilon"), ALL, ids=IDS)
def test_no_bet_is_worth_more_than_its_price_where_the_suspect_is_better(
    size: int, budget: float | None, epsilon: float
) -> None:
    table = bets(size, budget, epsilon)
    suspects = [mean for mean in MEANS if mean >= epsilon]
    suspects += [mean + epsilon for mean in MEANS if mean + epsilon <= 1]  # the border itself
    law = {mean: laws.sent(size, mean, budget) for mean in {*MEANS, *suspects}}
    for index in range(len(table.log_weights)):
        worse = [math.exp(row[index]) for row in table.worse]
        better = [math.exp(row[index]) for row in table.better]
        of_suspect = {mean: laws.mean_of(law[mean], worse) for mean in suspects}
        of_rival = {mean: laws.mean_of(law[mean], better) for mean in MEANS}
        most = max(of_suspect[k] * of_rival[j] for k in suspects for j in MEANS if k >= j + epsilon - 1e-15)
        assert most <= 1 + 1e-12


@pytest.mark.parametrize(("size", "budget", "epsilon"), ALL, ids=IDS)
def test_every_bet_pays_for_what_it_is_on(size: int, budget: float | None, epsilon: float) -> None:
    """Were payments scaled down too far, bets would be fair and useless: on average their logarithm must grow.

    What is taken off where there is noise may exceed the growth of the smallest effects at the most extreme centres.
    """
    table = bets(size, budget, epsilon)
    for index, (low, high, _) in enumerate(means_bet_on(epsilon)):
        growth = laws.mean_of(laws.sent(size, low, budget), [row[index] for row in table.worse]) + laws.mean_of(
            laws.sent(size, high, budget), [row[index] for row in table.better]
        )
        assert growth > (0.0 if budget is None else -TOLERANCE * size)


@pytest.mark.parametrize(("size", "budget", "epsilon"), ALL, ids=IDS)
def test_a_success_of_the_suspect_pays_less_and_one_of_the_rival_more(
    size: int, budget: float | None, epsilon: float
) -> None:
    table = bets(size, budget, epsilon)
    slack = 0.0 if budget is None else 1e-14  # far from both means, noise explains one success as well as the next
    for fewer, more in pairwise(table.worse):
        assert all(a > b - slack for a, b in zip(fewer, more, strict=True))
    for fewer, more in pairwise(table.better):
        assert all(a < b + slack for a, b in zip(fewer, more, strict=True))


@pytest.mark.parametrize("budget", [0.5, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_the_largest_mean_payment_is_bounded_from_above_and_closely(budget: float, epsilon: float) -> None:
    # Payments e^(±z/2), with a maximum well above 1.
    size = 7
    channel = Channel(size, budget)
    worse, better = [math.exp(-z / 2) * 3 for z in range(size + 1)], [math.exp(z / 2) for z in range(size + 1)]
    found = largest_mean_payment(channel, worse, better, epsilon)
    steps = 400
    on_grid = max(
        laws.mean_of(laws.sent(size, j + epsilon, budget), worse) * laws.mean_of(laws.sent(size, j, budget), better)
        for j in [(1 - epsilon) * step / steps for step in range(steps + 1)]
    )
    assert on_grid <= found <= on_grid * 1.001
    assert largest_mean_payment(channel, [0.1] * (size + 1), [0.1] * (size + 1), epsilon) == 1.0  # never raised
