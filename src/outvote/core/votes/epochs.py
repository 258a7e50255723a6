"""One run of Median Elimination at one player: its epoch, its candidates, and what ends the epoch.

It sees events only as running counts per arm that are never reset, and remembers where its epoch began: so M
instances can share every event, and the pulls of an epoch are a difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from outvote.core.votes.schedule import Schedule


class Counts(Protocol):
    """What a player has observed of one arm."""

    arm: int
    pulls: int
    total: float


class Instance:
    """The state of Algorithm 2 between two events."""

    __slots__ = ("candidates", "epoch", "needed", "pulls_before", "schedule", "tied", "totals_before")

    def __init__(self, schedule: Schedule, arms: int) -> None:
        self.schedule = schedule
        self.candidates = set(range(arms))
        """K^n_l."""
        self.pulls_before = [0] * arms
        self.totals_before = [0.0] * arms
        self.tied = False
        """The last epoch ended with no candidate below the median."""
        self.epoch = 1
        self.needed = schedule.pulls(1)

    @property
    def finished(self) -> bool:
        """Nothing is left to vote on."""
        return len(self.candidates) <= 1

    def pulls(self, counts: Counts) -> int:
        """t^n_k."""
        return counts.pulls - self.pulls_before[counts.arm]

    def mean(self, counts: Counts) -> float:
        """μ̂^n_k; 0 before the first pull, as in Algorithm 3, line 4."""
        pulls = self.pulls(counts)
        return (counts.total - self.totals_before[counts.arm]) / pulls if pulls else 0.0

    def complete(self, remaining: Iterable[Counts]) -> bool:
        """Every remaining arm has its pulls (Algorithm 2, line 4). A finished instance has no more epochs."""
        return not self.finished and all(self.pulls(counts) >= self.needed for counts in remaining)

    def end_epoch(self, lanes: Sequence[Counts]) -> list[int]:
        """Algorithm 2, lines 5 to 12: the arms to vote out, the worst first (equal means: the lower index first)."""
        means = {arm: self.mean(lanes[arm]) for arm in self.candidates}
        ordered = sorted(means.values())
        half = len(ordered) // 2
        median = ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
        leaving = sorted((mean, arm) for arm, mean in means.items() if mean < median)
        for arm in self.candidates:
            self.pulls_before[arm] = lanes[arm].pulls
            self.totals_before[arm] = lanes[arm].total
        self.candidates.difference_update(arm for _, arm in leaving)
        self.tied = not leaving
        self.epoch += 1
        self.needed = self.schedule.pulls(self.epoch)
        return [arm for _, arm in leaving]

    def next_change(self, counts: Counts) -> float:
        """The running count of pulls at which this arm next completes its part of an epoch; never, if it has."""
        goal = self.pulls_before[counts.arm] + self.needed
        return goal if counts.pulls < goal else math.inf

    def wanted(self, arm: int, pulls: int) -> int:
        """More pulls that this instance needs of an arm, once the running count will have reached `pulls`.

        If the current epoch has all it needs, what the next one needs: a candidate starts anew there, the pulls of
        an arm that was voted out go on counting.
        """
        missing = self.needed - (pulls - self.pulls_before[arm])
        epoch = self.epoch
        while missing <= 0:
            epoch += 1
            needed = self.schedule.pulls(epoch)
            missing += needed if arm in self.candidates else needed - self.schedule.pulls(epoch - 1)
        return missing

    def snapshot(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "candidates": sorted(self.candidates),
            "pulls_before": list(self.pulls_before),
            "totals_before": [float(total) for total in self.totals_before],
            "tied": self.tied,
        }

    def restore(self, record: Mapping[str, Any]) -> None:
        """Take over what `snapshot` wrote."""
        self.epoch = record["epoch"]
        self.needed = self.schedule.pulls(self.epoch)
        self.candidates = set(record["candidates"])
        self.pulls_before = list(record["pulls_before"])
        self.totals_before = list(record["totals_before"])
        self.tied = record["tied"]
