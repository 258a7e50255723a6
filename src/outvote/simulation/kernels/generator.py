"""xoshiro256++ (Blackman and Vigna): the random words of all kernels, four 64-bit numbers of state per trial.

The state of a trial comes from NumPy's `SeedSequence`, so results do not depend on who runs which trial.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from numba import types
from numba.extending import intrinsic

from outvote.simulation.arrays import Floats, Words, WordTable
from outvote.simulation.kernels.compiling import compiled

U = np.uint64
_BITS_53 = 1.0 / 9007199254740992.0


def trial_seed(seed: int, trial: int) -> np.random.SeedSequence:
    """The seed of one trial: the trial-th child of a study's seed."""
    return np.random.SeedSequence(seed, spawn_key=(trial,))


def trial_state(seed: np.random.SeedSequence) -> Words:
    """The generator of one trial."""
    return np.asarray(seed.generate_state(4, np.uint64), np.uint64)


@functools.lru_cache(maxsize=4096)
def _first_words(seed: int, trial: int) -> Words:
    return trial_state(trial_seed(seed, trial))


def trial_states(seed: int, trials: Sequence[int]) -> WordTable:
    """The generators of some trials; the settings of a study share seeds, so they are made once."""
    return np.array([_first_words(seed, trial) for trial in trials])


@compiled
def next_word(state: Words) -> np.uint64:
    """64 random bits."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    x = s0 + s3
    word = ((x << U(23)) | (x >> U(41))) + s0
    shifted = s1 << U(17)
    s2 ^= s0
    s3 ^= s1
    state[1] = s1 ^ s2
    state[0] = s0 ^ s3
    state[2] = s2 ^ shifted
    state[3] = (s3 << U(45)) | (s3 >> U(19))
    return word


@compiled
def uniform(state: Words) -> float:
    """A number in [0, 1), 53 bits."""
    return float(next_word(state) >> U(11)) * _BITS_53


@compiled
def uniform_open(state: Words) -> float:
    """A number in (0, 1), for logarithms."""
    return (float(next_word(state) >> U(11)) + 0.5) * _BITS_53


@compiled
def choose_player(state: Words, keep: Floats, alias: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    """A player by Walker's alias method: one uniform number chooses a column and a side of it."""
    scaled = uniform(state) * len(keep)
    column = int(scaled)
    return column if scaled - column < keep[column] else alias[column]


@intrinsic
def count_ones(typing_context, word):  # type: ignore[no-untyped-def]
    """The number of ones in a 64-bit word."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate
