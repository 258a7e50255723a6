"""What kernels draw at once, from NumPy's generator: successes, order statistics, and draws shared among players.

Two are written by hand because kernels spend most of their time in them. Fair coins, which share draws among equally
likely players, are the ones of random words: ten times as fast as NumPy's binomial numbers. Binomial numbers of a
larger mean are up to twice as fast as NumPy's.
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
def _stirling_error(k: float) -> float:
    """ln k! minus Stirling's approximation of it (argument shifted by one), to double precision."""
    if k < 10:
        return math.lgamma(k + 1.0) - ((k + 0.5) * math.log(k + 1.0) - (k + 1.0) + 0.9189385332046727)
    square = (k + 1.0) * (k + 1.0)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1.0)


@compiled
def _binomial_by_rejection(rng: np.random.Generator, n: int, p: float) -> int:
    """For n·p ≥ 10 and p ≤ 1/2, by Hörmann's transformed rejection (1993): up to twice as fast as NumPy's."""
    spread = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre = n * p + 0.5
    squeeze = 0.92 - 4.2 / b
    while True:
        v = rng.random()
        u = rng.random() - 0.5
        us = 0.5 - abs(u)
        guess = math.floor((2 * a / us + b) * u + centre)
        if us >= 0.07 and v <= squeeze:
            return int(guess)
        if guess < 0 or guess > n:
            continue
        alpha = (2.83 + 5.1 / b) * spread
        odds = p / (1 - p)
        mode = math.floor((n + 1) * p)
        bound = (
            (mode + 0.5) * math.log((mode + 1.0) / (odds * (n - mode + 1.0)))
            + (n + 1.0) * math.log((n - mode + 1.0) / (n - guess + 1.0))
            + (guess + 0.5) * math.log(odds * (n - guess + 1.0) / (guess + 1.0))
            + _stirling_error(mode)
            + _stirling_error(n - mode)
            - _stirling_error(guess)
            - _stirling_error(n - guess)
        )
        if math.log(v * alpha / (a / (us * us) + b)) <= bound:
            return int(guess)


@compiled
def binomial(rng: np.random.Generator, n: int, p: float) -> int:
    """Successes of n trials; a probability that rounding has made NaN counts as 0."""
    if n <= 0 or not p > 0.0:
        return 0
    if p >= 1.0:
        return n
    q = min(p, 1.0 - p)
    if n * q < 10.0:
        return rng.binomial(n, p)
    few = _binomial_by_rejection(rng, n, q)
    return n - few if p > 0.5 else few


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
