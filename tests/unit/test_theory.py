"""The paper's sums as functions."""

from __future__ import annotations

import math

import pytest

from outvote import theory
from outvote.core.schedule import Schedule, paper_log_eta


@pytest.mark.parametrize(
    ("arms", "sizes"), [(10, [10, 5, 3, 2]), (2, [2]), (3, [3, 2]), (7, [7, 4, 2]), (8, [8, 4, 2])]
)
def test_half_of_the_candidates_leave_an_epoch(arms: int, sizes: list[int]) -> None:
    assert theory.candidates_by_epoch(arms) == sizes


@pytest.mark.parametrize(("log_eta", "pulls"), [(math.log(0.05), 82_832), (paper_log_eta(0.05, 64), 53_403)])
def test_pulls_per_player_with_the_papers_constants(log_eta: float, pulls: int) -> None:
    assert theory.pulls_per_player(Schedule(10, 0.5, log_eta)) == pulls


def test_what_identification_costs_at_least() -> None:
    # Two arms: T* = 1/max_w of what is told; for .5 and .45 the two are played almost equally, and each pair of events
    # tells about kl(.5, .475) + kl(.45, .475) = .00125 + .00126; 2·kl(.05, .95)/.00251 = 2·2.650/.00251 = 2112
    assert theory.identification_bound((0.5, 0.45), 0.05) == pytest.approx(2112, rel=0.01)
    # The paper's problems; equal best arms can never be told apart.
    assert theory.identification_bound((0.7, 0.5, 0.3, *(0.1,) * 7), 0.05) == pytest.approx(160, abs=0.5)
    assert theory.identification_bound((0.3, 0.2, *(0.1,) * 8), 0.05) == pytest.approx(597, abs=0.5)
    assert theory.identification_bound((0.5, 0.5, 0.1), 0.05) == math.inf


def test_draws_bound_by_hand() -> None:
    # 1000/.25 + √(1000/2 · ln(2·4/.5)) = 4000 + √(500 · 2.7726) = 4000 + 37.23
    assert theory.draws_bound(1000, 0.25, 4, 0.5) == pytest.approx(4037.23, abs=0.01)
