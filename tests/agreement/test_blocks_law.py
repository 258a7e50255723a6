"""The kernel of `blocks` against the core's own objects: equal in law. Its parts are compared in `test_blocks_kernel`.

Comparisons and alarms as in `laws`: a test of two laws makes at most 30, at 1e-4 / 3000 each, so it gives a false alarm
with probability of at most 1e-6. Seeds are fixed. `test_power` shows what differences the tests see.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from outvote.simulation.compiled_blocks import run_blocks
from outvote.simulation.settings import Settings, read_settings
from outvote.simulation.stepwise import run_trial
from outvote.simulation.streams import generator
from outvote.simulation.trials import Trial

from .laws import ALARM, assert_same_law, p_values, seeds

TRIALS = 250
"""Of the core: with 6,000 of the kernel they tell two laws apart that differ by .2 somewhere (Kolmogorov and Smirnov's
distance at `ALARM`)."""
SITES = (0.9, 0.5, 0.3)

CORNERS: dict[str, dict[str, Any]] = {
    "two arms": dict(means=(0.8, 0.3), players=3, horizon=250),
    "three arms": dict(means=SITES, players=4, horizon=300),
    "seven arms": dict(means=(0.95, 0.8, 0.6, 0.5, 0.3, 0.2, 0.05), players=5, horizon=1_000),
    "twelve arms": dict(means=(0.95, *(0.3,) * 10, 0.05), players=3, horizon=1_000),
    "one player": dict(means=(0.9, 0.5, 0.2), players=1, horizon=300),
    "more players than arms": dict(means=(0.9, 0.4), players=30, horizon=500),
    "dead players": dict(means=(0.9, 0.5, 0.2), players=6, dead=3, horizon=300),
    "uneven": dict(means=(0.9, 0.4, 0.1), players=4, activity=(10, 3, 0, 1), horizon=400),
    "80-20": dict(means=(0.9, 0.5, 0.3, 0.1), players=10, activity="80-20", horizon=600),
    "equal arms": dict(means=(0.5, 0.5, 0.5), players=3, horizon=400),
    "certain rewards": dict(means=(1.0, 1.0, 0.0, 0.5), players=3, horizon=300),
    "more players than draws": dict(means=(0.95, 0.5, 0.1), players=150, horizon=900, grid=5),
    "a floor of one": dict(means=SITES, players=4, floor=1, horizon=250),
    "a floor between the rungs": dict(means=SITES, players=4, floor=5, horizon=400),
    "a high floor": dict(means=(0.9, 0.4, 0.3), players=3, floor=31, horizon=900),
    "sizes grow": dict(means=(0.6, 0.5), players=1, floor=2, horizon=900, trials=150),
    "one grid point": dict(means=SITES, players=5, horizon=300, grid=1),
    "every draw a grid point": dict(means=(0.95, 0.05), players=1, floor=1, delta=0.4, horizon=15, grid=15),
    "ε": dict(means=(0.9, 0.8, 0.2), players=4, epsilon=0.2, horizon=400),
    "an age in draws": dict(means=(0.6, 0.5, 0.4), players=6, floor=1, horizon=600, parameters={"block_age": 0.05}),
    "levels differ by site": dict(means=SITES, players=8, horizon=500, site_spread=1.5),
    "arms differ by site": dict(means=(0.8, 0.5, 0.4), players=8, horizon=500, spread=1.0, site_spread=0.5),
    "a row for each site": dict(means=((0.9, 0.5, 0.1), (0.2, 0.3, 0.1), (0.8, 0.1, 1.0)), players=3, horizon=500),
    "visitors": dict(means=(0.8, 0.5, 0.3), players=4, horizon=400, visits=8, visitor_spread=2.0),
    "visitors who stay": dict(means=(0.55, 0.5, 0.45), players=3, horizon=500, visits=40, visitor_spread=3.0),
    "visitors of one visit": dict(means=(1.0, 0.5, 0.0), players=4, horizon=400, visits=1, visitor_spread=2.0),
    "visitors who prefer nothing": dict(means=SITES, players=4, horizon=300, visits=5),
    "quiet sites": dict(means=(0.6, 0.5, 0.4), players=6, floor=1, horizon=600, per_day=7),
    "quiet and busy sites": dict(means=(0.7, 0.4), players=10, activity="80-20", floor=2, horizon=800, per_day=12),
    "busy days": dict(means=SITES, players=4, horizon=300, per_day=100_000),
    "a week of one site": dict(means=(0.6, 0.5), players=1, horizon=900, per_day=40, trials=150),
    "everything at once": dict(
        means=(0.8, 0.5, 0.4, 0.3), players=6, activity=(5, 1, 1, 2, 2, 0), floor=1, horizon=900, per_day=15,
        site_spread=1.0, spread=0.2, visits=3, visitor_spread=1.0,
    ),
}  # fmt: skip


def of(**options: Any) -> Settings:
    chosen = {"protocol": "blocks", "delta": 0.2, "grid": 4, "trials": TRIALS, "engine": "fast", **options}
    return read_settings(**chosen)


def by_core(settings: Settings, key: int) -> list[Trial]:
    return [run_trial(settings, seed, lambda draws: None) for seed in seeds(settings.trials, key)]


@pytest.mark.parametrize("corner", CORNERS)
def test_the_kernel_equals_core(corner: str) -> None:
    settings = of(**CORNERS[corner])
    fast, core = run_blocks(settings, 6_000, generator(81)), by_core(settings, 82)
    assert_same_law(fast, core)
    table = [[sum(trial.lost == lost for trial in trials) for lost in (False, True)] for trials in (fast, core)]
    assert stats.fisher_exact(table).pvalue >= ALARM


@pytest.mark.parametrize(("problem", "activity"), [(1, "uniform"), (2, "80-20")])
def test_the_kernel_equals_core_in_the_papers_settings(problem: int, activity: str) -> None:
    settings = of(problem=problem, activity=activity, players=64, delta=0.05, horizon=4_000, grid=10, trials=100)
    assert_same_law(run_blocks(settings, 2_000, generator(83)), by_core(settings, 84))


def test_corner_cases_reach_what_they_are_for() -> None:
    def trials(corner: str) -> list[Trial]:
        return run_blocks(of(**CORNERS[corner]), 500, generator(85))

    def share(corner: str, name: str) -> float:
        return float(np.mean([getattr(trial, name) not in (None, False) for trial in trials(corner)]))

    for corner in ("seven arms", "twelve arms", "sizes grow", "levels differ by site", "visitors", "quiet sites"):
        assert share(corner, "finished") > 0.2
    assert 0.2 < share("visitors who stay", "lost") < 0.8
    assert share("every draw a grid point", "finished") > 0.2
    assert share("ε", "solved") > 0.3
    assert share("dead players", "all_finished") == 0
    assert any(trial.finished != trial.all_finished for trial in trials("80-20"))
    for corner, without in (("quiet sites", {"per_day": None}), ("an age in draws", {"parameters": None})):
        ageless = run_blocks(of(**{**CORNERS[corner], **without}), 500, generator(85))
        blocks = [np.mean([trial.costs.up_messages for trial in found]) for found in (ageless, trials(corner))]
        assert blocks[1] > 1.5 * blocks[0]


FLAWS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "best mean off by .08": ({}, {"means": (0.72, 0.5, 0.3)}),
    "a floor of two more": ({}, {"floor": 5}),
    "a looser threshold": ({}, {"delta": 0.4}),
    "levels alike": ({"site_spread": 1.5}, {"site_spread": 0}),
    "visitors of one visit": ({"visits": 10, "visitor_spread": 2.0}, {"visits": 1}),
    "days of two decisions more": ({"means": (0.6, 0.5, 0.4), "floor": 1, "per_day": 7}, {"per_day": 9}),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_power(flaw: str) -> None:
    """Kernels that differ by so little are told apart by twice as many trials of the core."""
    right, wrong = FLAWS[flaw]
    right = dict(means=(0.8, 0.5, 0.3), players=6, horizon=500, floor=3) | right
    fast = run_blocks(of(**right | wrong), 6_000, generator(87))
    assert min(p_values(fast, by_core(of(**right, trials=2 * TRIALS), 86)).values()) < ALARM
