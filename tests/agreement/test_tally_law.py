"""The kernel that skips, for Tally, against the core's own objects: equal in law.

Comparisons and alarms as in `laws`; this file makes fewer than 1500, at 1e-4 / 3000 each, so it gives a false alarm
with probability below 5e-5. Seeds are fixed. `test_power` shows what differences the tests see.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from outvote.core.tally import homogeneity
from outvote.simulation.compiled_tally import run_tally
from outvote.simulation.settings import Settings, read_settings
from outvote.simulation.stepwise import run_trial
from outvote.simulation.streams import generator
from outvote.simulation.trials import Trial

from .laws import ALARM, assert_same_law, p_values, seeds

TRIALS = 250
"""Of the core, in corner cases: with 6,000 that skip they tell two laws apart that differ by .2 somewhere (Kolmogorov
and Smirnov's distance at `ALARM`)."""

CORNERS: dict[str, dict[str, Any]] = {
    "two arms": dict(means=(0.8, 0.3), players=3, horizon=250),
    "three arms": dict(means=(0.9, 0.5, 0.3), players=4, horizon=300),
    "seven arms": dict(means=(0.95, 0.8, 0.6, 0.5, 0.3, 0.2, 0.05), players=5, horizon=700),
    "one player": dict(means=(0.9, 0.5, 0.2), players=1, horizon=300),
    "more players than arms": dict(means=(0.9, 0.4), players=30, horizon=400),
    "dead players": dict(means=(0.9, 0.5, 0.2), players=6, dead=3, horizon=300),
    "uneven": dict(means=(0.9, 0.4, 0.1), players=4, activity=(10, 3, 0, 1), horizon=400),
    "80-20": dict(means=(0.9, 0.5, 0.3, 0.1), players=10, activity="80-20", horizon=500),
    "equal arms": dict(means=(0.5, 0.5, 0.5), players=3, horizon=300),
    "certain rewards": dict(means=(1.0, 1.0, 0.0, 0.5), players=3, horizon=250),
    "more players than draws": dict(means=(0.95, 0.5, 0.1), players=150, horizon=900, grid=5),
    "a floor of two": dict(means=(0.9, 0.5, 0.3), players=4, floor=2, horizon=300),
    "a high floor": dict(means=(0.9, 0.4, 0.3), players=3, floor=31, horizon=900),
    "sizes grow": dict(means=(0.6, 0.5), players=1, floor=2, horizon=500),
    "one grid point": dict(means=(0.9, 0.5, 0.3), players=5, horizon=300, grid=1),
    "every draw a grid point": dict(means=(0.9, 0.3), players=4, horizon=60, grid=60),
    "ε ends it": dict(means=(0.6, 0.55, 0.5), players=4, epsilon=0.4, horizon=500),
    "ε excludes arms": dict(means=(0.9, 0.8, 0.2), players=4, epsilon=0.2, horizon=500),
    "a privacy budget": dict(means=(0.95, 0.3), players=3, floor=7, privacy_budget=1.0, horizon=400),
    "a small budget and ε": dict(means=(0.9, 0.2), players=3, floor=15, privacy_budget=0.4, epsilon=0.3, horizon=700),
    "arms named": dict(means=(0.9, 0.5, 0.2), players=4, code="binary", horizon=300),
}


def of(**options: Any) -> Settings:
    chosen = {"protocol": "tally", "delta": 0.2, "grid": 4, "trials": TRIALS, "engine": "fast", **options}
    return read_settings(**chosen)


def by_core(settings: Settings, key: int) -> list[Trial]:
    return [run_trial(settings, seed, lambda draws: None) for seed in seeds(settings.trials, key)]


@pytest.mark.parametrize("corner", CORNERS)
def test_jump_equals_core_in_corner_cases(corner: str) -> None:
    settings = of(**CORNERS[corner])
    assert_same_law(run_tally(settings, 6_000, generator(61)), by_core(settings, 62))


@pytest.mark.parametrize("budget", [None, 1.0])
def test_jump_holds_back_as_often_as_core(monkeypatch: pytest.MonkeyPatch, budget: float | None) -> None:
    """With a false-alarm rate of 30 % decisions are held back, and released, often enough to compare."""
    monkeypatch.setattr(homogeneity, "FALSE_ALARM", 0.9)
    monkeypatch.setattr(homogeneity, "RELEASE", 0.3)
    settings = of(means=(0.9, 0.4, 0.3), players=8, floor=7, privacy_budget=budget, horizon=900, grid=8, trials=200)
    jump, core = run_tally(settings, 6_000, generator(63)), by_core(settings, 64)
    assert 0.02 < np.mean([trial.held for trial in jump]) < 0.9
    assert_same_law(jump, core)


@pytest.mark.parametrize(("problem", "activity"), [(1, "uniform"), (1, "80-20"), (2, "80-20")])
def test_jump_equals_core_in_the_papers_settings(problem: int, activity: str) -> None:
    settings = of(problem=problem, activity=activity, players=64, delta=0.05, horizon=4_000, grid=10, trials=120)
    assert_same_law(run_tally(settings, 4_000, generator(65)), by_core(settings, 66))


def test_corner_cases_reach_what_they_are_for() -> None:
    def trials(corner: str) -> list[Trial]:
        return run_tally(of(**CORNERS[corner]), 500, generator(67))

    assert np.mean([trial.finished is not None for trial in trials("seven arms")]) > 0.3
    assert np.mean([trial.finished is not None for trial in trials("one player")]) > 0.5
    assert all(trial.all_finished is None for trial in trials("dead players"))
    assert np.mean([trial.finished is not None for trial in trials("ε ends it")]) > 0.3
    assert np.mean([trial.solved is not None for trial in trials("ε excludes arms")]) > 0.3
    assert np.mean([trial.finished is not None for trial in trials("a privacy budget")]) > 0.3
    assert 0 < np.mean([trial.finished is not None for trial in trials("equal arms")]) < 0.5
    assert any(trial.finished != trial.all_finished for trial in trials("80-20"))


@pytest.mark.parametrize("flaw", ["best mean off by .08", "a floor of two more", "a looser threshold"])
def test_power(flaw: str) -> None:
    """Kernels that differ by so little are told apart by twice as many trials: p was below 1e-10 with 6 other seeds."""
    right: dict[str, Any] = dict(means=(0.8, 0.5, 0.3), players=6, horizon=500, floor=5)
    flaws: dict[str, dict[str, Any]] = {
        "best mean off by .08": {"means": (0.72, 0.5, 0.3)},
        "a floor of two more": {"floor": 7},
        "a looser threshold": {"delta": 0.4},
    }
    settings = of(**right, trials=2 * TRIALS)
    jump = run_tally(of(**{**right, **flaws[flaw]}), 6_000, generator(68))
    assert min(p_values(jump, by_core(settings, 69)).values()) < ALARM
