"""A binary heap of events by their clocks: who is first."""

from __future__ import annotations

from outvote.simulation.arrays import Floats, Integers
from outvote.simulation.kernels.compiling import compiled


@compiled
def push(clocks: Floats, owners: Integers, count: int, clock: float, owner: int) -> int:
    """Put an event into the heap; returns how many there are."""
    at = count
    while at > 0:
        parent = (at - 1) >> 1
        if clocks[parent] <= clock:
            break
        clocks[at] = clocks[parent]
        owners[at] = owners[parent]
        at = parent
    clocks[at] = clock
    owners[at] = owner
    return count + 1


@compiled
def pop(clocks: Floats, owners: Integers, count: int) -> int:
    """Take the first out of the heap; returns how many are left."""
    count -= 1
    clock, owner = clocks[count], owners[count]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and clocks[child + 1] < clocks[child]:
            child += 1
        if clocks[child] >= clock:
            break
        clocks[at] = clocks[child]
        owners[at] = owners[child]
        at = child
    clocks[at] = clock
    owners[at] = owner
    return count
