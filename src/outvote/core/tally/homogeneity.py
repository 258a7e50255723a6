"""Do all sites see the same means? A test on how much their tallies of one arm differ.

Pooling is right only if an arm is worth the same everywhere (Assumption 1). Where it is not, the sites' shares of an
arm vary more than chance allows: the test compares the sum of squared deviations, site by site and arm by arm, with
its mean and variance under equal means (Tarone's statistic of 1979, here also for noisy tallies).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from outvote.core.messages import PlayerId
from outvote.core.tally.noise import Channel
from outvote.core.task import Task

FALSE_ALARM = 0.001
"""At most so often is a fleet of equal sites held back, over all looks of a task."""
RELEASE = 2.0
"""A decision that was held back is released when the score has fallen so low: equal sites come there with more events,
different ones move away from it."""
PATIENCE = 1.25
"""While a decision is held back, the sites are looked at again when so many times as many tallies are in."""


@dataclass(slots=True)
class Cell:
    """What one site has reported of one arm."""

    successes: int
    tallies: list[int]
    """How many of each size."""


@dataclass(frozen=True, slots=True)
class Cumulants:
    """Of one tally, or of several together, for cumulants of independent numbers add up."""

    mean: float = 0.0
    variance: float = 0.0
    third: float = 0.0
    fourth: float = 0.0
    fifth: float = 0.0
    sixth: float = 0.0


class Homogeneity:
    """The cells of all sites and arms, and what they say."""

    def __init__(self, task: Task) -> None:
        self._channels = [Channel(size, task.privacy_budget) for size in task.tally_sizes]
        self._size_index = {size: index for index, size in enumerate(task.tally_sizes)}
        self.cells: list[dict[PlayerId, Cell]] = [{} for _ in task.arms]
        self.level = level_of_a_look(len(task.arms))
        """The false-alarm rate of one look."""
        self.held = False
        """The sites were found to differ, and do not agree yet."""
        self.tallies = 0
        self.next_look = 0
        """While held: how many tallies there must be."""
        self._glanced = 0, 0.0
        """At the last glance: how many tallies there were, and the score."""

    def add(self, player: PlayerId, arm: int, size: int, successes: int) -> None:
        cells = self.cells[arm]
        cell = cells.get(player)
        if cell is None:
            cell = cells[player] = Cell(0, [0] * len(self._channels))
        cell.successes += successes
        cell.tallies[self._size_index[size]] += 1
        self.tallies += 1

    def agree(self) -> bool:
        """Whether a decision may be announced: asked before each, and again and again while it is held back."""
        if self.tallies < self.next_look:
            return False
        score = self.score()
        self.held = score >= RELEASE if self.held else 0.5 * math.erfc(score / math.sqrt(2.0)) < self.level
        self.next_look = math.ceil(PATIENCE * self.tallies) if self.held else 0
        return not self.held

    def glance(self) -> float:
        """The score for people, who look often: reckoned again when enough is new. No decision depends on it."""
        tallies, score = self._glanced
        if not tallies or self.tallies >= PATIENCE * tallies:
            score = self.score()
            self._glanced = self.tallies, score
        return score

    def score(self) -> float:
        """How many standard deviations the sites differ more than chance would have it, on a normal scale."""
        excess = variance = third = 0.0
        for cells in self.cells:
            of_arm = self._of_arm(list(cells.values()))
            if of_arm is not None:
                excess += of_arm[0]
                variance += of_arm[1]
                third += of_arm[2]
        return normal_score(excess, variance, third)

    def _of_arm(self, cells: Sequence[Cell]) -> tuple[float, float, float] | None:
        """The excess of squared deviations over its mean, its variance and third cumulant, in units of one event's."""
        totals = [sum(cell.tallies[index] for cell in cells) for index in range(len(self._channels))]
        successes = sum(cell.successes for cell in cells)
        trials = sum(channel.trials * total for channel, total in zip(self._channels, totals, strict=True))
        mean = self._mean(totals, successes, trials)
        if mean is None or len(cells) < 2:
            return None
        step = 1e-4 * min(mean, 1 - mean)
        at, above = self._cumulants(totals, mean), self._cumulants(totals, mean + step)
        whole, whole_above = _sum(totals, at), _sum(totals, above)
        slope = (whole_above.mean - whole.mean) / step
        bend = (whole_above.variance - whole.variance) / step / slope
        slopes = [(b.mean - a.mean) / step for a, b in zip(at, above, strict=True)]
        unit = whole.variance / trials
        excess = -unit  # the variance at the estimated mean is a little too small, by one event's in all
        variance = third = 0.0
        for cell in cells:
            of_cell = _sum(cell.tallies, at)
            share = math.fsum(count * each for count, each in zip(cell.tallies, slopes, strict=True)) / slope
            excess += (cell.successes - of_cell.mean) ** 2 - of_cell.variance * (1 - share)
            second, skew = of_square(of_cell, bend)
            variance += second
            third += skew
        return excess / unit, variance / unit**2, third / unit**3

    def _mean(self, totals: Sequence[int], successes: int, trials: int) -> float | None:
        """The mean at which so many successes are expected; None where nothing can vary."""
        if not 0 < successes < trials:
            return None
        if self._channels[0].alpha == 0.0:
            return successes / trials
        low, high = 1e-6, 1 - 1e-6
        for _ in range(50):
            middle = (low + high) / 2
            expected = _sum(totals, self._cumulants(totals, middle)).mean
            low, high = (middle, high) if expected < successes else (low, middle)
        return (low + high) / 2

    def _cumulants(self, totals: Sequence[int], mean: float) -> list[Cumulants]:
        """Of one tally of each size; of sizes that do not occur, none are worked out."""
        nothing = Cumulants()
        return [
            cumulants(channel.sent(mean)) if total else nothing
            for channel, total in zip(self._channels, totals, strict=True)
        ]


def looks(arms: int) -> int:
    """How often a task looks at most: before each announcement, and each halves the arms or leaves one."""
    return (arms - 1).bit_length() + 1


def level_of_a_look(arms: int) -> float:
    """Each look has its share of the false-alarm rate."""
    return FALSE_ALARM / looks(arms)


def of_square(deviation: Cumulants, bend: float) -> tuple[float, float]:
    """Variance and third cumulant of D² − bend·D, for a deviation D from the mean.

    Estimating the mean from the same tallies takes the part of D² that goes along with D away.
    """
    second, third, fourth = deviation.variance, deviation.third, deviation.fourth
    variance = 2 * second**2 + fourth - 2 * bend * third + bend**2 * second
    skew = (
        (8 * second**3 + 12 * second * fourth + 10 * third**2 + deviation.sixth)
        - 3 * bend * (deviation.fifth + 8 * second * third)
        + 3 * bend**2 * (fourth + 2 * second**2)
        - bend**3 * third
    )
    return variance, skew


def normal_score(excess: float, variance: float, third: float) -> float:
    """The normal quantile at which a skewed number stands (Wilson and Hilferty's cube root of a gamma law)."""
    if variance <= 0:
        return 0.0
    score = excess / math.sqrt(variance)
    skewness = third / variance / math.sqrt(variance)
    if skewness < 1e-6:
        return score
    shape = 4 / skewness**2
    root = math.cbrt(max(1 + score / math.sqrt(shape), 0.0))
    return 3 * math.sqrt(shape) * (root - 1 + 1 / (9 * shape))


def cumulants(law: Sequence[float]) -> Cumulants:
    """Of what is sent for a tally."""
    centre = math.fsum(z * p for z, p in enumerate(law))
    second, third, fourth, fifth, sixth = (
        math.fsum((z - centre) ** power * p for z, p in enumerate(law)) for power in (2, 3, 4, 5, 6)
    )
    return Cumulants(
        mean=centre,
        variance=second,
        third=third,
        fourth=fourth - 3 * second**2,
        fifth=fifth - 10 * third * second,
        sixth=sixth - 15 * fourth * second - 10 * third**2 + 30 * second**3,
    )


def _sum(counts: Sequence[int], each: Sequence[Cumulants]) -> Cumulants:
    pairs = [(count, of_one) for count, of_one in zip(counts, each, strict=True) if count]
    return Cumulants(
        mean=sum(count * of_one.mean for count, of_one in pairs),
        variance=sum(count * of_one.variance for count, of_one in pairs),
        third=sum(count * of_one.third for count, of_one in pairs),
        fourth=sum(count * of_one.fourth for count, of_one in pairs),
        fifth=sum(count * of_one.fifth for count, of_one in pairs),
        sixth=sum(count * of_one.sixth for count, of_one in pairs),
    )
