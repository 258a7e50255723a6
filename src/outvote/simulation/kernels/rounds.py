"""Plays in turn: what many of them come to without making them.

A player that plays its remaining arms in turn makes whole rounds, in which every arm is played once, and a part of one.
"""

from __future__ import annotations

from outvote.simulation.arrays import Floats, Integers
from outvote.simulation.kernels.compiling import compiled


@compiled
def play_on(prefix: Floats, size: int, position: int, plays: int) -> tuple[int, float]:
    """The place in the round after so many plays, and their regret; `prefix` sums the gaps of the arms in order."""
    ahead = position + plays
    rounds = ahead // size
    place = ahead - rounds * size
    return place, rounds * prefix[size] - prefix[position] + prefix[place]


@compiled
def count_plays(pulls: Integers, arms: Integers, size: int, start: int, plays: int) -> None:
    """Add so many plays, from a place in the round, to the pulls of the arms."""
    rounds = plays // size
    rest = plays - rounds * size
    for distance in range(size):
        at = start + distance
        if at >= size:
            at -= size
        pulls[arms[at]] += rounds + (1 if distance < rest else 0)
