"""What the paper compares with: Median Elimination alone and shared without limit, and UCB1 shared without limit.

They have a player's face, so the engine `core` drives them as it drives the protocols.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from outvote.core.messages import Elimination, PlayerId, Vote
from outvote.core.task import Task
from outvote.core.votes.player import MedianPlayer
from outvote.core.votes.schedule import Schedule


class LocalMedianPlayer:
    """Median Elimination with η = δ that obeys itself: what it votes out is eliminated at once, here and only here."""

    def __init__(self, task: Task, player: PlayerId) -> None:
        self._inner = MedianPlayer(
            task, player, schedules=(Schedule(len(task.arms), task.epsilon, math.log(task.delta)),)
        )
        self.decide = self._inner.decide

    def reward(self, arm: int, reward: float, *, ticket: int | None = None) -> Sequence[Vote]:
        """The votes it has just obeyed; they are not for sending."""
        votes = self._inner.reward(arm, reward, ticket=ticket)
        if votes:
            self._inner.receive(Elimination(tuple(vote.arm for vote in votes)))
        return votes

    def receive(self, message: Elimination) -> None:
        self._inner.receive(message)

    @property
    def remaining(self) -> tuple[int, ...]:
        return self._inner.remaining

    def candidates(self, instance: int = 0) -> tuple[int, ...]:
        return self._inner.candidates(instance)


class Ucb1Player:
    """UCB1 (Auer et al. 2002): each arm once, then the highest μ̂_k + √(2 ln t / t_k). It never eliminates."""

    def __init__(self, arms: int) -> None:
        self._arms = tuple(range(arms))
        self._pulls = [0] * arms
        self._totals = [0.0] * arms
        self._means = [0.0] * arms
        self._widths = [0.0] * arms  # 1 / √t_k
        self._plays = 0

    def decide(self) -> tuple[int, int]:
        plays = self._plays
        self._plays = plays + 1
        if plays < len(self._arms):
            return plays, 0
        scale = math.sqrt(2.0 * math.log(plays))
        scores = [mean + scale * width for mean, width in zip(self._means, self._widths, strict=True)]
        return scores.index(max(scores)), 0

    def reward(self, arm: int, reward: float, *, ticket: int | None = None) -> Sequence[Vote]:
        self._pulls[arm] = pulls = self._pulls[arm] + 1
        self._totals[arm] = total = self._totals[arm] + reward
        self._means[arm] = total / pulls
        self._widths[arm] = 1.0 / math.sqrt(pulls)
        return ()

    def receive(self, message: Elimination) -> None:
        """Nobody sends it any."""

    @property
    def remaining(self) -> tuple[int, ...]:
        return self._arms

    def candidates(self, instance: int = 0) -> tuple[int, ...]:
        return self._arms
