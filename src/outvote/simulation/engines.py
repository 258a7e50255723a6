"""Which engine runs a trial: core objects step by step, the compiled step kernel, or the kernels that skip."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from outvote.simulation import compiled, compiled_tally, stepwise
from outvote.simulation.settings import Settings
from outvote.simulation.streams import generator, trial_seed
from outvote.simulation.trials import Trial

WORTH_A_STREAM = 1_000_000
"""Steps of work that are worth a stream of their own: to start a kernel takes as long as several short trials."""
MOST_TO_A_STREAM = 200


def run_trials(settings: Settings, start: int, stop: int, advance: Callable[[int], None]) -> list[Trial]:
    """Run the trials from `start` up to `stop`; `advance` is told of draws as they are done.

    `start` must be the first trial of a stream: a multiple of `trials_to_a_stream`. Then it does not matter who runs
    which of a setting's trials.
    """
    if settings.engine == "step":
        return [stepwise.run_trial(settings, trial_seed(settings.seed, trial), advance) for trial in range(start, stop)]
    if settings.protocol == "tally":
        run: Callable[[Settings, int, np.random.Generator], list[Trial]] = compiled_tally.run_tally
    else:
        run = compiled.run_step if settings.engine == "compiled" else compiled.run_jump
    size = trials_to_a_stream(settings)
    found: list[Trial] = []
    for first in range(start, stop, size):
        count = min(size, stop - first)
        found += run(settings, count, generator(trial_seed(settings.seed, first)))
        advance(count * settings.horizon)
    return found


def trials_to_a_stream(settings: Settings) -> int:
    """How many trials follow each other in one stream of random numbers; decided by the settings alone."""
    if settings.engine == "step":
        return 1
    if settings.engine == "compiled" or settings.protocol == "ucb-unlimited":
        steps = settings.horizon
    else:
        steps = settings.task.players * len(settings.grid_points()) * max(1, len(settings.task.instances))
    return min(max(1, WORTH_A_STREAM // steps), MOST_TO_A_STREAM)


def estimated_seconds(settings: Settings) -> float:
    """Roughly how long a setting will keep one core busy: for the size of chunks, nothing else."""
    if settings.engine == "step":
        return settings.trials * settings.horizon * 2e-6
    if settings.engine == "compiled" or settings.protocol == "ucb-unlimited":
        return settings.trials * settings.horizon * 1e-8
    task = settings.task
    if settings.protocol == "tally":
        return settings.trials * (3e-3 + task.players * len(settings.grid_points()) * 1e-7)
    each = len(settings.grid_points()) * 1e-7 + len(task.instances) * 4e-6
    return settings.trials * (3e-5 + task.players * each)


_warm: set[tuple[str, str]] = set()


def warm_up(settings: Settings) -> None:
    """Load or compile the kernels that a setting needs, so that its clock runs for its trials only."""
    if settings.protocol == "tally" and settings.engine == "jump":
        compiled_tally.warm_up(settings)
    if (settings.protocol, settings.engine) not in _warm:
        run_trials(replace(settings, horizon=1, grid=1), 0, 1, lambda draws: None)
        _warm.add((settings.protocol, settings.engine))
