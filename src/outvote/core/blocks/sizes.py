"""How many decisions of each arm a block holds: it follows from the block's number, from times and totals, never from
outcomes.
"""

from __future__ import annotations

from typing import Final

RUNGS: Final = (1, 3, 7, 15, 31, 63, 127)
LARGEST: Final = RUNGS[-1]


def planned(number: int, floor: int, cap: int = LARGEST) -> int:
    """The size of the block of this number, from 0: the schedule grows one rung whenever the number doubles.

    >>> [planned(number, floor=1) for number in range(10)]
    [1, 1, 3, 3, 7, 7, 7, 7, 15, 15]
    """
    rung = (1 << max(1, number.bit_length())) - 1
    return max(floor, min(rung, cap, LARGEST))


def below(size: int) -> int:
    """The largest rung that is smaller, or the smallest one."""
    return max((rung for rung in RUNGS if rung < size), default=RUNGS[0])


def above(size: int) -> int:
    """The smallest rung that is larger, or the largest one."""
    return min((rung for rung in RUNGS if rung > size), default=LARGEST)
