"""Which engine runs a trial: core objects step by step, the compiled step kernel, or the kernels that skip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from outvote.simulation import compiled, stepwise
from outvote.simulation.settings import Settings
from outvote.simulation.trials import Trial

CHUNK_SECONDS = 0.2
"""About how long a kernel may run before it comes back to say how far it is and to hear of Ctrl-C."""
DRAWS_PER_SECOND = {"step": 5e5, "compiled": 5e7, "jump": 1e9}
"""Rough and low."""


def run_trials(settings: Settings, which: Sequence[int], advance: Callable[[int], None]) -> list[Trial]:
    """Run some of a setting's trials, named by their numbers; `advance` is told of draws as they are done.

    Trial i has the i-th child of the setting's seed, so it does not matter who runs it with which others.
    """
    seeds = [np.random.SeedSequence(settings.seed, spawn_key=(trial,)) for trial in which]
    if settings.engine == "step":
        return [stepwise.run_trial(settings, seed, advance) for seed in seeds]
    run = compiled.run_step if settings.engine == "compiled" else compiled.run_jump
    size = max(1, int(CHUNK_SECONDS * DRAWS_PER_SECOND[settings.engine] / settings.horizon))
    found: list[Trial] = []
    for start in range(0, len(seeds), size):
        chunk = seeds[start : start + size]
        found += run(settings, chunk)
        advance(len(chunk) * settings.horizon)
    return found


def estimated_seconds(settings: Settings) -> float:
    """Roughly how long a setting will keep one core busy."""
    return settings.trials * settings.horizon / DRAWS_PER_SECOND[settings.engine]


def warm_up(settings: Settings) -> None:
    """Load or compile the kernels that a setting needs, so that its clock runs for its trials only."""
    run_trials(replace(settings, horizon=1, grid=1), range(1), lambda draws: None)
