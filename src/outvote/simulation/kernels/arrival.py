"""When everybody has been active once more: the draw at which the last of some players hears of an elimination.

Why it is exact. Let every player be active at the events of a Poisson process of its own, with its share of the draws
as rate. The sequence of active players is then that of independent draws, whatever the times. The first event of
player n comes after an exponential time E_n; the last of the players that matter is first active at t* = max E_n. Up
to and including t* there are the first events of those players, and besides them a Poisson number of events whose
mean is Σ share_n·(t* − E_n) over them plus t* times the share of all others. That is the number of draws, from one
exponential number per player and one Poisson number.
"""

from __future__ import annotations

import numpy as np

from outvote.simulation.arrays import Floats
from outvote.simulation.kernels.compiling import compiled


@compiled
def first_events(rng: np.random.Generator, shares: Floats, times: Floats) -> None:
    """An exponential time for every player; infinite for one that never wakes."""
    for player in range(len(shares)):
        share = shares[player]
        times[player] = rng.standard_exponential() / share if share > 0 else np.inf


@compiled
def draws_until_all_active(rng: np.random.Generator, shares: Floats, times: Floats, wanted: np.ndarray) -> int:
    """Draws until all wanted players have been active, given their first events; −1 if some never will be."""
    last = 0.0
    among = 0.0
    count = 0
    for player in range(len(shares)):
        if wanted[player]:
            count += 1
            among += shares[player]
            if times[player] > last:
                last = times[player]
    if last == np.inf:
        return -1
    mean = (1.0 - among) * last
    for player in range(len(shares)):
        if wanted[player]:
            mean += shares[player] * (last - times[player])
    return count + rng.poisson(mean)
