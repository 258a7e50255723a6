"""Algorithm 2 to the letter: lists, a reset at each epoch's end, and the test after every reward.

It shares nothing with the package but the messages, and counts rewards in whole eighths, so its means are exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from statistics import median

from outvote.core.messages import Vote
from outvote.core.task import Task
from outvote.core.votes.player import MedianPlayer

from .tasks import ShortTask


def epoch_length(task: Task, instance: int, epoch: int) -> int:
    """The smallest integer ≥ 4/ε_l² · ln(3K/η_l)."""
    if isinstance(task, ShortTask):
        first, growth = task.lengths[instance]
        return first + growth * (epoch - 1)
    arms, share = len(task.arms), task.delta / len(task.instances)
    if task.quorum == "certified":
        eta = math.sqrt(27 * arms * (1 - (1 - share) ** (1 / task.players)) / 2)
    else:
        eta = share ** (2 / task.instances[instance])
    epsilon, eta = task.epsilon / 4, eta / 2
    for _ in range(epoch - 1):
        epsilon, eta = 3 * epsilon / 4, eta / 2
    return math.ceil(4 / epsilon**2 * math.log(3 * arms / eta))


class LiteralInstance:
    """One run of Median Elimination."""

    def __init__(self, task: Task, index: int) -> None:
        self.task = task
        self.index = index
        self.candidates = list(range(len(task.arms)))
        self.pulls = [0 for _ in task.arms]
        self.eighths = [0 for _ in task.arms]
        self.tied = False
        self.begin(epoch=1)

    def begin(self, epoch: int) -> None:
        self.epoch = epoch
        self.length = epoch_length(self.task, self.index, epoch)

    def finished(self) -> bool:
        return len(self.candidates) <= 1

    def complete(self, remaining: Sequence[int]) -> bool:
        return not self.finished() and all(self.pulls[arm] >= self.length for arm in remaining)

    def mean(self, arm: int) -> Fraction:
        return Fraction(self.eighths[arm], 8 * self.pulls[arm]) if self.pulls[arm] else Fraction(0)

    def end_epoch(self) -> list[int]:
        means = {arm: self.mean(arm) for arm in self.candidates}
        middle = median(means.values())
        leaving = sorted((arm for arm in self.candidates if means[arm] < middle), key=lambda arm: (means[arm], arm))
        for arm in self.candidates:
            self.pulls[arm] = self.eighths[arm] = 0
        self.candidates = [arm for arm in self.candidates if arm not in leaving]
        self.tied = not leaving
        self.begin(self.epoch + 1)
        return leaving


class LiteralPlayer:
    """One player: the arms it may play, and M instances that see every observation."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.arms = len(task.arms)
        self.remaining = list(range(self.arms))
        self.last = -1
        self.sequence = 0
        self.instances = [LiteralInstance(task, index) for index in range(len(task.instances))]

    def decide(self) -> int:
        cycle = [(self.last + step) % self.arms for step in range(1, self.arms + 1)]
        self.last = next(arm for arm in cycle if arm in self.remaining)
        return self.last

    def reward(self, arm: int, eighths: int) -> list[Vote]:
        if arm not in self.remaining:
            return []
        self.observe(arm, eighths, pulls=1)
        return self.test()

    def observe(self, arm: int, eighths: int, *, pulls: int) -> None:
        for instance in self.instances:
            instance.pulls[arm] += pulls
            instance.eighths[arm] += eighths

    def test(self) -> list[Vote]:
        votes = []
        for instance in self.instances:
            if instance.complete(self.remaining):
                for arm in instance.end_epoch():
                    votes.append(Vote(arm, instance.index, self.sequence))
                    self.sequence += 1
        return votes

    def test_due(self) -> bool:
        return any(instance.complete(self.remaining) for instance in self.instances)

    def eliminate(self, arms: Sequence[int]) -> None:
        for arm in arms:
            if arm in self.remaining and len(self.remaining) > 1:
                self.remaining.remove(arm)
                for instance in self.instances:
                    instance.candidates = [candidate for candidate in instance.candidates if candidate != arm]

    def waited_for(self) -> list[int]:
        """Arms that alone keep some epoch from ending: to eliminate one is the most delicate moment of a player."""
        unfinished = [instance for instance in self.instances if not instance.finished()]
        behind = [[arm for arm in self.remaining if i.pulls[arm] < i.length] for i in unfinished]
        return [arms[0] for arms in behind if len(arms) == 1]

    def status(self) -> str:
        unfinished = [instance for instance in self.instances if not instance.finished()]
        if not unfinished:
            return "finished"
        return "tied" if all(instance.tied for instance in unfinished) else "exploring"


def assert_same(player: MedianPlayer, literal: LiteralPlayer) -> None:
    """All that people can ask a player is what the literal one says."""
    assert list(player.remaining) == literal.remaining
    assert player.status == literal.status()
    for index, instance in enumerate(literal.instances):
        assert player.epoch(index) == instance.epoch
        assert list(player.candidates(index)) == instance.candidates
        assert [player.pulls(arm, index) for arm in range(literal.arms)] == instance.pulls
        assert [player.mean(arm, index) for arm in range(literal.arms)] == [
            float(instance.mean(arm)) for arm in range(literal.arms)
        ]
