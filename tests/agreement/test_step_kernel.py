"""The compiled step kernel against the core, draw for draw on the same random numbers, over many random small tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from outvote.simulation.compiled import run_step
from outvote.simulation.settings import Settings, read_settings
from outvote.simulation.stepwise import run_trial
from outvote.simulation.streams import generator
from outvote.simulation.trials import Trial

TASKS = 120


def random_settings(number: int) -> Settings:
    rng = np.random.default_rng([number, 3])
    protocol = ("dme", "edme", "me-local", "me-unlimited")[number % 4]
    arms, players = int(rng.integers(2, 9)), int(rng.integers(1, 9))
    means = rng.choice([rng.random(arms), np.round(rng.random(arms), 1), rng.integers(0, 2, arms).astype(float)])
    weights = rng.random(players) * (rng.random(players) < 0.8)
    weights[rng.integers(players)] = 1.0
    activity = weights.tolist() if rng.random() < 0.6 else "80-20"
    active_players = float(rng.uniform(0.3, players)) if rng.random() < 0.7 else None
    own: dict[str, Any] = {"active_players": active_players}
    if protocol == "edme":
        own = {"instances": int(rng.integers(1, 9))}
    epsilon, delta = float(rng.uniform(0.8, 0.99)), float(rng.uniform(0.05, 0.99))
    quorum, code = str(rng.choice(["paper", "certified"])), str(rng.choice(["binary", "truncated"]))
    if protocol in ("dme", "edme"):
        own |= {"quorum": quorum, "code": code}
    return read_settings(
        **own,
        protocol=protocol,
        means=means.tolist(),
        players=players,
        activity=activity,
        epsilon=epsilon,
        delta=delta,
        horizon=int(rng.integers(1_000, 8_000)) * int(rng.integers(1, 4)),
        grid=int(rng.integers(1, 60)),
        trials=1,
        engine="fast",
    )


def both(settings: Settings, seed: np.random.SeedSequence) -> tuple[Trial, Trial]:
    return run_trial(settings, seed, lambda draws: None), run_step(settings, 1, generator(seed))[0]


@pytest.mark.parametrize("number", range(TASKS))
def test_kernel_equals_core_draw_for_draw(number: int) -> None:
    core, kernel = both(random_settings(number), np.random.SeedSequence(number))
    assert kernel == core


def test_these_tasks_go_far_enough_to_mean_something() -> None:
    trials = [run_step(random_settings(number), 1, generator(number))[0] for number in range(TASKS)]
    assert sum(trial.finished is not None for trial in trials) > TASKS / 3
    assert sum(len(trial.eliminations) > 1 for trial in trials) > TASKS / 2
    assert sum(trial.finished is not None and trial.all_finished is None for trial in trials) > 3


@pytest.mark.parametrize("protocol", ["dme", "edme"])
@pytest.mark.parametrize("activity", ["uniform", "80-20"])
def test_kernel_equals_core_in_the_papers_setting(protocol: str, activity: str) -> None:
    settings = read_settings(
        protocol=protocol, problem=2, players=4, activity=activity, horizon=250_000, trials=1, engine="fast"
    )
    core, kernel = both(settings, np.random.SeedSequence(9))
    assert kernel == core
    assert core.eliminations


def test_many_arms() -> None:
    """More arms than bits in a word."""
    settings = read_settings(
        means=np.linspace(0, 1, 70).tolist(), players=1, epsilon=0.99, delta=0.99, horizon=60_000, engine="fast"
    )
    core, kernel = both(replace(settings, trials=1), np.random.SeedSequence(4))
    assert kernel == core
    assert len(core.eliminations) >= 34
