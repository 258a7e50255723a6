"""The step kernel of the median family: `dme`, `edme`, and Median Elimination on each player, draw by draw.

It does what `outvote.core` does and skips nothing; it only counts down the draws to a player's next epoch test instead
of making the test after every reward. Given the same random numbers it agrees with the core draw for draw.
"""

from __future__ import annotations

import numpy as np

from outvote.simulation.arrays import Floats, FloatTable, IntegerCube, Integers, IntegerTable
from outvote.simulation.environments import GOOD_TOLERANCE
from outvote.simulation.kernels.compiling import compiled

NEVER = 1 << 60
"""More draws than there will be."""


@compiled
def draws_to_test(needed: int, pulls: Integers, before: Integers, arms: Integers, size: int, position: int) -> int:
    """Draws until every remaining arm has its pulls: the test follows a play, so at least one.

    An arm at cyclic distance i from the next one to be played that misses r pulls has them after (r − 1)·size + i + 1.
    """
    most = 1
    for distance in range(size):
        at = position + distance
        if at >= size:
            at -= size
        missing = needed - (pulls[arms[at]] - before[arms[at]])
        if missing > 0:
            draws = (missing - 1) * size + distance + 1
            if draws > most:
                most = draws
    return most


@compiled
def draws_to_next_test(
    needed: IntegerTable,
    epoch: Integers,
    kept: Integers,
    pulls: Integers,
    before: IntegerTable,
    arms: Integers,
    size: int,
    position: int,
) -> int:
    """The same for the instance that is first; finished instances have no more tests."""
    least = NEVER
    for instance in range(len(kept)):
        if kept[instance] > 1:
            draws = draws_to_test(needed[instance, epoch[instance]], pulls, before[instance], arms, size, position)
            if draws < least:
                least = draws
    return least


@compiled
def epoch_complete(needed: int, pulls: Integers, before: Integers, arms: Integers, size: int) -> bool:
    """Every remaining arm has its pulls (Algorithm 2, line 4)."""
    for index in range(size):  # noqa: SIM110  # numba compiles loops, not generators
        if pulls[arms[index]] - before[arms[index]] < needed:
            return False
    return True


@compiled
def end_epoch(candidates: np.ndarray, means: Floats, ordered: Floats, leaving: Integers) -> int:
    """Which candidates are strictly below the median: their number, and themselves in increasing order of mean."""
    count = 0
    for arm in range(len(candidates)):
        if candidates[arm]:
            at = count
            while at > 0 and ordered[at - 1] > means[arm]:
                ordered[at] = ordered[at - 1]
                at -= 1
            ordered[at] = means[arm]
            count += 1
    half = count // 2
    median = ordered[half] if count & 1 else (ordered[half - 1] + ordered[half]) / 2
    found = 0
    for arm in range(len(candidates)):
        if candidates[arm] and means[arm] < median:
            at = found
            while at > 0 and means[leaving[at - 1]] > means[arm]:
                leaving[at] = leaving[at - 1]
                at -= 1
            leaving[at] = arm
            found += 1
    return found


@compiled
def remove_arm(arms: Integers, size: int, position: int, arm: int) -> int:
    """Take an arm out of a player's list; returns the position of the arm that it would have played next."""
    at = 0
    while arms[at] != arm:
        at += 1
    for later in range(at, size - 1):
        arms[later] = arms[later + 1]
    if position > at:
        position -= 1
    return 0 if position == size - 1 else position


@compiled
def judge(
    judged: np.ndarray, bad_left: Integers, good: np.ndarray, gaps: Floats, arms: IntegerTable, size: Integers
) -> None:
    """Of the arms that remain to each player: all good, some good, only the best."""
    judged[:] = True
    for n in range(len(size)):
        judged[0] &= bad_left[n] == 0
        judged[1] &= good[arms[n, : size[n]]].any()
        judged[2] &= size[n] == 1 and gaps[arms[n, 0]] <= GOOD_TOLERANCE


@compiled
def choose_player(rng: np.random.Generator, keep: Floats, alias: Integers) -> int:
    """A player by Walker's alias method: one uniform number chooses a column and a side of it."""
    scaled = rng.random() * len(keep)
    column = int(scaled)
    return column if scaled - column < keep[column] else alias[column]


@compiled
def step_trials(
    rng: np.random.Generator,
    keep: Floats,
    alias: Integers,
    means: Floats,
    good: np.ndarray,
    needed: IntegerTable,
    quorums: Floats,
    enough: float,
    local: bool,
    grid: Integers,
    regret: FloatTable,
    votes: IntegerCube,
    eliminations: IntegerCube,
    ends: IntegerTable,
    judged: np.ndarray,
) -> None:
    """Run as many trials as `regret` has rows, one after the other from one generator.

    `needed[i, l]` are the pulls of instance i in epoch l + 1, `quorums` the N_γ of the instances. `local` says that
    players obey themselves and nobody else, `enough` how many of them must be finished then. Out come, per trial:
    regret at the grid points, votes per instance and arm, eliminations as (arm, draw) in order and −1 after the last,
    the draws of finished, all finished and solved, −1 where not reached, and what is left at the end (see
    `local_trials`; only where `local`).
    """
    trials, players, arms_count, instances = len(regret), len(keep), len(means), len(quorums)
    gaps = means.max() - means
    arms = np.empty((players, arms_count), np.int64)  # K^n, in increasing order
    size = np.empty(players, np.int64)
    position = np.empty(players, np.int64)
    heard = np.empty(players, np.int64)
    countdown = np.empty(players, np.int64)
    pulls = np.empty((players, arms_count), np.int64)
    totals = np.empty((players, arms_count), np.float64)
    pulls_before = np.empty((players, instances, arms_count), np.int64)
    totals_before = np.empty((players, instances, arms_count), np.float64)
    candidates = np.empty((players, instances, arms_count), np.bool_)
    kept = np.empty((players, instances), np.int64)
    epoch = np.empty((players, instances), np.int64)
    bad_left = np.empty(players, np.int64)
    unfinished = np.empty(instances, np.int64)
    eliminated = np.empty(arms_count, np.bool_)
    epoch_means = np.empty(arms_count)
    ordered = np.empty(arms_count)
    leaving = np.empty(arms_count, np.int64)
    bad = arms_count - good.sum()
    for trial in range(trials):
        pulls[:] = 0
        totals[:] = 0.0
        pulls_before[:] = 0
        totals_before[:] = 0.0
        candidates[:] = True
        kept[:] = arms_count
        epoch[:] = 0
        size[:] = arms_count
        position[:] = 0
        heard[:] = 0
        bad_left[:] = bad
        unfinished[:] = players
        eliminated[:] = False
        votes[trial] = 0
        eliminations[trial] = -1
        ends[trial] = -1
        for player in range(players):
            for arm in range(arms_count):
                arms[player, arm] = arm
        first = draws_to_next_test(needed, epoch[0], kept[0], pulls[0], pulls_before[0], arms[0], arms_count, 0)
        countdown[:] = first
        announced = 0
        fallen = 0
        unsolved = players if bad else 0
        if not unsolved:
            ends[trial, 2] = 1
        total_regret = 0.0
        draw = 0
        for point in range(len(grid)):
            while draw < grid[point]:
                draw += 1
                n = choose_player(rng, keep, alias)
                u = rng.random()
                if heard[n] != announced:
                    for index in range(heard[n], announced):  # Algorithm 3, lines 8 to 10
                        arm = eliminations[trial, index, 0]
                        position[n] = remove_arm(arms[n], size[n], position[n], arm)
                        size[n] -= 1
                        if not good[arm]:
                            bad_left[n] -= 1
                            if bad_left[n] == 0:
                                unsolved -= 1
                        for i in range(instances):
                            if candidates[n, i, arm]:
                                candidates[n, i, arm] = False
                                kept[n, i] -= 1
                                if kept[n, i] == 1:
                                    unfinished[i] -= 1
                    heard[n] = announced
                    countdown[n] = draws_to_next_test(
                        needed, epoch[n], kept[n], pulls[n], pulls_before[n], arms[n], size[n], position[n]
                    )
                    if unsolved == 0 and ends[trial, 2] < 0:
                        ends[trial, 2] = draw
                    for i in range(instances):
                        if unfinished[i] == 0 and ends[trial, 1] < 0:
                            ends[trial, 1] = draw
                at = position[n]
                k = arms[n, at]
                pulls[n, k] += 1
                totals[n, k] += 1.0 if u < means[k] else 0.0  # no branch: its outcome cannot be predicted
                total_regret += gaps[k]
                at += 1
                position[n] = 0 if at == size[n] else at
                countdown[n] -= 1
                if countdown[n] == 0:
                    for i in range(instances):
                        if kept[n, i] <= 1:
                            continue
                        if not epoch_complete(needed[i, epoch[n, i]], pulls[n], pulls_before[n, i], arms[n], size[n]):
                            continue
                        for arm in range(arms_count):
                            if candidates[n, i, arm]:
                                epoch_means[arm] = (totals[n, arm] - totals_before[n, i, arm]) / (
                                    pulls[n, arm] - pulls_before[n, i, arm]
                                )
                        found = end_epoch(candidates[n, i], epoch_means, ordered, leaving)
                        for arm in range(arms_count):
                            if candidates[n, i, arm]:
                                pulls_before[n, i, arm] = pulls[n, arm]
                                totals_before[n, i, arm] = totals[n, arm]
                        epoch[n, i] += 1
                        if found and kept[n, i] > 1 and kept[n, i] - found <= 1:
                            unfinished[i] -= 1
                        kept[n, i] -= found
                        for index in range(found):
                            arm = leaving[index]
                            candidates[n, i, arm] = False
                            if local:
                                position[n] = remove_arm(arms[n], size[n], position[n], arm)
                                size[n] -= 1
                                if not good[arm]:
                                    bad_left[n] -= 1
                                    if bad_left[n] == 0:
                                        unsolved -= 1
                                if not eliminated[arm]:  # by the first player to do so
                                    eliminated[arm] = True
                                    eliminations[trial, fallen, 0] = arm
                                    eliminations[trial, fallen, 1] = draw
                                    fallen += 1
                                continue
                            votes[trial, i, arm] += 1
                            if (
                                not eliminated[arm]
                                and announced < arms_count - 1
                                and 2 * votes[trial, i, arm] >= quorums[i]
                            ):
                                eliminated[arm] = True
                                eliminations[trial, announced, 0] = arm
                                eliminations[trial, announced, 1] = draw
                                announced += 1
                                if announced == arms_count - 1:
                                    ends[trial, 0] = draw
                        if local and players - unfinished[i] >= enough and ends[trial, 0] < 0:
                            ends[trial, 0] = draw
                        if unfinished[i] == 0 and ends[trial, 1] < 0:
                            ends[trial, 1] = draw
                        if unsolved == 0 and ends[trial, 2] < 0:
                            ends[trial, 2] = draw
                    countdown[n] = draws_to_next_test(
                        needed, epoch[n], kept[n], pulls[n], pulls_before[n], arms[n], size[n], position[n]
                    )
            regret[trial, point] = total_regret
        judge(judged[trial], bad_left, good, gaps, arms, size)
