"""From settings of `blocks` to the arrays that its kernel takes, and from what it returns to trials."""

from __future__ import annotations

import functools
import math

import numpy as np

from outvote.core.blocks.bets import STAKES, WEIGHTS
from outvote.core.blocks.sizes import LARGEST
from outvote.core.codes import fixed_width
from outvote.simulation.compiled import weights_of
from outvote.simulation.kernels.blocks import (
    NUMBERS,
    STATES,
    BlockRoom,
    BlockRules,
    BlockTables,
    FleetArrays,
    PlayerArrays,
    TrialArrays,
    WorldArrays,
    blocks_trials,
    place_of,
)
from outvote.simulation.settings import Settings
from outvote.simulation.trials import Costs, Trial


def run_blocks(settings: Settings, trials: int, rng: np.random.Generator) -> list[Trial]:
    """The kernel of `blocks`."""
    players, arms = settings.task.players, len(settings.task.arms)
    found = record(settings, trials)
    blocks_trials(
        rng, world(settings), rules(settings), tables(arms), new_fleet(arms), new_players(players, arms),
        new_room(arms), found,
    )  # fmt: skip
    ended = [[end if end >= 0 else None for end in ends] for ends in found.ends.tolist()]
    fallen = [[(arm, draw) for arm, draw in pairs if arm >= 0] for pairs in found.eliminations.tolist()]
    columns = (found.regret.tolist(), found.costs.tolist(), fallen, ended, found.judged.tolist())
    return [
        Trial(
            regret=regret,
            costs=Costs(up_bits, players * down_bits, 0, blocks, players * announcements),
            eliminations=eliminations,
            finished=finished,
            all_finished=all_finished,
            solved=solved,
            correct=correct,
            safe=safe,
            best=best,
            lost=lost,
        )
        for regret, (blocks, up_bits, announcements, down_bits), eliminations, (finished, all_finished, solved), (
            correct,
            safe,
            best,
            lost,
        ) in zip(*columns, strict=True)
    ]


def record(settings: Settings, trials: int) -> TrialArrays:
    """Room for what comes out."""
    points, arms = settings.grid_points(), len(settings.task.arms)
    return TrialArrays(
        grid=np.array(points),
        regret=np.zeros((trials, len(points))),
        costs=np.zeros((trials, 4), np.int64),
        eliminations=np.zeros((trials, arms, 2), np.int64),
        ends=np.zeros((trials, 3), np.int64),
        judged=np.zeros((trials, 4), np.bool_),
    )


def world(settings: Settings) -> WorldArrays:
    """Where and when draws are made."""
    environment, activity = settings.environment, weights_of(settings)
    keep, alias = activity.alias_table()
    rows = environment.means if environment.row is None else [environment.row] * settings.task.players
    return WorldArrays(
        keep=keep,
        alias=alias,
        shares=activity.shares(),
        rows=np.array(rows),
        spread=environment.spread,
        site_spread=environment.site_spread,
        leaves=0.0 if settings.visits is None else 1 / settings.visits,
        visitor_spread=environment.visitor_spread,
        timed=settings.milliseconds is not None,
        milliseconds=1.0 if settings.milliseconds is None else settings.milliseconds,
    )


def rules(settings: Settings) -> BlockRules:
    """What the task says."""
    task = settings.task
    assert task.floor is not None
    return BlockRules(
        weights=np.array(WEIGHTS),
        delta=task.delta,
        epsilon=task.epsilon,
        floor=task.floor,
        age=round(float(task.parameters["block_age"]) * 1000),
        heards=1 << fixed_width(len(task.arms)),
    )


@functools.lru_cache(maxsize=8)
def tables(arms: int) -> BlockTables:
    """Room for all that blocks can pay; what is never asked for takes no memory."""
    return BlockTables(
        stakes=np.array(STAKES),
        factors=np.empty(place_of(LARGEST, LARGEST, LARGEST) + len(STAKES)),
        filled=np.zeros(LARGEST + 1, np.bool_),
        log_factorials=np.array([math.lgamma(n + 1) for n in range(arms * LARGEST + 1)]),
        unequal=np.empty(len(STAKES)),
    )


def new_fleet(arms: int) -> FleetArrays:
    """Room for the server of a trial."""
    return FleetArrays(
        wealth=np.empty(arms * arms * len(STAKES)),
        means=np.empty((arms, arms)),
        contending=np.empty(arms, np.bool_),
        fell=np.empty(arms, np.int64),
        numbers=np.empty(NUMBERS, np.int64),
    )


def new_players(players: int, arms: int) -> PlayerArrays:
    """Room for the players of a trial."""
    shape = (players, arms)
    return PlayerArrays(
        state=np.empty((players, STATES), np.int64),
        left=np.empty(shape, np.int64),
        successes=np.empty(shape, np.int64),
        means=np.empty(shape),
        gaps=np.empty(shape),
        good=np.empty(shape, np.bool_),
        log_odds=np.empty(shape),
        visitors=np.empty(shape),
    )


def new_room(arms: int) -> BlockRoom:
    """Room for one block."""
    return BlockRoom(
        made=np.empty(arms, np.int64),
        decided=np.empty(arms, np.int64),
        successes=np.empty(arms, np.int64),
        told=np.empty((2, arms), np.int64),
        against=np.empty(arms),
    )
