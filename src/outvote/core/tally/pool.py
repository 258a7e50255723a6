"""What a fleet says of one arm, whoever f of its sites are: no site counts for much, and both ends are cut off.

Bets and rivals may be chosen by anything that is known before a round, so nothing is proved of this pool and nothing
need be. It keeps f sites from choosing them badly: that would cost events, not the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from outvote.core.tally.bets import Bets

Cell: TypeAlias = list[int]
"""Of one site: its events, their successes, and the same by size: tallies of the first, their successes, and so on."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Tallies of each size and their successes, weighed: so they are no whole numbers."""

    tallies: tuple[float, ...]
    successes: tuple[float, ...]
    _found: dict[tuple[str, float], list[float]] = field(default_factory=dict, compare=False, repr=False)
    """What was reckoned of it before."""

    @classmethod
    def empty(cls, sizes: int) -> Pool:
        return cls((0.0,) * sizes, (0.0,) * sizes)

    def standing(self, sizes: Sequence[int]) -> float:
        """The mean, drawn a little towards ½: who leads."""
        trials = sum(count * size for count, size in zip(self.tallies, sizes, strict=True))
        return (sum(self.successes) + 0.5) / (trials + 1)

    def contributions(
        self, table: Callable[[int], Bets], side: Literal["worse", "better"], epsilon: float
    ) -> list[float]:
        """What all tallies of the pool would have contributed to each bet, were they all alike. `table` has the bets of
        the sizes by their index; of sizes that do not occur none are asked for."""
        known = self._found.get((side, epsilon))
        if known is None:
            known = [0.0] * len(table(0).log_weights)
            for index, (count, successes) in enumerate(zip(self.tallies, self.successes, strict=True)):
                if count:
                    rows = getattr(table(index), side)
                    low = min(int(successes / count), len(rows) - 2)
                    part = successes / count - low
                    for bet, (here, above) in enumerate(zip(rows[low], rows[low + 1], strict=True)):
                        known[bet] += count * ((1 - part) * here + part * above)
            self._found[side, epsilon] = known
        return known


def take(cell: Cell, index: int, size: int, successes: int) -> None:
    """A tally of the size with this index."""
    cell[0] += size
    cell[1] += successes
    cell[2 * index + 2] += 1
    cell[2 * index + 3] += successes


def of_sites(cells: Sequence[Cell], sizes: Sequence[int], tolerate: int) -> Pool:
    """The pool of these sites. No site has more events in it than the one that comes after the f busiest; those f
    whose means raise the pool's most are left out, and those f that lower it most."""
    if not cells:
        return Pool.empty(len(sizes))
    trials = [cell[0] for cell in cells]
    most = sorted(trials, reverse=True)[min(tolerate, len(trials) - 1)]
    weights = [min(1.0, most / count) for count in trials]
    means = [cell[1] / cell[0] for cell in cells]
    middle = _weighted_median(means, [weight * count for weight, count in zip(weights, trials, strict=True)])
    pull = [weight * count * (mean - middle) for weight, count, mean in zip(weights, trials, means, strict=True)]
    kept = sorted(range(len(cells)), key=lambda site: (pull[site], site))
    if len(kept) > 2 * tolerate:
        kept = sorted(kept[tolerate : len(kept) - tolerate])
    return Pool(
        tuple(sum([weights[site] * cells[site][2 * index] for site in kept]) for index in range(1, len(sizes) + 1)),
        tuple(sum([weights[site] * cells[site][2 * index + 1] for site in kept]) for index in range(1, len(sizes) + 1)),
    )


def alike(pools: Sequence[Pool]) -> list[Pool]:
    """The same means, of as many tallies for each arm: with more of one, bets that explain it alone would look best."""
    tallies = tuple(min(counts) for counts in zip(*(pool.tallies for pool in pools), strict=True))
    return [
        Pool(
            tallies,
            tuple(
                successes * least / count if count else 0.0
                for successes, least, count in zip(pool.successes, tallies, pool.tallies, strict=True)
            ),
        )
        for pool in pools
    ]


def _weighted_median(values: Sequence[float], weights: Sequence[float]) -> float:
    """The value at which half of the weight is reached."""
    half = sum(weights) / 2
    reached = 0.0
    for value, weight in sorted(zip(values, weights, strict=True)):
        reached += weight
        if reached >= half:
            return value
    return max(values)
