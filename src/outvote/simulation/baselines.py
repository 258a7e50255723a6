"""What the paper compares with: Median Elimination alone and shared without limit, and UCB1 shared without limit."""

from __future__ import annotations

import math
from collections.abc import Sequence

from outvote.core.decisions import Ticket
from outvote.core.messages import Elimination
from outvote.core.task import Task
from outvote.core.votes.player import MedianPlayer
from outvote.core.votes.schedule import Schedule


class LocalMedian:
    """Median Elimination with η = δ that obeys itself: what it votes out is eliminated at once, here and only here."""

    def __init__(self, task: Task, player: int, rng: object) -> None:
        schedule = Schedule(len(task.arms), task.epsilon, math.log(task.delta))
        self._inner = MedianPlayer(task, player, schedules=(schedule,))
        self._ticket = Ticket.uncounted(0)

    def decide(self) -> int:
        self._ticket = self._inner.decide(0)
        return self._ticket.arm

    def reward(self, arm: int, reward: float) -> Sequence[int]:
        self._inner.reward(self._ticket, reward, 0)
        votes = self._inner.tick(0)
        if not votes:
            return ()
        fallen = tuple(vote.arm for vote in votes)
        self._inner.receive(Elimination(fallen))
        return fallen


class Ucb1:
    """UCB1 (Auer et al. 2002): each arm once, then the highest μ̂_k + √(2 ln t / t_k). It never eliminates."""

    def __init__(self, task: Task, player: int, rng: object) -> None:
        arms = len(task.arms)
        self._pulls = [0] * arms
        self._totals = [0.0] * arms
        self._means = [0.0] * arms
        self._widths = [0.0] * arms  # 1 / √t_k
        self._plays = 0

    def decide(self) -> int:
        plays = self._plays
        self._plays = plays + 1
        if plays < len(self._pulls):
            return plays
        scale = math.sqrt(2.0 * math.log(plays))
        scores = [mean + scale * width for mean, width in zip(self._means, self._widths, strict=True)]
        return scores.index(max(scores))

    def reward(self, arm: int, reward: float) -> None:
        self._pulls[arm] = pulls = self._pulls[arm] + 1
        self._totals[arm] = total = self._totals[arm] + reward
        self._means[arm] = total / pulls
        self._widths[arm] = 1.0 / math.sqrt(pulls)
