"""Which engine runs a trial: `core` drives core objects draw by draw, `fast` has compiled kernels of the same law.

Of the kernels, those that skip are taken where there is something to skip, else the one that makes every draw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from outvote.simulation import stepwise
from outvote.simulation.compiled import run_jump, run_step
from outvote.simulation.compiled_blocks import run_blocks
from outvote.simulation.compiled_tally import run_tally, warm_up_tables
from outvote.simulation.settings import Settings
from outvote.simulation.streams import generator, trial_seed
from outvote.simulation.trials import Trial

Kernel: TypeAlias = Callable[[Settings, int, np.random.Generator], list[Trial]]
"""Runs so many trials of a setting, one after the other from one generator."""
WORTH_JUMPING = 1.0
"""Draws per player and grid interval below which there is nothing to skip."""
WORTH_A_STREAM = 1_000_000
"""Steps of work that are worth a stream of their own: to start a kernel takes as long as several short trials."""
MOST_TO_A_STREAM = 200


def kernel_of(settings: Settings) -> Kernel | None:
    """The kernel that runs these settings; None where core objects do."""
    if settings.runs_on == "core":
        return None
    if settings.protocol == "tally":
        return run_tally
    if settings.protocol == "blocks":
        return run_blocks
    if settings.protocol in ("me-unlimited", "ucb-unlimited"):  # one player has all draws
        return run_jump
    draws_each = settings.horizon / (len(settings.grid_points()) * settings.task.players)
    return run_jump if draws_each >= WORTH_JUMPING else run_step


def run_trials(settings: Settings, start: int, stop: int, advance: Callable[[int], None]) -> list[Trial]:
    """Run the trials from `start` up to `stop`; `advance` is told of draws as they are done.

    `start` must be the first trial of a stream: a multiple of `trials_to_a_stream`. Then it does not matter who runs
    which of a setting's trials.
    """
    kernel = kernel_of(settings)
    if kernel is None:
        return [stepwise.run_trial(settings, trial_seed(settings.seed, trial), advance) for trial in range(start, stop)]
    size = trials_to_a_stream(settings)
    found: list[Trial] = []
    for first in range(start, stop, size):
        count = min(size, stop - first)
        found += kernel(settings, count, generator(trial_seed(settings.seed, first)))
        advance(count * settings.horizon)
    return found


def trials_to_a_stream(settings: Settings) -> int:
    """How many trials follow each other in one stream of random numbers; decided by the settings alone."""
    kernel = kernel_of(settings)
    if kernel is None:
        return 1
    if kernel in (run_step, run_blocks) or settings.protocol == "ucb-unlimited":
        steps = settings.horizon
    else:
        steps = settings.task.players * len(settings.grid_points()) * max(1, len(settings.task.instances))
    return min(max(1, WORTH_A_STREAM // steps), MOST_TO_A_STREAM)


def estimated_seconds(settings: Settings) -> float:
    """Roughly how long a setting will keep one core busy: for the size of chunks, nothing else."""
    kernel = kernel_of(settings)
    if kernel is None:
        return settings.trials * settings.horizon * 2e-6
    if kernel is run_step or settings.protocol == "ucb-unlimited":
        return settings.trials * settings.horizon * 1e-8
    if kernel is run_blocks:
        return settings.trials * settings.horizon * 3e-8
    task = settings.task
    if kernel is run_tally:
        return settings.trials * (3e-3 + task.players * len(settings.grid_points()) * 1e-7)
    each = len(settings.grid_points()) * 1e-7 + len(task.instances) * 4e-6
    return settings.trials * (3e-5 + task.players * each)


_warm: set[tuple[str, Kernel]] = set()


def warm_up(settings: Settings) -> None:
    """Load or compile the kernel that a setting needs, so that its clock runs for its trials only."""
    kernel = kernel_of(settings)
    if kernel is run_tally:
        warm_up_tables(settings)
    if kernel is None or (settings.protocol, kernel) in _warm:
        return
    kernel(replace(settings, horizon=1, grid=1), 1, generator(0))
    _warm.add((settings.protocol, kernel))
