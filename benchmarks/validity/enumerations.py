"""Which small blocks are enumerated: the largest ratio of what is expected to its bound, in every case there is."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from benchmarks.validity.exact import (
    Outcomes,
    bet,
    by_matching,
    mean_ratio,
    orders,
    populations,
    ratio,
    ratio_of_chances,
)

STAKES = (Fraction(1, 50), Fraction(1, 3), Fraction(9, 10))
PAIRS = tuple(itertools.product((0, 1), repeat=2))
AS_GOOD = tuple(unit for unit in itertools.product((0, 1), repeat=3) if unit[0] >= max(unit[1:]))
"""Units in which the first of three arms is at least as good as the others."""


@dataclass(frozen=True)
class Enumeration:
    ratios: Callable[..., Iterator[Fraction]]
    small: Sequence[tuple[Any, ...]]
    """Cases for `make test`: arguments."""
    large: Sequence[tuple[Any, ...]]
    """The others, for `make validity`."""


def whole(size: int) -> Iterator[Fraction]:
    """Two arms share all units."""
    return (ratio(kinds, size, size, stake) for kinds in populations(2 * size) for stake in STAKES)


def uneven(decided: int, other: int, more: int) -> Iterator[Fraction]:
    """Counts may differ, and some units are given a third arm."""
    every = populations(decided + other + more)
    return (ratio(kinds, decided, other, stake) for kinds in every for stake in STAKES)


def chances(decided: int, other: int) -> Iterator[Fraction]:
    """Each unit succeeds with a chance of 0, ½ or 1 for each arm."""
    levels = (Fraction(0), Fraction(1, 2), Fraction(1))
    kinds = [(own, other) for own in levels for other in levels]
    every = itertools.combinations_with_replacement(kinds, decided + other)
    return (ratio_of_chances(units, decided, other, stake) for units in every for stake in STAKES)


def falls(size: int, before: int) -> Iterator[Fraction]:
    """The third arm falls before a decision of an open block."""
    drawn = as_pairs(orders(size, 3, falls=(before, 2)))
    tables = itertools.product(PAIRS, repeat=3 * size)
    return (mean_ratio(units, drawn, stake) for units in tables for stake in STAKES)


def ages(size: int, arms: int, after: int, floor: int) -> Iterator[Fraction]:
    """A block is closed after so many decisions; an arm below the floor is left out."""
    drawn = as_pairs(orders(size, arms, closed_after=after))
    tables = itertools.product(PAIRS, repeat=after)
    return (mean_ratio(units, drawn, stake, floor=floor) for units in tables for stake in STAKES)


def as_pairs(drawn: Iterator[tuple[tuple[int, ...], Fraction]]) -> list[tuple[tuple[int, ...], Fraction]]:
    """Which arm it is beyond the first two does not matter."""
    found: Counter[tuple[int, ...]] = Counter()
    for order, chance in drawn:
        found[tuple(min(arm, 2) for arm in order)] += chance  # type: ignore[assignment]  # counts in fractions
    return list(found.items())  # type: ignore[arg-type]


def two_blocks(size: int) -> Iterator[Fraction]:
    """The wealth against the first of three arms after two blocks, the mean over both rivals and all stakes.

    It is as good as both in every unit. The second block is the worst there is for what the first one paid.
    """
    drawn = list(orders(size, 3))
    every = [payments(units, drawn) for units in itertools.combinations_with_replacement(AS_GOOD, 3 * size)]
    means = {
        tuple(sum((chance * paid[i] for paid, chance in law.items()), Fraction(0)) for i in range(2 * len(STAKES)))
        for law in every
    }
    for law in every:
        yield sum(
            (
                chance * max(sum((a * b for a, b in zip(paid, mean, strict=True)), Fraction(0)) for mean in means)
                for paid, chance in law.items()
            ),
            Fraction(0),
        ) / (2 * len(STAKES))


def payments(
    units: Sequence[Outcomes], drawn: Sequence[tuple[tuple[int, ...], Fraction]]
) -> dict[tuple[Fraction, ...], Fraction]:
    """What a block pays against the first arm by rival and stake, and how likely."""
    law: dict[tuple[Fraction, ...], Fraction] = {}
    for order, chance in drawn:
        counts = [[unit[arm] for unit, given in zip(units, order, strict=True) if given == arm] for arm in range(3)]
        size, own = len(counts[0]), sum(counts[0])
        paid = tuple(bet(size, own, size, sum(counts[rival]), stake) for rival in (1, 2) for stake in STAKES)
        law[paid] = law.get(paid, Fraction(0)) + chance
    return law


ENUMERATIONS: dict[str, Enumeration] = {
    "whole blocks": Enumeration(whole, [(size,) for size in (1, 2, 3)], [(size,) for size in (4, 5, 6, 7)]),
    "unequal counts, and units of a third arm": Enumeration(
        uneven,
        list(itertools.product((1, 2, 3), (1, 2), (0, 1))),
        [case for case in itertools.product((1, 2, 3, 4), (1, 2, 3, 4, 5), (0, 1, 2, 3)) if sum(case) <= 10],
    ),
    "random outcomes": Enumeration(chances, [(1, 1), (1, 2), (2, 1)], [(2, 2), (1, 3), (3, 1), (2, 3), (3, 2), (3, 3)]),
    "a third arm falls in an open block": Enumeration(
        falls, [(1, before) for before in range(3)], [(2, before) for before in range(6)]
    ),
    "blocks closed by age": Enumeration(
        ages,
        [(3, 2, 3, 1), (3, 2, 4, 2), (2, 3, 3, 1)],
        [(2, 3, 4, 1), (2, 3, 5, 1), (2, 3, 5, 2), (4, 2, 5, 1), (4, 2, 6, 2), (3, 3, 6, 1)],
    ),
    "two blocks against two rivals": Enumeration(two_blocks, [(1,)], [(2,)]),
}


def largest(name: str, case: Sequence[Any]) -> tuple[int, Fraction]:
    """How many ratios there are, and the largest."""
    ratios = list(ENUMERATIONS[name].ratios(*case))
    return len(ratios), max(ratios)


def unequal_to_matching(most: int) -> tuple[int, int]:
    """Of all pairs of counts: how many there are, and of how many the bet is not the mean over all ways to match."""
    cases = wrong = 0
    for decided, other in itertools.product(range(1, most + 1), repeat=2):
        for own, others in itertools.product(range(decided + 1), range(other + 1)):
            first = [1] * own + [0] * (decided - own)
            second = [1] * others + [0] * (other - others)
            for stake in STAKES:
                cases += 1
                wrong += by_matching(first, second, stake) != bet(decided, own, other, others, stake)
    return cases, wrong


def among_arms(size: int, stake: Fraction = STAKES[-1]) -> Fraction:
    """The largest E G of identical arms if the next arm is drawn among the arms that have decisions left."""
    drawn = list(orders(size, 2, among="arms"))
    tables = ([(0, 0)] * failed + [(1, 1)] * (2 * size - failed) for failed in range(2 * size))
    return max(mean_ratio(units, drawn, stake) for units in tables)
