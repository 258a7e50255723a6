"""The baseline of add-a-baseline.md: explore, then commit."""

# ---- baseline
from __future__ import annotations

import random
from collections.abc import Sequence

from outvote.core.task import Task
from outvote.simulation import register_baseline


class ExploreFirst:
    """Plays every arm `pulls` times, one after the other, then only the one that has earned most."""

    key = "explore-first 1"

    def __init__(self, task: Task, number: int, rng: random.Random, *, pulls: int) -> None:
        self.totals = [0.0] * len(task.arms)
        self.left = [arm for arm in range(len(task.arms)) for _ in range(pulls)]
        self.best = 0

    def decide(self) -> int:
        return self.left[0] if self.left else self.best

    def reward(self, arm: int, reward: float) -> Sequence[int]:
        if not self.left:
            return ()
        self.totals[arm] += reward
        self.left.pop(0)
        if self.left:
            return ()
        self.best = self.totals.index(max(self.totals))
        return [arm for arm in range(len(self.totals)) if arm != self.best]


def register() -> None:
    """The same algorithm on each player alone, and in one place that has the events of all."""
    register_baseline("explore-first", ExploreFirst, parameters={"pulls": 10})
    register_baseline("explore-first-shared", ExploreFirst, shared=True, parameters={"pulls": 10})
