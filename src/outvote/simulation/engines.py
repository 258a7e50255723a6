"""Which engine runs a trial: core objects step by step, the compiled step kernel, or the kernels that skip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from outvote.simulation import compiled, compiled_tally, stepwise
from outvote.simulation.arrays import WordTable
from outvote.simulation.kernels.generator import trial_seed, trial_states
from outvote.simulation.settings import Settings
from outvote.simulation.trials import Trial

CHUNK_SECONDS = 0.2
"""About how long a kernel may run before it comes back to say how far it is and to hear of Ctrl-C."""


def run_trials(settings: Settings, which: Sequence[int], advance: Callable[[int], None]) -> list[Trial]:
    """Run some of a setting's trials, named by their numbers; `advance` is told of draws as they are done.

    Trial i has the i-th child of the setting's seed, so it does not matter who runs it with which others.
    """
    if settings.engine == "step":
        return [stepwise.run_trial(settings, trial_seed(settings.seed, trial), advance) for trial in which]
    if settings.protocol == "tally":
        run: Callable[[Settings, WordTable], list[Trial]] = compiled_tally.run_tally
    else:
        run = compiled.run_step if settings.engine == "compiled" else compiled.run_jump
    size = max(1, int(CHUNK_SECONDS / estimated_seconds(settings) * settings.trials))
    found: list[Trial] = []
    for start in range(0, len(which), size):
        chunk = which[start : start + size]
        found += run(settings, trial_states(settings.seed, chunk))
        advance(len(chunk) * settings.horizon)
    return found


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
        run_trials(replace(settings, horizon=1, grid=1), range(1), lambda draws: None)
        _warm.add((settings.protocol, settings.engine))
