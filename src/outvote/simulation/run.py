"""`outvote.simulate`: from options to a `Result`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from outvote.simulation.environments import RewardLaw
from outvote.simulation.results import Result, summarise
from outvote.simulation.settings import Settings, read_settings
from outvote.simulation.stepwise import run_trial


def simulate(
    *,
    protocol: str = "dme",
    problem: int | None = None,
    means: Sequence[float] | None = None,
    arms: int | Sequence[str] | None = None,
    players: int = 64,
    activity: str | Sequence[float] | Path = "uniform",
    dead: int = 0,
    active_players: float | None = None,
    instances: int | Sequence[float] | None = None,
    epsilon: float = 0.5,
    delta: float = 0.05,
    quorum: str = "paper",
    code: str = "binary",
    rewards: str | RewardLaw = "bernoulli",
    spread: float = 0.0,
    drift_to: Sequence[float] | None = None,
    horizon: float = 1_000_000,
    trials: int = 100,
    seed: int = 0,
    grid: int = 200,
    engine: str = "auto",
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Run a protocol or a baseline on simulated players and say what it cost.

    `protocol`: dme, edme, me-local, me-unlimited or ucb-unlimited. `problem` 1 or 2 are the paper's; `means` names
    others. `activity`: "uniform", "80-20", a list of weights, or the path of a trace; the last `dead` players never
    wake. `active_players` is N_γ (default: what the activity implies); `edme` takes `instances` instead. `rewards`:
    "bernoulli", "beta:CONCENTRATION" or a function (mean, uniform) -> reward. `spread` gives each player means of its
    own, `drift_to` moves them. The same seed gives the same result. `progress` is told how many draws were made
    since it was last called.
    """
    return run(
        read_settings(
            protocol=protocol,
            problem=problem,
            means=means,
            arms=arms,
            players=players,
            activity=activity,
            dead=dead,
            active_players=active_players,
            instances=instances,
            epsilon=epsilon,
            delta=delta,
            quorum=quorum,
            code=code,
            rewards=rewards,
            spread=spread,
            drift_to=drift_to,
            horizon=horizon,
            trials=trials,
            seed=seed,
            grid=grid,
            engine=engine,
        ),
        progress,
    )


def run(settings: Settings, progress: Callable[[int], None] | None = None) -> Result:
    """Run checked settings. Each trial has its own seed, so results do not depend on who runs which trial."""
    seeds = np.random.SeedSequence(settings.seed).spawn(settings.trials)
    start = time.perf_counter()
    trials = [run_trial(settings, seed, progress or _silent) for seed in seeds]
    return summarise(settings, trials, time.perf_counter() - start)


def _silent(draws: int) -> None:
    """Nobody is watching."""
