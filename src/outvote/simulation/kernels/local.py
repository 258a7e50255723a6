"""The kernel that skips, of Median Elimination without messages: each player alone, or one player fed by all draws.

Why it is exact in distribution. Players never interact, so what a player has done by a grid point depends only on how
many draws it has had, and those are multinomial. Rewards are drawn at epoch ends as in `jump`; here every arm in play
has exactly the pulls that its epoch needs. Only moments ("the first arm to fall", "the j-th player to finish") need an
order between players. In an interval that holds one, give each draw an independent uniform clock time: the D-th of a
player's c draws comes at an order statistic. The moment has the clock of the epoch end that makes it, and the number of
draws up to that clock is, for each player, a binomial number between its own epoch ends before and after. Moments are
taken in order of their clocks, each being known when the next is counted, so they are right together and not only one
by one.
"""

from __future__ import annotations

import numpy as np

from outvote.simulation.arrays import Floats, FloatTable, IntegerCube, Integers, IntegerTable
from outvote.simulation.kernels.compiling import compiled
from outvote.simulation.kernels.rounds import play_on
from outvote.simulation.kernels.samplers import binomial, draws_per_player, order_statistic
from outvote.simulation.kernels.step import NEVER, end_epoch, judge

OVER = 2.0
"""A clock after the end of the interval."""


@compiled
def clock_epoch_ends(
    rng: np.random.Generator, draws: Integers, count: Integers, at: IntegerTable, clocks: FloatTable
) -> None:
    """Clocks for each player's epoch ends, `at` saying the player's own draw of each."""
    for n in range(len(draws)):
        done, now = 0, 0.0
        for event in range(count[n]):
            now += (1.0 - now) * order_statistic(rng, at[n, event] - done, draws[n] - done)
            clocks[n, event] = now
            done = at[n, event]


@compiled
def count_draws_to(
    rng: np.random.Generator,
    moment: float,
    draws: Integers,
    count: Integers,
    at: IntegerTable,
    clocks: FloatTable,
    known: Integers,
    known_clock: Floats,
) -> int:
    """Draws of all players up to a moment; `known` are each player's draws up to an earlier one, and are moved on."""
    total = 0
    for n in range(len(draws)):
        low, low_clock = known[n], known_clock[n]
        high, high_clock = draws[n] + 1, 1.0
        for event in range(count[n]):
            if clocks[n, event] <= moment:
                if at[n, event] > low:
                    low, low_clock = at[n, event], clocks[n, event]
            else:
                high, high_clock = at[n, event], clocks[n, event]
                break
        if moment > low_clock:
            low += binomial(rng, high - 1 - low, (moment - low_clock) / (high_clock - low_clock))
        known[n], known_clock[n] = low, moment
        total += low
    return total


@compiled
def ranked_clock(clocks: FloatTable, event: Integers, rank: int, scratch: Floats) -> float:
    """The rank-th smallest clock among the players' chosen epoch ends (0: the player has none)."""
    reached = 0
    for n in range(len(event)):
        if event[n] > 0:
            scratch[reached] = clocks[n, event[n] - 1]
            reached += 1
    return float(np.sort(scratch[:reached])[rank - 1])


@compiled
def first_fall(clocks: FloatTable, fell: Integers, arms_count: int) -> tuple[float, int]:
    """The clock at which an arm first fell at any player, and its rank among those that fell there with it."""
    first, rank = OVER, 0
    for n in range(len(fell)):
        if fell[n] > 0:
            clock = clocks[n, fell[n] // arms_count - 1]
            if clock < first:
                first, rank = clock, fell[n] % arms_count
    return first, rank


@compiled
def local_trials(
    rng: np.random.Generator,
    group_ends: Integers,
    group_shares: Floats,
    means: Floats,
    good: np.ndarray,
    needed: Integers,
    enough: float,
    grid: Integers,
    regret: FloatTable,
    eliminations: IntegerCube,
    ends: IntegerTable,
    judged: np.ndarray,
) -> None:
    """Run as many trials as `regret` has rows; arguments and results as those of `step_trials`.

    `eliminations` are the first of each arm by any player. `judged` says of the arms that remain to each of the players
    at the end: all good, some good, only the best.
    """
    trials, arms_count, players = len(regret), len(means), group_ends[-1]
    gaps = means.max() - means
    arms = np.empty((players, arms_count), np.int64)
    size = np.empty(players, np.int64)
    prefix = np.empty((players, arms_count + 1))
    position = np.empty(players, np.int64)
    to_test = np.empty(players, np.int64)
    epoch = np.empty(players, np.int64)
    bad_left = np.empty(players, np.int64)
    draws = np.empty(players, np.int64)
    stack = np.empty((64, 3), np.int64)
    candidates = np.empty(arms_count, np.bool_)
    sums = np.empty(arms_count)
    ordered = np.empty(arms_count)
    leaving = np.empty(arms_count, np.int64)
    # the epoch ends of one interval that eliminated something, and which of them did what (0: none)
    ends_count = np.zeros(players, np.int64)
    ends_at = np.empty((players, arms_count - 1), np.int64)
    ends_clock = np.empty((players, arms_count - 1))
    fell = np.zeros((arms_count, players), np.int64)
    finish = np.zeros(players, np.int64)
    solve = np.zeros(players, np.int64)
    fallen = np.empty(arms_count, np.bool_)
    known = np.empty(players, np.int64)
    known_clock = np.empty(players)
    scratch = np.empty(players)
    moments = np.empty(arms_count + 3)
    kinds = np.empty(arms_count + 3, np.int64)
    ranks = np.zeros(arms_count + 3, np.int64)
    bad = arms_count - good.sum()
    threshold = int(np.ceil(enough))
    for trial in range(trials):
        eliminations[trial] = -1
        ends[trial] = -1
        size[:] = arms_count
        position[:] = 0
        epoch[:] = 0
        bad_left[:] = bad
        to_test[:] = needed[0] * arms_count
        fallen[:] = False
        for n in range(players):
            prefix[n, 0] = 0.0
            for arm in range(arms_count):
                arms[n, arm] = arm
                prefix[n, arm + 1] = prefix[n, arm] + gaps[arm]
        if not bad:
            ends[trial, 2] = 1
        finished, solved, order = 0, 0, 0
        total_regret = 0.0
        begin = 0
        for point in range(len(grid)):
            draws_per_player(rng, grid[point] - begin, group_ends, group_shares, draws, stack)
            finished_before, solved_before = finished, solved
            news = False
            for n in range(players):
                left = draws[n]
                while left >= to_test[n]:
                    place, cost = play_on(prefix[n], size[n], position[n], to_test[n])
                    total_regret += cost
                    left -= to_test[n]
                    candidates[:] = False
                    for index in range(size[n]):
                        arm = arms[n, index]
                        candidates[arm] = True
                        sums[arm] = binomial(rng, needed[epoch[n]], means[arm])
                    found = end_epoch(candidates, sums, ordered, leaving)
                    epoch[n] += 1
                    if found == 0:  # all equal: another epoch of the same arms
                        position[n] = place
                        to_test[n] = needed[epoch[n]] * size[n]
                        continue
                    if not news:
                        news = True
                        ends_count[:] = 0
                        fell[:] = 0
                        finish[:] = 0
                        solve[:] = 0
                    ends_at[n, ends_count[n]] = draws[n] - left
                    ends_count[n] += 1
                    for index in range(found):
                        arm = leaving[index]
                        candidates[arm] = False
                        fell[arm, n] = ends_count[n] * arms_count + index  # arms fall in order of their means
                        if not good[arm]:
                            bad_left[n] -= 1
                            if bad_left[n] == 0:
                                solved += 1
                                solve[n] = ends_count[n]
                    stay = 0
                    for index in range(size[n]):
                        if index == place:
                            position[n] = stay
                        if candidates[arms[n, index]]:
                            arms[n, stay] = arms[n, index]
                            prefix[n, stay + 1] = prefix[n, stay] + gaps[arms[n, index]]
                            stay += 1
                    size[n] = stay
                    if position[n] == stay:
                        position[n] = 0
                    to_test[n] = needed[epoch[n]] * stay
                    if stay == 1:
                        to_test[n] = NEVER
                        finished += 1
                        finish[n] = ends_count[n]
                position[n], cost = play_on(prefix[n], size[n], position[n], left)
                total_regret += cost
                to_test[n] -= left
            regret[trial, point] = total_regret
            if news:
                clock_epoch_ends(rng, draws, ends_count, ends_at, ends_clock)
                found = 0
                for arm in range(arms_count):
                    if not fallen[arm] and fell[arm].any():
                        fallen[arm] = True
                        moments[found], ranks[found] = first_fall(ends_clock, fell[arm], arms_count)
                        kinds[found] = arm
                        found += 1
                if finished_before < threshold <= finished:
                    moments[found] = ranked_clock(ends_clock, finish, threshold - finished_before, scratch)
                    kinds[found] = arms_count
                    found += 1
                if finished_before < players == finished:
                    moments[found] = ranked_clock(ends_clock, finish, players - finished_before, scratch)
                    kinds[found] = arms_count + 1
                    found += 1
                if bad and solved_before < players == solved:
                    moments[found] = ranked_clock(ends_clock, solve, players - solved_before, scratch)
                    kinds[found] = arms_count + 2
                    found += 1
                known[:] = 0
                known_clock[:] = 0.0
                draw, before = 0, -1.0
                for _ in range(found):
                    which = 0
                    for other in range(1, found):
                        sooner = moments[other] < moments[which]
                        if sooner or (moments[other] == moments[which] and ranks[other] < ranks[which]):
                            which = other
                    if moments[which] != before:
                        before = moments[which]
                        draw = begin + count_draws_to(
                            rng, before, draws, ends_count, ends_at, ends_clock, known, known_clock
                        )
                    if kinds[which] < arms_count:
                        eliminations[trial, order, 0] = kinds[which]
                        eliminations[trial, order, 1] = draw
                        order += 1
                    else:
                        ends[trial, kinds[which] - arms_count] = draw
                    moments[which] = OVER
            begin = grid[point]
        judge(judged[trial], bad_left, good, gaps, arms, size)
