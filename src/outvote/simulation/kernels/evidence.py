"""Rounds of bets, as in `outvote.core.tally.evidence`: the same rules on arrays.

Tallies that wait for a round lie in one pool of linked queues, one for each size and arm, so that memory follows what
waits and not what could.
"""

from __future__ import annotations

import math

import numpy as np

from outvote.simulation.arrays import Floats, FloatTable, Integers, IntegerTable
from outvote.simulation.kernels.compiling import compiled

NOBODY = -1


@compiled
def standing(successes: Integers, trials: Integers, arm: int) -> float:
    """The mean so far, drawn a little towards ½."""
    return (successes[arm] + 0.5) / (trials[arm] + 1)


@compiled
def leader(contending: np.ndarray, successes: Integers, trials: Integers, but: int) -> int:
    """The contender with the highest mean, of equal ones the lowest index; `but` is not asked."""
    best = NOBODY
    for arm in range(len(contending)):
        ahead = best == NOBODY or standing(successes, trials, arm) > standing(successes, trials, best)
        if contending[arm] and arm != but and ahead:
            best = arm
    return best


@compiled
def wealth(log_weights: Floats, suspect: Floats, rival: Floats) -> float:
    """ln Σ weight·payment."""
    top = -np.inf
    for bet in range(len(log_weights)):
        top = max(top, log_weights[bet] + suspect[bet] + rival[bet])
    total = 0.0
    for bet in range(len(log_weights)):
        total += math.exp(log_weights[bet] + suspect[bet] + rival[bet] - top)
    return top + math.log(total)


@compiled
def ready(contending: np.ndarray, heads: IntegerTable, newest: int) -> int:
    """A size of which every contender has a tally waiting, the newest first, then the smallest; −1 for none."""
    for index in range(-1, len(heads)):
        size = newest if index < 0 else index
        complete = True
        for arm in range(len(contending)):
            if contending[arm] and heads[size, arm] == NOBODY:
                complete = False
                break
        if complete:
            return size
    return -1


@compiled
def drop_the_refuted(contending: np.ndarray, log_wealth: Floats, threshold: float) -> int:
    """Take out whom the evidence refutes, the strongest first, never the last; returns how many are left."""
    left = 0
    for arm in range(len(contending)):
        left += contending[arm]
    while left > 1:
        worst = NOBODY
        for arm in range(len(contending)):
            refuted = contending[arm] and log_wealth[arm] >= threshold
            if refuted and (worst == NOBODY or log_wealth[arm] > log_wealth[worst]):
                worst = arm
        if worst == NOBODY:
            break
        contending[worst] = False
        left -= 1
    return left


@compiled
def pay_round(
    taken: Integers,
    contending: np.ndarray,
    size: int,
    successes: Integers,
    trials: Integers,
    log_wealth: Floats,
    log_weights: Floats,
    worse_table: FloatTable,
    better_table: FloatTable,
    worse: FloatTable,
    better: FloatTable,
    before: Floats,
) -> None:
    """One round: `taken` are the successes of every contender's tally; every arm bets against who led before it."""
    first = leader(contending, successes, trials, NOBODY)
    second = leader(contending, successes, trials, first)
    for arm in range(len(contending)):
        if contending[arm]:
            before[arm] = wealth(log_weights, worse[arm], better[second if arm == first else first])
    for arm in range(len(contending)):
        if contending[arm]:
            trials[arm] += size
            successes[arm] += taken[arm]
            for bet in range(len(log_weights)):
                worse[arm, bet] += worse_table[taken[arm], bet]
                better[arm, bet] += better_table[taken[arm], bet]
    for arm in range(len(contending)):
        if contending[arm]:
            rival = second if arm == first else first
            log_wealth[arm] += wealth(log_weights, worse[arm], better[rival]) - before[arm]


@compiled
def within_margin(
    taken: Integers,
    took_part: np.ndarray,
    contending: np.ndarray,
    successes: Integers,
    trials: Integers,
    log_weights: Floats,
    worse_table: FloatTable,
    better_table: FloatTable,
    worse: FloatTable,
    better: FloatTable,
    threshold: float,
) -> int:
    """The ε-stop after a round: the leader, if every other contender is shown to be less than ε better; else −1."""
    for arm in range(len(took_part)):
        if took_part[arm]:
            for bet in range(len(log_weights)):
                worse[arm, bet] += worse_table[taken[arm], bet]
                better[arm, bet] += better_table[taken[arm], bet]
    first = leader(contending, successes, trials, NOBODY)
    for arm in range(len(contending)):
        if contending[arm] and arm != first and wealth(log_weights, worse[arm], better[first]) < threshold:
            return -1
    return first
