"""From settings of `tally` to the arrays that its kernel takes, and from what it returns to trials."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from outvote.core.codes import fixed_width
from outvote.core.tally import homogeneity
from outvote.core.tally.bets import bets
from outvote.core.tally.cycle import Cycle
from outvote.core.tally.evidence import log_thresholds
from outvote.core.tally.player import GROWTH
from outvote.core.task import Task
from outvote.simulation.arrays import Floats
from outvote.simulation.compiled import Inputs, Outputs, weights_of
from outvote.simulation.kernels.tally import tally_trials
from outvote.simulation.settings import Settings
from outvote.simulation.trials import Costs, Trial


def run_tally(settings: Settings, trials: int, rng: np.random.Generator) -> list[Trial]:
    """The kernel that skips, for `tally`."""
    task = settings.task
    inputs, outputs, activity = Inputs.of(settings), Outputs.of(settings, trials), weights_of(settings)
    sizes = np.array(reachable_sizes(task, settings.horizon))
    exact, margin = warm_up_tables(settings)
    threshold, margin_threshold = log_thresholds(task)
    group_ends, group_shares = activity.groups()
    counts = np.zeros((trials, len(sizes)), np.int64)
    told = np.zeros((trials, 2), np.int64)
    held = np.zeros(trials, np.bool_)
    tally_trials(
        rng,
        activity.shares(),
        group_ends,
        group_shares,
        inputs.means,
        inputs.good,
        np.array(Cycle(task).order),
        GROWTH,
        sizes,
        0.0 if task.privacy_budget is None else math.exp(-task.privacy_budget),
        exact.log_weights,
        exact.worse,
        exact.better,
        threshold,
        margin.log_weights,
        margin.worse,
        margin.better,
        margin_threshold,
        homogeneity.level_of_a_look(len(task.arms)),
        homogeneity.RELEASE,
        homogeneity.PATIENCE,
        inputs.grid,
        outputs.regret,
        counts,
        told,
        outputs.eliminations,
        outputs.ends,
        held,
    )
    widths = [fixed_width(size + 1) for size in sizes.tolist()]
    paid = [costs(task, *each, widths) for each in zip(counts.tolist(), told.tolist(), strict=True)]
    return outputs.trials(settings, paid, held.tolist())


def warm_up_tables(settings: Settings) -> tuple[Tables, Tables]:
    """The tables of bets, which take a while with noise: made once, before workers are forked."""
    task = settings.task
    sizes = reachable_sizes(task, settings.horizon)
    exact = tables(sizes, task.privacy_budget, 0.0)
    return exact, tables(sizes, task.privacy_budget, task.epsilon) if task.epsilon > 0 else Tables.none()


def costs(task: Task, counts: list[int], told: list[int], widths: list[int]) -> Costs:
    """What the ledger of `outvote.core` would have counted; every arm's word is as long as every other's."""
    sent = sum(counts)
    arm_bits = fixed_width(len(task.arms))
    implied = task.code == "implied"
    return Costs(
        up_bits=sum(count * width for count, width in zip(counts, widths, strict=True))
        + (0 if implied else sent * arm_bits),
        down_bits=task.players * told[0],
        up_messages=sent,
        down_messages=task.players * told[1],
        implied_bits=sent * arm_bits if implied else 0,
    )


def reachable_sizes(task: Task, draws: int) -> tuple[int, ...]:
    """The sizes that a player can come to within so many draws."""
    reached: list[int] = []
    opened, until = 0, len(task.arms)
    for size in task.tally_sizes:
        if draws <= 0:
            break
        reached.append(size)
        draws -= until - opened  # an elimination may cut tallies short, down to their first draw
        opened, until = until, until * GROWTH
    return tuple(reached)


@dataclass(frozen=True)
class Tables:
    """Bets by size; rows that a size does not have are never asked for."""

    log_weights: Floats
    worse: np.ndarray[tuple[int, int, int], np.dtype[np.float64]]
    better: np.ndarray[tuple[int, int, int], np.dtype[np.float64]]

    @classmethod
    def none(cls) -> Tables:
        empty = np.zeros((1, 1, 0))
        return cls(np.zeros(0), empty, empty)


@functools.lru_cache(maxsize=64)
def tables(sizes: tuple[int, ...], budget: float | None, epsilon: float) -> Tables:
    """The bets of `outvote.core.tally.bets` as arrays."""
    every = [bets(size, budget, epsilon) for size in sizes]
    shape = (len(sizes), max(sizes) + 1, len(every[0].log_weights))
    worse, better = np.zeros(shape), np.zeros(shape)
    for index, (size, each) in enumerate(zip(sizes, every, strict=True)):
        worse[index, : size + 1] = each.worse
        better[index, : size + 1] = each.better
    return Tables(np.array(every[0].log_weights), worse, better)
