"""Streams of random numbers: each trial has a seed of its own, so results do not depend on who runs which trial.

Trial i of a study has the i-th child of the study's seed, as `SeedSequence.spawn` makes them. Kernels may run a few
short trials from one stream, one after the other; it is the stream of the first of them.
"""

from __future__ import annotations

import numpy as np


def trial_seed(seed: int, trial: int) -> np.random.SeedSequence:
    """The seed of one trial: the trial-th child of a study's seed."""
    return np.random.SeedSequence(seed, spawn_key=(trial,))


def generator(seed: np.random.SeedSequence | int) -> np.random.Generator:
    """The generator of one stream: the fastest of NumPy's."""
    return np.random.Generator(np.random.SFC64(seed))
