"""What a block pays, with fractions and from the definitions alone: nothing here is shared with the package.

Every expectation is a sum over all ways in which arms can be drawn, so what it shows is exact.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache

Kinds = tuple[int, int, int, int]
"""How many units succeed with both arms, with the first alone, with the second alone, and with neither."""
Outcomes = tuple[int, ...]
"""One unit's outcome, 0 or 1, by the arm that it might be given."""


def by_matching(suspect: Sequence[int], rival: Sequence[int], stake: Fraction) -> Fraction:
    """The mean over all ways to match as many of both as can be, one way after the other."""
    small, large, sign = (suspect, rival, 1) if len(suspect) <= len(rival) else (rival, suspect, -1)
    total, ways = Fraction(0), 0
    for chosen in itertools.permutations(large, len(small)):
        total += math.prod(1 + stake * sign * (other - own) for own, other in zip(small, chosen, strict=True))
        ways += 1
    return total / ways


@cache
def paid(failed: int, succeeded: int, rival_failed: int, rival_succeeded: int, stake: Fraction) -> Fraction:
    """The same, one random pair after the other."""
    own, other = (failed, succeeded), (rival_failed, rival_succeeded)
    if not sum(own) or not sum(other):
        return Fraction(1)
    total = Fraction(0)
    for y, z in itertools.product((0, 1), repeat=2):
        if own[y] and other[z]:
            rest = paid(failed - (y == 0), succeeded - y, rival_failed - (z == 0), rival_succeeded - z, stake)
            total += own[y] * other[z] * (1 + stake * (z - y)) * rest
    return total / (sum(own) * sum(other))


def bet(decided: int, successes: int, other_decided: int, other_successes: int, stake: Fraction) -> Fraction:
    """What a block pays on the first arm as suspect and the second as rival."""
    return paid(decided - successes, successes, other_decided - other_successes, other_successes, stake)


# ---- units with fixed outcomes


def populations(units: int) -> Iterator[Kinds]:
    """All of so many units."""
    for both, first, second in itertools.product(range(units + 1), repeat=3):
        if both + first + second <= units:
            yield both, first, second, units - both - first - second


def drawn(of: Sequence[int], size: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """How many of each kind may be among so many, and in how many ways."""
    if len(of) == 1:
        if size <= of[0]:
            yield (size,), math.comb(of[0], size)
        return
    for count in range(min(of[0], size) + 1):
        for rest, ways in drawn(of[1:], size - count):
            yield (count, *rest), ways * math.comb(of[0], count)


def law(kinds: Kinds, decided: int, other_decided: int) -> dict[tuple[int, int], int]:
    """In how many ways both arms have so many successes. Units that get neither arm get another one."""
    ways: Counter[tuple[int, int]] = Counter()
    for first, first_ways in drawn(kinds, decided):
        left = [all_of - taken for all_of, taken in zip(kinds, first, strict=True)]
        for second, second_ways in drawn(left, other_decided):
            ways[first[0] + first[1], second[0] + second[2]] += first_ways * second_ways
    return ways


def ratio(kinds: Kinds, decided: int, other_decided: int, stake: Fraction) -> Fraction:
    """E G over its bound (1 − βτ)^m: at most 1."""
    ways = law(kinds, decided, other_decided)
    paid_in_all = (count * bet(decided, a, other_decided, b, stake) for (a, b), count in ways.items())
    mean = sum(paid_in_all, Fraction(0))
    better = Fraction(kinds[1] - kinds[2], sum(kinds))
    return mean / sum(ways.values()) / (1 - stake * better) ** min(decided, other_decided)


# ---- units whose outcomes are random


def ratio_of_chances(
    chances: Sequence[tuple[Fraction, Fraction]], decided: int, other_decided: int, stake: Fraction
) -> Fraction:
    """The same where a unit succeeds with one probability for each arm, independently."""
    total, ways = Fraction(0), 0
    units = range(len(chances))
    for first in itertools.combinations(units, decided):
        for second in itertools.combinations(sorted(set(units) - set(first)), other_decided):
            own, other = sums([chances[unit][0] for unit in first]), sums([chances[unit][1] for unit in second])
            for (a, p), (b, q) in itertools.product(enumerate(own), enumerate(other)):
                total += p * q * bet(decided, a, other_decided, b, stake)
            ways += 1
    better = sum((p - q for p, q in chances), Fraction(0)) / len(chances)
    return total / ways / (1 - stake * better) ** min(decided, other_decided)


def sums(chances: Sequence[Fraction]) -> list[Fraction]:
    """The law of how many succeed."""
    found = [Fraction(1)]
    for chance in chances:
        padded = [Fraction(0), *found, Fraction(0)]
        found = [padded[i + 1] * (1 - chance) + padded[i] * chance for i in range(len(found) + 1)]
    return found


# ---- decision by decision: arms that fall, and blocks closed by age


def orders(
    size: int, arms: int, *, falls: tuple[int, int] | None = None, closed_after: int | None = None, among: str = "left"
) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """All orders of arms in which a block may be decided, with their probabilities.

    `falls` is the decision before which an arm leaves, and the arm; `closed_after` so many decisions no more are made.
    `among` is what the next arm is drawn from: `left`, the decisions that are left, or `arms`, those that have some.
    """

    def go_on(
        made: tuple[int, ...], left: tuple[int, ...], chance: Fraction
    ) -> Iterator[tuple[tuple[int, ...], Fraction]]:
        if falls is not None and falls[0] == len(made):
            left = tuple(0 if arm == falls[1] else count for arm, count in enumerate(left))
        if not sum(left) or len(made) == closed_after:
            yield made, chance
            return
        there = sum(count > 0 for count in left)
        for arm, count in enumerate(left):
            if count:
                share = Fraction(count, sum(left)) if among == "left" else Fraction(1, there)
                rest = (*left[:arm], count - 1, *left[arm + 1 :])
                yield from go_on((*made, arm), rest, chance * share)

    yield from go_on((), (size,) * arms, Fraction(1))


def mean_ratio(
    outcomes: Sequence[Outcomes],
    drawn_orders: Sequence[tuple[tuple[int, ...], Fraction]],
    stake: Fraction,
    *,
    floor: int = 1,
    pair: tuple[int, int] = (0, 1),
) -> Fraction:
    """E[G/(1 − βτ)^m], τ the mean over the units that were given one arm of the pair: at most 1."""
    total = Fraction(0)
    for order, chance in drawn_orders:
        counts = []
        for arm in pair:
            own = [unit[arm] for unit, given in zip(outcomes, order, strict=False) if given == arm]
            counts += [len(own), sum(own)]
        least = min(counts[0], counts[2])
        if least < floor:
            total += chance
            continue
        units = [unit for unit, given in zip(outcomes, order, strict=False) if given in pair]
        better = Fraction(sum(unit[pair[0]] - unit[pair[1]] for unit in units), len(units))
        total += chance * bet(counts[0], counts[1], counts[2], counts[3], stake) / (1 - stake * better) ** least
    return total
