"""What a block pays is the mean over all ways to match, to the last digits of a floating-point number."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from benchmarks.validity.enumerations import unequal_to_matching
from benchmarks.validity.exact import bet
from outvote.core.blocks.bets import STAKES, WEIGHTS, log_factors, log_mean


def test_the_literal_bet_is_the_mean_over_all_ways_to_match() -> None:
    assert unequal_to_matching(3) == (243, 0)


@pytest.mark.parametrize(
    ("counts", "paid"),
    [
        ((1, 0, 1, 1), lambda b: 1 + b),
        ((1, 1, 1, 0), lambda b: 1 - b),
        ((1, 1, 1, 1), lambda b: 1),
        ((3, 3, 3, 0), lambda b: (1 - b) ** 3),
        # one success each: in one way of two they are matched, in the other both pairs differ
        ((2, 1, 2, 1), lambda b: (1 + (1 - b) * (1 + b)) / 2),
        # the single decision of the suspect failed: it meets the rival's success in one way of three
        ((1, 0, 3, 1), lambda b: 1 + b / 3),
        ((3, 1, 1, 0), lambda b: 1 - b / 3),
    ],
)
def test_small_blocks_by_hand(counts: tuple[int, int, int, int], paid: object) -> None:
    first, second = log_factors(*counts)
    assert callable(paid)
    assert first == pytest.approx([math.log(paid(stake)) for stake in STAKES], rel=1e-12, abs=1e-15)
    assert second == pytest.approx([math.log(paid(-stake)) for stake in STAKES], rel=1e-12, abs=1e-15)


def test_bets_are_those_of_the_literal_writing() -> None:
    stakes = [Fraction(stake) for stake in STAKES]
    for decided, other in [*itertools.product(range(1, 5), repeat=2), (7, 7), (3, 12), (12, 7)]:
        for own, others in itertools.product(range(decided + 1), range(other + 1)):
            first, second = log_factors(decided, own, other, others)
            for i, stake in list(enumerate(stakes))[:: 6 if decided > 4 else 3]:
                for log, paid in (
                    (first[i], bet(decided, own, other, others, stake)),
                    (second[i], bet(other, others, decided, own, stake)),
                ):
                    assert math.exp(log) == pytest.approx(float(paid), rel=1e-12)


@pytest.mark.parametrize("size", [127, 255])
def test_the_largest_blocks_pay_neither_0_nor_infinity(size: int) -> None:
    for own, others in ((0, size), (size, 0), (size, size), (size // 2, size // 3)):
        for logs in (*log_factors(size, own, size, others), *log_factors(3, min(own, 3), size, others)):
            assert all(map(math.isfinite, logs))
    assert log_factors(size, size, size, 0)[0][0] == pytest.approx(size * math.log1p(-STAKES[0]))


def test_there_are_fourteen_stakes_and_their_weights_make_one() -> None:
    assert len(STAKES) == len(WEIGHTS) == 14
    assert math.fsum(WEIGHTS) == pytest.approx(1)
    for i, (stake, weight) in enumerate(zip(STAKES, WEIGHTS, strict=True)):
        assert -math.log((1 - stake) / (1 + stake)) == pytest.approx(3.5 / 2**i)
        exponent = -0.25 * (6 - i) if i <= 6 else -0.9 * (i - 6)
        assert weight / WEIGHTS[6] == pytest.approx(math.exp(exponent))


def test_a_mean_of_logarithms_is_taken_without_overflow() -> None:
    assert log_mean([1e5, 1e5 - math.log(3)], [0.5, 0.5]) == pytest.approx(1e5 + math.log(2 / 3))
    assert log_mean([-1e5, -2e5], [0.5, 0.5]) == pytest.approx(-1e5 - math.log(2))
