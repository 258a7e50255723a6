"""The kernel that skips, of `tally`: from one completed tally to the next, skipping the draws between.

Why it is exact in distribution. A player stays with an arm until its tally is complete or its arm is announced to be
eliminated, so the draws between are counted, not made; their successes matter only in the complete tally, where they
are Binomial(size, mean). Clocks, order statistics and the thinning when something is announced are those of `jump`.
That a player hears of an announcement at its next draw and not at once changes nothing that it does.
"""

from __future__ import annotations

import math

import numpy as np

from outvote.simulation.arrays import Floats, FloatTable, IntegerCube, Integers, IntegerTable
from outvote.simulation.kernels.arrival import draws_until_all_active, first_events
from outvote.simulation.kernels.compiling import compiled
from outvote.simulation.kernels.evidence import NOBODY, drop_the_refuted, pay_round, ready, within_margin
from outvote.simulation.kernels.heap import pop, push
from outvote.simulation.kernels.homogeneity import score
from outvote.simulation.kernels.samplers import binomial, draws_per_player, order_statistic

OUTSIDE = 2.0
"""The clock of a tally that is not completed within the interval."""


@compiled
def geometric_noise(rng: np.random.Generator, alpha: float) -> int:
    """P(g) ∝ α^|g|: the difference of two geometric numbers."""
    scale = -math.log(alpha)
    return int(rng.standard_exponential() / scale) - int(rng.standard_exponential() / scale)


@compiled
def size_of(opened: int, arms: int, growth: int, kinds: int) -> int:
    """Which size a player's next tally has, by how many it has opened."""
    kind = 0
    until = arms
    while kind < kinds - 1 and opened >= until:
        kind += 1
        until *= growth
    return kind


@compiled
def open_next(
    n: int,
    order: Integers,
    remaining: np.ndarray,
    growth: int,
    sizes: Integers,
    place: Integers,
    opened: Integers,
    arm: Integers,
    kind: Integers,
    missing: Integers,
) -> None:
    """A player goes on to the next remaining arm of its cycle."""
    arms = len(order)
    while True:
        place[n] += 1
        if place[n] >= arms:
            place[n] -= arms
        if remaining[order[place[n]]]:
            break
    arm[n] = order[place[n]]
    kind[n] = size_of(opened[n], arms, growth, len(sizes))
    opened[n] += 1
    missing[n] = sizes[kind[n]]


@compiled
def tally_trials(
    rng: np.random.Generator,
    shares: Floats,
    group_ends: Integers,
    group_shares: Floats,
    means: Floats,
    good: np.ndarray,
    order: Integers,
    growth: int,
    sizes: Integers,
    alpha: float,
    log_weights: Floats,
    worse_tables: np.ndarray,
    better_tables: np.ndarray,
    threshold: float,
    margin_weights: Floats,
    margin_worse_tables: np.ndarray,
    margin_better_tables: np.ndarray,
    margin_threshold: float,
    level: float,
    release: float,
    patience: float,
    grid: Integers,
    regret: FloatTable,
    counts: IntegerTable,
    told: IntegerTable,
    eliminations: IntegerCube,
    ends: IntegerTable,
    held: np.ndarray,
) -> None:
    """Run as many trials as `regret` has rows, one after the other from one generator.

    `order` is the task's cycle; tables are those of `outvote.core.tally.bets`, by size; `level`, `release` and
    `patience` are those of the look at the sites. Fills the regret at the grid points, how many tallies of each size
    were sent, the bits told to each player and in how many announcements, (arm, draw) of eliminations, the draws of
    the three ends, and whether the decision is held back at the end.
    """
    players, arms, kinds = len(shares), len(means), len(sizes)
    gaps = means.max() - means
    margin = len(margin_weights) > 0
    arm, kind = np.empty(players, np.int64), np.empty(players, np.int64)
    place, opened, missing = np.empty(players, np.int64), np.empty(players, np.int64), np.empty(players, np.int64)
    left = np.empty(players, np.int64)  # draws left in the interval after `since`
    since, clock = np.empty(players), np.empty(players)
    clocks, owners = np.empty(players), np.empty(players, np.int64)
    stack = np.empty((64, 3), np.int64)
    remaining, contending = np.empty(arms, np.bool_), np.empty(arms, np.bool_)
    took_part = np.empty(arms, np.bool_)
    heads, tails = np.empty((kinds, arms), np.int64), np.empty((kinds, arms), np.int64)
    capacity = 1024
    following, who, what = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    trials_of, successes = np.empty(arms, np.int64), np.empty(arms, np.int64)
    log_wealth, before = np.empty(arms), np.empty(arms)
    worse, better = np.empty((arms, len(log_weights))), np.empty((arms, len(log_weights)))
    margin_worse, margin_better = np.empty((arms, len(margin_weights))), np.empty((arms, len(margin_weights)))
    taken = np.empty(arms, np.int64)
    sums, tallies = np.empty((arms, players), np.int32), np.empty((arms, players, kinds), np.int32)
    times, wanted = np.empty(players), np.ones(players, np.bool_)
    bad = arms - good.sum()
    for trial in range(len(regret)):
        remaining[:] = True
        contending[:] = True
        heads[:] = NOBODY
        free = NOBODY
        used = 0
        trials_of[:] = 0
        successes[:] = 0
        log_wealth[:] = 0.0
        worse[:] = 0.0
        better[:] = 0.0
        margin_worse[:] = 0.0
        margin_better[:] = 0.0
        sums[:] = 0
        tallies[:] = 0
        counts[trial] = 0
        told[trial] = 0
        eliminations[trial] = -1
        ends[trial] = -1
        fallen = seen = next_look = 0
        hold = False
        announced = contenders = arms
        bad_left = bad
        if bad == 0:
            ends[trial, 2] = 1  # Algorithm 1 tests after the first draw
        for n in range(players):
            place[n] = n % arms - 1
            opened[n] = 0
            open_next(n, order, remaining, growth, sizes, place, opened, arm, kind, missing)
        total_regret = 0.0
        begin = 0
        for point in range(len(grid)):
            length = grid[point] - begin
            if announced == 1:
                for k in range(arms):
                    if remaining[k]:
                        total_regret += length * gaps[k]
                regret[trial, point] = total_regret
                begin = grid[point]
                continue
            draws_per_player(rng, length, group_ends, group_shares, left, stack)
            waiting = 0
            for n in range(players):
                since[n] = 0.0
                if left[n] >= missing[n]:
                    clock[n] = order_statistic(rng, missing[n], left[n])
                    waiting = push(clocks, owners, waiting, clock[n], n)
                else:
                    clock[n] = OUTSIDE
            while waiting > 0:
                now, a = clocks[0], owners[0]
                waiting = pop(clocks, owners, waiting)
                total_regret += missing[a] * gaps[arm[a]]
                left[a] -= missing[a]
                since[a] = now
                k, size = arm[a], kind[a]
                z = binomial(rng, sizes[size], means[k])
                if alpha > 0.0:
                    z = min(max(z + geometric_noise(rng, alpha), 0), sizes[size])
                counts[trial, size] += 1
                open_next(a, order, remaining, growth, sizes, place, opened, arm, kind, missing)
                if not contending[k] or contenders == 1:
                    sums[k, a] += z
                    tallies[k, a, size] += 1
                    seen += 1
                else:
                    if free != NOBODY:
                        node = free
                        free = following[node]
                    else:
                        if used == len(following):
                            following = np.concatenate((following, np.empty_like(following)))
                            who = np.concatenate((who, np.empty_like(who)))
                            what = np.concatenate((what, np.empty_like(what)))
                        node = used
                        used += 1
                    following[node] = NOBODY
                    who[node], what[node] = a, z
                    if heads[size, k] == NOBODY:
                        heads[size, k] = node
                    else:
                        following[tails[size, k]] = node
                    tails[size, k] = node
                    while contenders > 1:
                        index = ready(contending, heads, size)
                        if index < 0:
                            break
                        for j in range(arms):
                            took_part[j] = contending[j]
                            if contending[j]:
                                node = heads[index, j]
                                heads[index, j] = following[node]
                                taken[j] = what[node]
                                sums[j, who[node]] += what[node]
                                tallies[j, who[node], index] += 1
                                seen += 1
                                following[node] = free
                                free = node
                        pay_round(
                            taken, contending, sizes[index], successes, trials_of, log_wealth, log_weights,
                            worse_tables[index], better_tables[index], worse, better, before,
                        )  # fmt: skip
                        contenders = drop_the_refuted(contending, log_wealth, threshold)
                        if margin:
                            first = within_margin(
                                taken, took_part, contending, successes, trials_of, margin_weights,
                                margin_worse_tables[index], margin_better_tables[index], margin_worse, margin_better,
                                margin_threshold,
                            )  # fmt: skip
                            if first >= 0:
                                contending[:] = False
                                contending[first] = True
                                contenders = 1
                due = contenders < announced and (2 * contenders <= announced or contenders == 1)
                if due and seen < next_look:
                    due = False
                elif due:
                    found = score(sizes, alpha, sums, tallies)
                    hold = found >= release if hold else 0.5 * math.erfc(found / math.sqrt(2.0)) < level
                    if hold:
                        next_look = math.ceil(patience * seen)
                        due = False
                if not due:
                    if left[a] >= missing[a]:
                        clock[a] = now + (1.0 - now) * order_statistic(rng, missing[a], left[a])
                        waiting = push(clocks, owners, waiting, clock[a], a)
                    else:
                        clock[a] = OUTSIDE
                    continue
                # An announcement: bring everybody to this clock.
                later = 0
                for n in range(players):
                    if n != a:
                        if clock[n] <= 1.0:
                            come = binomial(rng, missing[n] - 1, (now - since[n]) / (clock[n] - since[n]))
                        else:
                            come = binomial(rng, left[n], (now - since[n]) / (1.0 - since[n]))
                        total_regret += come * gaps[arm[n]]
                        missing[n] -= come
                        left[n] -= come
                        since[n] = now
                    later += left[n]
                draw = grid[point] - later
                told[trial, 1] += 1
                told[trial, 0] += announced if contenders > 1 else math.ceil(math.log2(announced))
                for j in range(arms):
                    if remaining[j] and not contending[j]:
                        remaining[j] = False
                        eliminations[trial, fallen, 0], eliminations[trial, fallen, 1] = j, draw
                        fallen += 1
                        bad_left -= not good[j]
                announced = contenders
                first_events(rng, shares, times)
                more = draws_until_all_active(rng, shares, times, wanted)
                heard = draw + more if more > 0 and draw + more <= grid[-1] else -1
                if bad_left == 0 and bad > 0:
                    ends[trial, 2] = heard
                    bad_left = -1
                if announced == 1:
                    ends[trial, 0], ends[trial, 1] = draw, heard
                waiting = 0
                for n in range(players):
                    if not remaining[arm[n]]:
                        open_next(n, order, remaining, growth, sizes, place, opened, arm, kind, missing)
                    if announced == 1:
                        missing[n] = 1 << 60  # nothing is left to report
                    if left[n] >= missing[n]:
                        clock[n] = now + (1.0 - now) * order_statistic(rng, missing[n], left[n])
                        waiting = push(clocks, owners, waiting, clock[n], n)
                    else:
                        clock[n] = OUTSIDE
            for n in range(players):
                total_regret += left[n] * gaps[arm[n]]
                missing[n] -= left[n]
            regret[trial, point] = total_regret
            begin = grid[point]
        held[trial] = hold
