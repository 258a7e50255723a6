"""Exact samplers on a generator's state: normal, gamma, beta, binomial, Poisson, and a multinomial over equal players.

Normal: the ziggurat in Doornik's form (2005). Gamma: Marsaglia and Tsang (2000). Binomial and Poisson: Hörmann's
transformed rejection (1993), inversion where their mean is small. Fair coins: counting the ones of random words.
"""

from __future__ import annotations

import math

import numpy as np

from outvote.simulation.arrays import Floats, Integers, IntegerTable, Words
from outvote.simulation.kernels.compiling import compiled
from outvote.simulation.kernels.generator import U, count_ones, next_word, uniform_open

_BLOCKS = 128
_TAIL = 3.442619855899
_AREA = 9.91256303526217e-3


def _ziggurat_edges() -> Floats:
    """The right edges of the ziggurat's blocks of equal area, the widest first."""
    edges = np.zeros(_BLOCKS + 1)
    edges[0] = _AREA / math.exp(-0.5 * _TAIL * _TAIL)
    edges[1] = _TAIL
    for i in range(2, _BLOCKS):
        edges[i] = math.sqrt(-2 * math.log(_AREA / edges[i - 1] + math.exp(-0.5 * edges[i - 1] ** 2)))
    return edges


EDGES = _ziggurat_edges()
RATIOS = EDGES[1:] / EDGES[:-1]


@compiled
def normal(state: Words) -> float:
    """Mean 0, variance 1."""
    while True:
        word = next_word(state)
        block = int(word & U(127))
        side = (float(word >> U(11)) + 0.5) * (2.0 / 9007199254740992.0) - 1.0
        if abs(side) < RATIOS[block]:
            return side * EDGES[block]
        if block == 0:
            while True:
                x = math.log(uniform_open(state)) / _TAIL
                y = math.log(uniform_open(state))
                if -2 * y >= x * x:
                    return x - _TAIL if side < 0 else _TAIL - x
        x = side * EDGES[block]
        upper = math.exp(-0.5 * (EDGES[block] * EDGES[block] - x * x))
        lower = math.exp(-0.5 * (EDGES[block + 1] * EDGES[block + 1] - x * x))
        if lower + uniform_open(state) * (upper - lower) < 1.0:
            return x


@compiled
def gamma(state: Words, shape: float) -> float:
    """Scale 1, shape at least 1."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(state)
        v = 1.0 + c * x
        if v <= 0:
            continue
        v = v * v * v
        u = uniform_open(state)
        if u < 1.0 - 0.0331 * x * x * x * x or math.log(u) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
            return d * v


@compiled
def order_statistic(state: Words, rank: int, count: int) -> float:
    """The rank-th smallest of `count` uniform numbers: Beta(rank, count − rank + 1)."""
    if rank == 1:
        return -math.expm1(math.log(uniform_open(state)) / count)
    x = gamma(state, float(rank))
    return x / (x + gamma(state, float(count - rank + 1)))


@compiled
def _stirling_error(k: float) -> float:
    """ln k! minus Stirling's approximation of it (argument shifted by one), to double precision."""
    if k < 10:
        return math.lgamma(k + 1.0) - ((k + 0.5) * math.log(k + 1.0) - (k + 1.0) + 0.9189385332046727)
    square = (k + 1.0) * (k + 1.0)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1.0)


@compiled
def _binomial_by_rejection(state: Words, n: int, p: float) -> int:
    """For n·p ≥ 10 and p ≤ 1/2."""
    spread = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre = n * p + 0.5
    squeeze = 0.92 - 4.2 / b
    while True:
        v = uniform_open(state)
        u = uniform_open(state) - 0.5
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
def _binomial_by_inversion(state: Words, n: int, p: float) -> int:
    """For n·p < 10: walk up the probabilities."""
    odds = p / (1.0 - p)
    start = math.exp(n * math.log1p(-p))
    while True:
        probability = start
        u = uniform_open(state)
        k = 0
        while u > probability:
            u -= probability
            k += 1
            if k > n:  # only by rounding: draw again
                break
            probability *= (n - k + 1) * odds / k
        if k <= n:
            return k


@compiled
def binomial(state: Words, n: int, p: float) -> int:
    """Successes of n trials."""
    if n <= 0 or p <= 0.0:
        return 0
    if p >= 1.0:
        return n
    q = 1.0 - p if p > 0.5 else p
    few = _binomial_by_rejection(state, n, q) if n * q >= 10.0 else _binomial_by_inversion(state, n, q)
    return n - few if p > 0.5 else few


@compiled
def fair_binomial(state: Words, n: int) -> int:
    """Heads of n fair coins: the ones of n random bits."""
    if n > 3000:
        return _binomial_by_rejection(state, n, 0.5)
    ones = U(0)
    left = n
    while left > 0:
        word = next_word(state)
        if left < 64:
            word >>= U(64 - left)
        ones += count_ones(word)  # type: ignore[call-arg]  # numba passes the first itself
        left -= 64
    return int(ones)


@compiled
def poisson(state: Words, mean: float) -> int:
    """Events of a Poisson process."""
    if mean <= 0.0:
        return 0
    if mean < 10.0:
        limit = math.exp(-mean)
        product = uniform_open(state)
        k = 0
        while product > limit:
            product *= uniform_open(state)
            k += 1
        return k
    root = math.sqrt(mean)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2.0)
    while True:
        u = uniform_open(state) - 0.5
        v = uniform_open(state)
        us = 0.5 - abs(u)
        guess = math.floor((2 * a / us + b) * u + mean + 0.43)
        if us >= 0.07 and v <= squeeze:
            return int(guess)
        if guess < 0 or (us < 0.013 and v > us):
            continue
        if math.log(v * inverse_alpha / (a / (us * us) + b)) <= guess * math.log(mean) - mean - math.lgamma(
            guess + 1.0
        ):
            return int(guess)


@compiled
def split_evenly(state: Words, draws: int, counts: Integers, first: int, players: int, stack: IntegerTable) -> None:
    """Share draws among equally likely players, halving the players again and again."""
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
                taken = binomial(state, rest, 1.0 / left)
                counts[at] = taken
                at += 1
                left -= 1
                rest -= taken
            else:
                taken = fair_binomial(state, rest)
                left >>= 1
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = at + left, left, rest - taken
                depth += 1
                rest = taken


@compiled
def draws_per_player(
    state: Words, draws: int, group_ends: Integers, group_shares: Floats, counts: Integers, stack: IntegerTable
) -> None:
    """How often each player is active in so many draws: multinomial, group by group of equally likely players.

    `group_shares` are shares of what the earlier groups left, so the last is 1; a group of share 0 never wakes.
    """
    first = 0
    for group in range(len(group_ends)):
        last = group_ends[group]
        taken = binomial(state, draws, group_shares[group])
        split_evenly(state, taken, counts, first, last - first, stack)
        draws -= taken
        first = last
