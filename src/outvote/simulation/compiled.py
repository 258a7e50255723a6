"""From settings to the arrays that kernels take, and from what they return to trials."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from outvote.core.codes import Codebook
from outvote.core.task import Task
from outvote.core.votes.schedule import Schedule
from outvote.simulation.activity import Weighted, uniform
from outvote.simulation.arrays import Floats, Integers, IntegerTable
from outvote.simulation.environments import best_arms, good_arms
from outvote.simulation.kernels.jump import jump_trials
from outvote.simulation.kernels.local import local_trials
from outvote.simulation.kernels.step import step_trials
from outvote.simulation.kernels.ucb import ucb_trials
from outvote.simulation.registry import BASELINES
from outvote.simulation.results import Result, summarise
from outvote.simulation.settings import Settings
from outvote.simulation.streams import generator, trial_seed
from outvote.simulation.trials import Costs, Trial, judge

MOST_PULLS = 1 << 45
"""Epochs that need more are never reached; the cap keeps products of pulls and arms within 64 bits."""
EPOCHS = 96


def run_step(settings: Settings, trials: int, rng: np.random.Generator, inputs: Inputs | None = None) -> list[Trial]:
    """The step kernel: `dme`, `edme`, `me-local`, `me-unlimited`. `inputs` replaces what the settings say."""
    inputs, outputs = inputs or Inputs.of(settings), Outputs.of(settings, trials)
    # One player that sees every draw is the only one to be drawn.
    activity = uniform(1) if settings.protocol == "me-unlimited" else weights_of(settings)
    keep, alias = activity.alias_table()
    local = settings.protocol not in ("dme", "edme")
    step_trials(
        rng, keep, alias, inputs.means, inputs.good, inputs.needed, inputs.quorums, inputs.enough, local,
        inputs.grid, outputs.regret, outputs.votes, outputs.eliminations, outputs.ends, outputs.judged,
    )  # fmt: skip
    return outputs.trials(settings)


def run_jump(settings: Settings, trials: int, rng: np.random.Generator, inputs: Inputs | None = None) -> list[Trial]:
    """The kernels that skip: votes and the baselines. `inputs` replaces what the settings say."""
    inputs, outputs = inputs or Inputs.of(settings), Outputs.of(settings, trials)
    if settings.protocol == "ucb-unlimited":
        ucb_trials(rng, inputs.means, inputs.grid, outputs.regret)
        outputs.ends[:, 2] = 1 if inputs.good.all() else -1
        outputs.judged[:] = (inputs.good.all(), True, False)
    elif settings.protocol in ("dme", "edme"):
        activity = weights_of(settings)
        ends, shares = activity.groups()
        jump_trials(
            rng, activity.shares(), ends, shares, inputs.means, inputs.good, inputs.needed, inputs.quorums,
            inputs.grid, outputs.regret, outputs.votes, outputs.eliminations, outputs.ends,
        )  # fmt: skip
    else:
        ends, shares = weights_of(settings).groups()
        if settings.protocol == "me-unlimited":
            ends, shares = np.array([1]), np.array([1.0])
        local_trials(
            rng, ends, shares, inputs.means, inputs.good, inputs.needed[0], inputs.enough,
            inputs.grid, outputs.regret, outputs.eliminations, outputs.ends, outputs.judged,
        )  # fmt: skip
    return outputs.trials(settings)


def run_with_votes(settings: Settings, votes: Sequence[int]) -> Result:
    """`dme` or `edme` by the kernel that skips, had an arm to have so many votes in each instance to fall."""
    begin = time.perf_counter()
    inputs = replace(Inputs.of(settings), quorums=np.array([2.0 * each for each in votes]))
    trials = run_jump(settings, settings.trials, generator(trial_seed(settings.seed, 0)), inputs)
    return summarise(settings, trials, time.perf_counter() - begin)


@dataclass(frozen=True)
class Inputs:
    """What kernels need to know of a setting."""

    means: Floats
    good: np.ndarray[tuple[int], np.dtype[np.bool_]]
    needed: IntegerTable
    quorums: Floats
    enough: float
    grid: Integers

    @classmethod
    def of(cls, settings: Settings) -> Inputs:
        task, means = settings.task, settings.means
        schedules = task.schedules()
        if settings.protocol in BASELINES:
            schedules = (Schedule(len(means), task.epsilon, math.log(task.delta)),)
        good = good_arms(means, task.epsilon)
        return cls(
            means=np.array(means),
            good=np.array([arm in good for arm in range(len(means))]),
            needed=np.array([_pulls(schedule) for schedule in schedules]),
            quorums=np.array((1.0,) if settings.protocol in BASELINES else task.instances),
            enough=1.0 if settings.protocol == "me-unlimited" else float(settings.active_players),
            grid=np.array(settings.grid_points()),
        )


@dataclass(frozen=True)
class Outputs:
    """Arrays for kernels to fill, one row a trial."""

    regret: np.ndarray[tuple[int, int], np.dtype[np.float64]]
    votes: np.ndarray[tuple[int, int, int], np.dtype[np.int64]]
    eliminations: np.ndarray[tuple[int, int, int], np.dtype[np.int64]]
    ends: IntegerTable
    judged: np.ndarray[tuple[int, int], np.dtype[np.bool_]]

    @classmethod
    def of(cls, settings: Settings, trials: int) -> Outputs:
        arms = len(settings.means)
        instances = len(settings.task.instances) if settings.protocol == "edme" else 1
        return cls(
            regret=np.zeros((trials, len(settings.grid_points()))),
            votes=np.zeros((trials, instances, arms), np.int64),
            eliminations=np.full((trials, arms, 2), -1, np.int64),
            ends=np.full((trials, 3), -1, np.int64),
            judged=np.zeros((trials, 3), np.bool_),
        )

    def trials(
        self, settings: Settings, costs: Sequence[Costs] | None = None, held: Sequence[bool] | None = None
    ) -> list[Trial]:
        """What kernels have filled in, trial by trial; what Tally's cost, and whether it is held, its kernel says."""
        fallen = [[(arm, draw) for arm, draw in each if arm >= 0] for each in self.eliminations.tolist()]
        if settings.protocol in BASELINES:
            judged: Sequence[Sequence[bool]] = self.judged.tolist()
            costs = [settings.baseline_costs()] * len(fallen)
        else:
            judged = [judge(settings.means, settings.task.epsilon, {arm for arm, _ in each}) for each in fallen]
        if costs is None:
            code = Codebook(settings.task)
            costs = [_voting_costs(settings.task, code, *each) for each in zip(self.votes, fallen, strict=True)]
        ends = [[end if end >= 0 else None for end in each] for each in self.ends.tolist()]
        held = held or [False] * len(fallen)
        best_of_all = best_arms(settings.means)
        rows = zip(self.regret.tolist(), costs, fallen, ends, judged, held, strict=True)
        return [
            Trial(
                regret,
                cost,
                out,
                finished,
                all_finished,
                solved,
                correct,
                safe,
                best,
                hold,
                best_of_all <= {arm for arm, _ in out},
            )
            for regret, cost, out, (finished, all_finished, solved), (correct, safe, best), hold in rows
        ]


def _voting_costs(
    task: Task, codebook: Codebook, votes: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    fallen: list[tuple[int, int]],
) -> Costs:  # fmt: skip
    """What the ledger of `outvote.core` would have counted."""
    words = codebook.arm_words
    cast = int(votes.sum())
    instance_bits = cast * codebook.instance_bits
    arm_bits = sum(int(count) * len(word) for count, word in zip(votes.sum(axis=0), words, strict=True))
    return Costs(
        up_bits=arm_bits + instance_bits,
        down_bits=task.players * sum(len(words[arm]) for arm, _ in fallen),
        instance_bits=instance_bits,
        up_messages=cast,
        down_messages=task.players * len(fallen),
    )


@functools.cache
def _pulls(schedule: Schedule) -> list[int]:
    return [min(schedule.pulls(epoch), MOST_PULLS) for epoch in range(1, EPOCHS + 1)]


def weights_of(settings: Settings) -> Weighted:
    assert isinstance(settings.activity, Weighted)  # `runs_on` allows kernels no other
    return settings.activity
