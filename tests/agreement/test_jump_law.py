"""The kernels that skip against those that do not: equal in law.

Two-sample tests on regret at grid points, first elimination, the three ends, bits, and what remains. A test here raises
an alarm at p < `laws.ALARM` = 1e-4 / 3000; fewer than 3000 comparisons are made, so the whole file gives a false alarm
with probability below 1e-4. Seeds are fixed. `test_power` shows what differences the tests see.

What two samples of n and m trials tell apart depends on n·m / (n + m): where one kernel needs far less time for a trial
than the other, it runs several times as many.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from outvote.simulation.compiled import Inputs, run_jump, run_step
from outvote.simulation.settings import Settings, read_settings
from outvote.simulation.stepwise import run_trial
from outvote.simulation.streams import generator
from outvote.simulation.trials import Trial

from .laws import ALARM, assert_same_law, p_values, seeds

TRIALS = 2_500
"""In corner cases, and in `test_power`, whose p-values stayed below 1e-15 with 30 other pairs of seeds."""

TINY = (2, 3, 4, 6, 9, 13, 19, 28, 42, 63, 94, 141)
"""Epochs so short that everything happens within a few draws."""

CORNERS: dict[str, dict[str, Any]] = {
    "two arms": dict(means=(0.6, 0.4), players=3, horizon=120),
    "three arms": dict(means=(0.7, 0.5, 0.3), players=4, horizon=300),
    "seven arms": dict(means=(0.9, 0.8, 0.6, 0.5, 0.3, 0.2, 0.1), players=5, horizon=900),
    "sixty-four arms": dict(means=tuple(k / 63 for k in range(64)), players=2, horizon=2_500, trials=2_000),
    "one player": dict(means=(0.6, 0.5, 0.2), players=1, horizon=120),
    "N_γ = 1": dict(means=(0.6, 0.5, 0.2, 0.1), players=6, active_players=1, horizon=400),
    "N_γ between": dict(means=(0.6, 0.5, 0.2, 0.1), players=6, active_players=3.5, horizon=500),
    "dead players": dict(means=(0.6, 0.5, 0.2), players=6, dead=3, active_players=3, horizon=300),
    "uneven": dict(means=(0.8, 0.4, 0.1), players=4, activity=(10, 3, 0, 1), active_players=3, horizon=400),
    "80-20": dict(means=(0.7, 0.5, 0.3, 0.1), players=10, activity="80-20", horizon=600),
    "favourites differ": dict(means=(0.5, 0.5, 0.5, 0.5), players=3, active_players=2, horizon=250),
    "certain rewards": dict(means=(1.0, 1.0, 0.0, 0.5), players=3, horizon=250),
    "more players than draws": dict(means=(0.9, 0.5, 0.1), players=150, active_players=2, horizon=300, grid=5),
    "ε excludes arms": dict(means=(0.9, 0.6, 0.3, 0.2), players=4, epsilon=0.4, horizon=400),
    "one grid point": dict(means=(0.7, 0.5, 0.3, 0.1), players=5, horizon=500, grid=1),
}


def tiny(settings: Settings) -> Inputs:
    """The settings' inputs with tiny epochs; later instances have longer ones, as smaller N_γ do."""
    inputs = Inputs.of(settings)
    rows = [[pulls + instance for pulls in TINY] for instance in range(len(inputs.needed))]
    return replace(inputs, needed=np.array([row + [1 << 40] * 60 for row in rows]))


@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("protocol", ["dme", "edme 2", "edme 8", "me-local", "me-unlimited"])
def test_jump_equals_step_in_corner_cases(protocol: str, corner: str) -> None:
    options = {"grid": 6, "trials": TRIALS, "epsilon": 0.25, **CORNERS[corner]}
    protocol, _, instances = protocol.partition(" ")
    if protocol == "edme":
        options.pop("active_players", None)
        options["instances"] = int(instances)
    settings = read_settings(protocol=protocol, engine="fast", **options)
    count = settings.trials
    jump = run_jump(settings, count, generator(11), tiny(settings))
    step = run_step(settings, count, generator(12), tiny(settings))
    assert_same_law(jump, step)


def test_corner_cases_reach_what_they_are_for() -> None:
    def of(corner: str, count: int = 500, **more: Any) -> list[Trial]:
        settings = read_settings(**{"grid": 6, "epsilon": 0.25, "engine": "fast", **CORNERS[corner], **more})
        return run_jump(settings, count, generator(13), tiny(settings))

    assert np.mean([trial.finished is not None for trial in of("seven arms")]) > 0.5
    assert np.mean([trial.solved is not None for trial in of("ε excludes arms")]) > 0.3
    assert all(trial.all_finished is None for trial in of("dead players"))
    assert np.mean([trial.finished is not None for trial in of("dead players")]) > 0.5
    assert np.mean([not trial.safe for trial in of("favourites differ", means=(0.5, 0.5, 0.5, 0.2))]) < 0.2
    winners = Counter(trial.best for trial in of("three arms"))
    assert len(winners) == 2  # with epochs this short the best arm is lost now and then
    assert any(trial.finished != trial.all_finished for trial in of("80-20"))


PAPER = [  # so many trials step by step
    ("dme", 1, "uniform", 64, 10**6, 70),
    ("dme", 2, "80-20", 64, 10**6, 70),
    ("dme", 2, "uniform", 4, 300_000, 220),
    ("edme", 1, "80-20", 256, 10**6, 55),
    ("edme", 2, "80-20", 64, 10**6, 55),
    ("me-local", 1, "uniform", 16, 10**6, 70),
    ("me-local", 2, "80-20", 64, 10**6, 70),
    ("me-unlimited", 1, "uniform", 64, 100_000, 550),
]
MORE = 20
"""Times as many trials with jumps. 70 and 1,400 tell two laws apart that differ by .37 somewhere (Kolmogorov and
Smirnov's distance at `ALARM`); corner cases see .09. Here it is shown that the paper's sizes reach the same code."""


@pytest.mark.parametrize(("protocol", "problem", "activity", "players", "horizon", "count"), PAPER)
def test_jump_equals_step_in_the_papers_settings(
    protocol: str, problem: int, activity: str, players: int, horizon: int, count: int
) -> None:
    settings = read_settings(
        protocol=protocol, problem=problem, activity=activity, players=players, horizon=horizon, grid=20, engine="fast"
    )
    assert_same_law(run_jump(settings, MORE * count, generator(31)), run_step(settings, count, generator(32)))


@pytest.mark.parametrize("means", [(0.7, 0.5, 0.1), (0.3, 0.29), (0.9, 0.0, 1.0), (0.5,) * 6])
def test_skipping_ucb_equals_ucb_play_by_play(means: tuple[float, ...]) -> None:
    settings = read_settings(protocol="ucb-unlimited", means=means, players=3, horizon=400, grid=8, engine="fast")
    step = [run_trial(settings, seed, lambda draws: None) for seed in seeds(425, 41)]
    assert_same_law(run_jump(settings, 6_500, generator(42)), step)  # as good as 800 of each


@pytest.mark.parametrize("problem", [1, 2])
def test_skipping_ucb_equals_ucb_play_by_play_where_it_skips_far(problem: int) -> None:
    settings = read_settings(protocol="ucb-unlimited", problem=problem, horizon=20_000, grid=10, engine="fast")
    step = [run_trial(settings, seed, lambda draws: None) for seed in seeds(50, 43)]
    assert_same_law(run_jump(settings, 1_500, generator(44)), step)


@pytest.mark.parametrize("flaw", ["best mean off by .03", "one pull less in the second epoch", "quorum of one more"])
def test_power(flaw: str) -> None:
    """Kernels that differ by so little are told apart."""
    settings = read_settings(
        means=(0.7, 0.5, 0.3, 0.1), players=6, active_players=4, horizon=500, grid=6, epsilon=0.25, engine="fast"
    )
    right = tiny(settings)
    wrong = {
        "best mean off by .03": replace(right, means=right.means - 0.03 * (np.arange(4) == 0)),
        "one pull less in the second epoch": replace(right, needed=right.needed - (np.arange(72) == 1)),
        "quorum of one more": replace(right, quorums=right.quorums + 2),
    }[flaw]
    jump, step = run_jump(settings, TRIALS, generator(51), wrong), run_step(settings, TRIALS, generator(52), right)
    assert min(p_values(jump, step).values()) < ALARM
