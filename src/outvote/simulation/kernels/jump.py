"""The kernel that skips, of `dme` and `edme`: from one epoch end to the next, skipping the draws between.

Why it is exact in distribution.

1. All players receive the same eliminations, so the list of remaining arms is global; only the place in the round of
   play is a player's own. That a player hears of an elimination at its next draw and not at once changes nothing that
   it does, because it does nothing before that draw.
2. Median Elimination is a fixed design: which arm a player plays depends on no reward of its own but through epoch
   ends. Rewards matter only there, and only for candidates, so their sums may be drawn there: the sum of r rewards of
   an arm is Binomial(r, mean). Instances share the sums: each keeps the sum at which its epoch began.
3. In an interval of L draws (between two grid points) the draws per player are multinomial. Give each draw an
   independent uniform clock time; sorted by them, the draws are again independent draws of players. Given their
   numbers, the players are independent, and the d-th of a player's c draws comes at an order statistic: Beta(d,
   c − d + 1).
4. How many draws away a player's next epoch end is follows from counts alone. Those that fall into the interval wait
   in a heap. The first is taken: its sums are drawn, it votes. If no arm reaches its quorum, only that player changes:
   its later draws are uniform on the rest of the interval, and its next epoch end is an order statistic of them.
5. If an arm reaches its quorum at clock u, every player is brought to u. Of the draws before a player's pending epoch
   end at clock e, each has come by u with probability (u − s)/(e − s), s its last known clock: a binomial number. Then
   the arm is removed, and what was pending is drawn anew from u on: the future is independent of how it was looked at.
6. Regret of x plays from a place in the round: whole rounds times the sum of gaps, and a prefix sum.
7. With one arm left nothing is random but who is active. Who has heard of what is needed for two moments only:
   `all_finished` and `solved` are drawn by `arrival` from the law of the draws that follow the elimination they wait
   for. Each of them has the right law given all that came before; they do not steer anything.
"""

from __future__ import annotations

import numpy as np

from outvote.simulation.arrays import Floats, FloatTable, IntegerCube, Integers, IntegerTable
from outvote.simulation.kernels.arrival import draws_until_all_active, first_events
from outvote.simulation.kernels.compiling import compiled
from outvote.simulation.kernels.heap import pop, push
from outvote.simulation.kernels.rounds import count_plays, play_on
from outvote.simulation.kernels.samplers import binomial, draws_per_player, order_statistic
from outvote.simulation.kernels.step import draws_to_next_test, end_epoch, epoch_complete

OUTSIDE = 2.0
"""The clock of an epoch end that does not fall into the interval."""


@compiled
def jump_trials(
    rng: np.random.Generator,
    shares: Floats,
    group_ends: Integers,
    group_shares: Floats,
    means: Floats,
    good: np.ndarray,
    needed: IntegerTable,
    quorums: Floats,
    grid: Integers,
    regret: FloatTable,
    votes: IntegerCube,
    eliminations: IntegerCube,
    ends: IntegerTable,
) -> None:
    """Run as many trials as `regret` has rows; arguments and results as those of `step_trials`."""
    trials, players, arms_count, instances = len(regret), len(shares), len(means), len(quorums)
    gaps = means.max() - means
    pulls = np.empty((players, arms_count), np.int64)  # up to the last time that `plays` was settled
    drawn = np.empty((players, arms_count), np.int64)  # the pulls whose rewards have been drawn
    totals = np.empty((players, arms_count), np.int64)
    pulls_before = np.empty((players, instances, arms_count), np.int64)
    totals_before = np.empty((players, instances, arms_count), np.int64)
    candidates = np.empty((players, instances, arms_count), np.bool_)
    voted = np.empty((players, instances, arms_count), np.bool_)
    kept = np.empty((players, instances), np.int64)
    epoch = np.empty((players, instances), np.int64)
    position = np.empty(players, np.int64)
    start = np.empty(players, np.int64)  # the position when `plays` was settled
    plays = np.empty(players, np.int64)  # draws since then
    to_test = np.empty(players, np.int64)  # draws to the next epoch end
    left = np.empty(players, np.int64)  # draws left in the interval after `since`
    since = np.empty(players)
    test_clock = np.empty(players)
    heard = np.empty(players, np.int64)
    clocks = np.empty(players)
    owners = np.empty(players, np.int64)
    stack = np.empty((64, 3), np.int64)
    arms = np.empty(arms_count, np.int64)
    moved = np.empty(arms_count, np.int64)
    prefix = np.empty(arms_count + 1)
    eliminated = np.empty(arms_count, np.bool_)
    epoch_means = np.empty(arms_count)
    ordered = np.empty(arms_count)
    leaving = np.empty(arms_count, np.int64)
    times = np.empty(players)
    wanted = np.empty(players, np.bool_)
    bad = arms_count - good.sum()
    for trial in range(trials):
        pulls[:] = 0
        drawn[:] = 0
        totals[:] = 0
        pulls_before[:] = 0
        totals_before[:] = 0
        candidates[:] = True
        voted[:] = False
        kept[:] = arms_count
        epoch[:] = 0
        position[:] = 0
        start[:] = 0
        plays[:] = 0
        heard[:] = 0
        eliminated[:] = False
        votes[trial] = 0
        eliminations[trial] = -1
        ends[trial] = -1
        size = arms_count
        prefix[0] = 0.0
        for arm in range(arms_count):
            arms[arm] = arm
            prefix[arm + 1] = prefix[arm] + gaps[arm]
        to_test[:] = draws_to_next_test(needed, epoch[0], kept[0], pulls[0], pulls_before[0], arms, size, 0)
        announced = 0
        bad_left = bad
        solvable = bad > 0  # else it is from the start: Algorithm 1 tests after the first draw
        if not solvable:
            ends[trial, 2] = 1
        total_regret = 0.0
        begin = 0
        for point in range(len(grid)):
            length = grid[point] - begin
            if size == 1:
                total_regret += length * prefix[1]
                regret[trial, point] = total_regret
                begin = grid[point]
                continue
            draws_per_player(rng, length, group_ends, group_shares, left, stack)
            waiting = 0
            for n in range(players):
                since[n] = 0.0
                if left[n] >= to_test[n]:
                    test_clock[n] = order_statistic(rng, to_test[n], left[n])
                    waiting = push(clocks, owners, waiting, test_clock[n], n)
                else:
                    test_clock[n] = OUTSIDE
            while waiting > 0:
                now, a = clocks[0], owners[0]
                waiting = pop(clocks, owners, waiting)
                position[a], cost = play_on(prefix, size, position[a], to_test[a])
                total_regret += cost
                plays[a] += to_test[a]
                left[a] -= to_test[a]
                since[a] = now
                count_plays(pulls[a], arms, size, start[a], plays[a])
                plays[a] = 0
                start[a] = position[a]
                heard[a] = announced
                newly = 0
                for i in range(instances):
                    if kept[a, i] <= 1:
                        continue
                    if not epoch_complete(needed[i, epoch[a, i]], pulls[a], pulls_before[a, i], arms, size):
                        continue
                    for arm in range(arms_count):
                        if candidates[a, i, arm]:
                            totals[a, arm] += binomial(rng, pulls[a, arm] - drawn[a, arm], means[arm])
                            drawn[a, arm] = pulls[a, arm]
                            epoch_means[arm] = (totals[a, arm] - totals_before[a, i, arm]) / (
                                pulls[a, arm] - pulls_before[a, i, arm]
                            )
                    found = end_epoch(candidates[a, i], epoch_means, ordered, leaving)
                    for arm in range(arms_count):
                        if candidates[a, i, arm]:
                            pulls_before[a, i, arm] = pulls[a, arm]
                            totals_before[a, i, arm] = totals[a, arm]
                    epoch[a, i] += 1
                    kept[a, i] -= found
                    for index in range(found):
                        arm = leaving[index]
                        candidates[a, i, arm] = False
                        voted[a, i, arm] = True
                        votes[trial, i, arm] += 1
                        if (
                            not eliminated[arm]
                            and announced + newly < arms_count - 1
                            and 2 * votes[trial, i, arm] >= quorums[i]
                        ):
                            eliminated[arm] = True
                            eliminations[trial, announced + newly, 0] = arm
                            newly += 1
                if newly == 0:
                    to_test[a] = draws_to_next_test(
                        needed, epoch[a], kept[a], pulls[a], pulls_before[a], arms, size, position[a]
                    )
                    if left[a] >= to_test[a]:
                        test_clock[a] = now + (1.0 - now) * order_statistic(rng, to_test[a], left[a])
                        waiting = push(clocks, owners, waiting, test_clock[a], a)
                    else:
                        test_clock[a] = OUTSIDE
                    continue
                # An elimination: bring everybody to this clock.
                later = 0
                for n in range(players):
                    if n != a:
                        if test_clock[n] <= 1.0:
                            come = binomial(rng, to_test[n] - 1, (now - since[n]) / (test_clock[n] - since[n]))
                        else:
                            come = binomial(rng, left[n], (now - since[n]) / (1.0 - since[n]))
                        position[n], cost = play_on(prefix, size, position[n], come)
                        total_regret += cost
                        plays[n] += come
                        left[n] -= come
                        since[n] = now
                        if plays[n] > 0:
                            heard[n] = announced
                        count_plays(pulls[n], arms, size, start[n], plays[n])
                        plays[n] = 0
                    later += left[n]
                draw = grid[point] - later
                for index in range(announced, announced + newly):
                    arm = eliminations[trial, index, 0]
                    eliminations[trial, index, 1] = draw
                    if not good[arm]:
                        bad_left -= 1
                announced += newly
                if solvable and bad_left == 0:
                    solvable = False
                    wanted[:] = True
                    first_events(rng, shares, times)
                    more = draws_until_all_active(rng, shares, times, wanted)
                    if more > 0 and draw + more <= grid[-1]:
                        ends[trial, 2] = draw + more
                if announced == arms_count - 1:
                    ends[trial, 0] = draw
                    ends[trial, 1] = _all_finished(
                        rng, shares, voted, eliminations[trial], heard, times, wanted, draw, grid[-1]
                    )
                stay = 0
                for index in range(size):
                    moved[index] = stay
                    if not eliminated[arms[index]]:
                        arms[stay] = arms[index]
                        stay += 1
                size = stay
                for index in range(size):
                    prefix[index + 1] = prefix[index] + gaps[arms[index]]
                waiting = 0
                for n in range(players):
                    position[n] = moved[position[n]]
                    if position[n] == size:
                        position[n] = 0
                    start[n] = position[n]
                    for i in range(instances):
                        for index in range(announced - newly, announced):
                            if candidates[n, i, eliminations[trial, index, 0]]:
                                candidates[n, i, eliminations[trial, index, 0]] = False
                                kept[n, i] -= 1
                    to_test[n] = draws_to_next_test(
                        needed, epoch[n], kept[n], pulls[n], pulls_before[n], arms, size, position[n]
                    )
                    if left[n] >= to_test[n]:
                        test_clock[n] = now + (1.0 - now) * order_statistic(rng, to_test[n], left[n])
                        waiting = push(clocks, owners, waiting, test_clock[n], n)
                    else:
                        test_clock[n] = OUTSIDE
            for n in range(players):
                position[n], cost = play_on(prefix, size, position[n], left[n])
                total_regret += cost
                plays[n] += left[n]
                to_test[n] -= left[n]
            regret[trial, point] = total_regret
            begin = grid[point]


@compiled
def _all_finished(
    rng: np.random.Generator,
    shares: Floats,
    voted: np.ndarray,
    eliminations: IntegerTable,
    heard: Integers,
    times: Floats,
    wanted: np.ndarray,
    draw: int,
    horizon: int,
) -> int:
    """One arm remains since `draw`: when have all players, by what they have heard, at most one candidate left?

    In one instance at least. A player whose own votes and what it has heard leave it no more than one need not hear
    the rest; every other must be active once more. The instance whose last player is first active is the first.
    """
    players, instances, _ = voted.shape
    first_events(rng, shares, times)
    best = -1
    soonest = np.inf
    for i in range(instances):
        last = 0.0
        for n in range(players):
            if _own_candidates(voted[n, i], eliminations, heard[n]) > 1 and times[n] > last:
                last = times[n]
        if last < soonest:
            soonest = last
            best = i
    if best < 0:
        return -1
    if soonest == 0.0:
        return draw
    for n in range(players):
        wanted[n] = _own_candidates(voted[n, best], eliminations, heard[n]) > 1
    more = draws_until_all_active(rng, shares, times, wanted)
    return draw + more if draw + more <= horizon else -1


@compiled
def _own_candidates(voted: np.ndarray, eliminations: IntegerTable, heard: int) -> int:
    """The arms that a player has neither voted out nor heard to be eliminated."""
    own = len(voted) - voted.sum()
    for index in range(heard):
        if not voted[eliminations[index, 0]]:
            own -= 1
    return own
