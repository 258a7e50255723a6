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
from outvote.simulation.activity import Weighted
from outvote.simulation.arrays import Floats
from outvote.simulation.environments import good_arms
from outvote.simulation.kernels.tally import tally_trials
from outvote.simulation.settings import Settings
from outvote.simulation.trials import Costs, Trial, judge


def run_tally(settings: Settings, trials: int, rng: np.random.Generator) -> list[Trial]:
    """The kernel that skips, for `tally`."""
    task, means = settings.task, settings.means
    assert isinstance(settings.activity, Weighted)  # `runs_on` allows kernels no other
    arms = len(means)
    sizes = np.array(reachable_sizes(task, settings.horizon))
    exact, margin = warm_up_tables(settings)
    threshold, margin_threshold = log_thresholds(task)
    good = good_arms(means, task.epsilon)
    group_ends, group_shares = settings.activity.groups()
    regret = np.zeros((trials, len(settings.grid_points())))
    counts = np.zeros((trials, len(sizes)), np.int64)
    told = np.zeros((trials, 2), np.int64)
    eliminations = np.full((trials, arms, 2), -1, np.int64)
    ends = np.full((trials, 3), -1, np.int64)
    held = np.zeros(trials, np.bool_)
    tally_trials(
        rng,
        settings.activity.shares(),
        group_ends,
        group_shares,
        np.array(means),
        np.array([arm in good for arm in range(arms)]),
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
        homogeneity.level_of_a_look(arms),
        homogeneity.RELEASE,
        homogeneity.PATIENCE,
        np.array(settings.grid_points()),
        regret,
        counts,
        told,
        eliminations,
        ends,
        held,
    )
    widths = [fixed_width(size + 1) for size in sizes.tolist()]
    found = []
    for index in range(trials):
        fallen = [(arm, draw) for arm, draw in eliminations[index].tolist() if arm >= 0]
        finished, all_finished, solved = (end if end >= 0 else None for end in ends[index].tolist())
        found.append(
            Trial(
                regret[index].tolist(),
                costs(task, counts[index].tolist(), widths, told[index].tolist()),
                fallen,
                finished,
                all_finished,
                solved,
                *judge(means, task.epsilon, {arm for arm, _ in fallen}),
                held=bool(held[index]),
            )
        )
    return found


def warm_up_tables(settings: Settings) -> tuple[Tables, Tables]:
    """The tables of bets, which take a while with noise: made once, before workers are forked."""
    task = settings.task
    sizes = reachable_sizes(task, settings.horizon)
    exact = tables(sizes, task.privacy_budget, 0.0)
    return exact, tables(sizes, task.privacy_budget, task.epsilon) if task.epsilon > 0 else Tables.none()


def costs(task: Task, counts: list[int], widths: list[int], told: list[int]) -> Costs:
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
