"""What kernels draw at once, from NumPy's generator: successes, order statistics, and draws shared among players.

One is written by hand because kernels spend most of their time in it: fair coins, which share draws among equally
likely players, are the ones of random words, ten times as fast as NumPy's binomial numbers.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types
from numba.extending import intrinsic

from outvote.simulation.arrays import Floats, Integers, IntegerTable
from outvote.simulation.kernels.compiling import compiled

U = np.uint64
STRIDE = U(0x9E3779B97F4A7C15)
"""From one place of SplitMix64 to the next."""
MOST_COINS = 10_000
"""Beyond so many a binomial number is as fast."""


@compiled
def binomial(rng: np.random.Generator, n: int, p: float) -> int:
    """Successes of n trials; a probability that rounding has made NaN counts as 0."""
    if n <= 0 or not p > 0.0:
        return 0
    return n if p >= 1.0 else rng.binomial(n, p)


@compiled
def order_statistic(rng: np.random.Generator, rank: int, count: int) -> float:
    """The rank-th smallest of `count` uniform numbers: Beta(rank, count − rank + 1)."""
    if rank == 1:
        return -math.expm1(-rng.standard_exponential() / count)
    return rng.beta(float(rank), float(count - rank + 1))


@intrinsic
def count_ones(typing_context, word):  # type: ignore[no-untyped-def]
    """The number of ones in a 64-bit word."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@compiled
def heads(place: np.uint64, coins: int) -> int:
    """Heads of so many fair coins: the ones of the words of SplitMix64 (Steele, Lea and Flood 2014) from a place on."""
    ones = U(0)
    for left in range(coins, 0, -64):
        place += STRIDE
        word = (place ^ (place >> U(30))) * U(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> U(27))) * U(0x94D049BB133111EB)
        word ^= word >> U(31)
        if left < 64:
            word >>= U(64 - left)
        ones += count_ones(word)  # type: ignore[call-arg]  # numba passes the first itself
    return int(np.int64(ones))  # signed, as all counts are


@compiled
def split_evenly(
    rng: np.random.Generator, draws: int, counts: Integers, first: int, players: int, stack: IntegerTable
) -> None:
    """Share draws among equally likely players, halving the players again and again."""
    place = U(rng.random() * 2.0**53) << U(11)
    stack[0, 0], stack[0, 1], stack[0, 2] = first, players, draws
    depth = 1
    while depth > 0:
        depth -= 1
        at, left, rest = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        while True:
            if left == 1:
                counts[at] = rest
                break
            if rest == 0:
                counts[at : at + left] = 0
                break
            if left & 1:
                taken = binomial(rng, rest, 1.0 / left)
                counts[at] = taken
                at += 1
                left -= 1
                rest -= taken
            else:
                if rest > MOST_COINS:
                    taken = binomial(rng, rest, 0.5)
                else:
                    taken = heads(place, rest)
                    place += U((rest + 63) >> 6) * STRIDE
                left >>= 1
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = at + left, left, rest - taken
                depth += 1
                rest = taken


@compiled
def draws_per_player(
    rng: np.random.Generator,
    draws: int,
    group_ends: Integers,
    group_shares: Floats,
    counts: Integers,
    stack: IntegerTable,
) -> None:
    """How often each player is active in so many draws: multinomial, group by group of equally likely players.

    `group_shares` are shares of what the earlier groups left, so the last is 1; a group of share 0 never wakes.
    """
    first = 0
    for group in range(len(group_ends)):
        last = group_ends[group]
        taken = binomial(rng, draws, group_shares[group])
        split_evenly(rng, taken, counts, first, last - first, stack)
        draws -= taken
        first = last
