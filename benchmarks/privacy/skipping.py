"""Listening to a fleet of `dme` or `edme` without making every draw: only the ends of epochs are played.

Why it is exact in distribution. Let every equally active player draw at the times of a Poisson process of its own: who
draws next is then any of them, as in Algorithm 1. A player's cycle is fixed until an arm is eliminated, so it is known
after how many of its own draws D its next epoch ends; that takes a Gamma(D) time. If an elimination comes before, the
draws made by then are Binomial(D − 1, share of the time that has passed), as for any D − 1 uniform times. Rewards
matter only as sums at the ends of epochs, and those are binomial. Epochs, votes and quorums are the core's own.
"""

from __future__ import annotations

import numpy as np

from benchmarks.privacy.adversary import Transcript
from benchmarks.privacy.games import Sums
from outvote.core.messages import UpMessage, Vote
from outvote.core.task import Task
from outvote.core.votes.epochs import Instance
from outvote.core.votes.server import VoteServer


class Skipper:
    """One player between two moments at which anything happens."""

    def __init__(self, task: Task) -> None:
        arms = len(task.arms)
        self.lanes = [Sums(arm, 0, 0.0) for arm in range(arms)]
        self.instances = [Instance(schedule, arms) for schedule in task.schedules()]
        self.remaining = list(range(arms))
        self.following = 0
        """The first arm after the one played last."""
        self.sequence = 0
        self.since = 0.0
        self.draws = 0
        """Of its own, until its next epoch ends; 0: nothing is left to vote on."""
        self.until = np.inf

    def plan(self, now: float, rng: np.random.Generator) -> None:
        """When the next epoch ends, if nothing comes between."""
        cycle = self._cycle()
        ends = [
            max(1, max(place + 1 + (self._missing(instance, arm) - 1) * len(cycle) for place, arm in enumerate(cycle)))
            for instance in self.instances
            if not instance.finished
        ]
        self.draws = min(ends, default=0)
        self.since = now
        self.until = now + rng.gamma(self.draws) if self.draws else np.inf

    def interrupt(self, now: float, means: np.ndarray, rng: np.random.Generator) -> None:
        """Something has come before that: make the draws up to now. Who waits for nothing goes on drawing."""
        if self.draws:
            passed = (now - self.since) / (self.until - self.since)
            self.make(int(rng.binomial(self.draws - 1, passed)), means, rng)
        else:
            self.make(int(rng.poisson(now - self.since)), means, rng)

    def make(self, draws: int, means: np.ndarray, rng: np.random.Generator) -> None:
        """So many draws at once."""
        cycle = self._cycle()
        for place, arm in enumerate(cycle):
            pulls = (draws - place + len(cycle) - 1) // len(cycle)
            if pulls > 0:
                self.lanes[arm].pulls += pulls
                self.lanes[arm].total += float(rng.binomial(pulls, means[arm]))
        self.following = cycle[draws % len(cycle)]

    def vote(self) -> list[Vote]:
        """The test of Algorithm 2, line 4, in every instance."""
        votes = []
        counts = [self.lanes[arm] for arm in self.remaining]
        for index, instance in enumerate(self.instances):
            if instance.complete(counts):
                for arm in instance.end_epoch(self.lanes):
                    votes.append(Vote(arm, index, self.sequence))
                    self.sequence += 1
        return votes

    def lose(self, arm: int) -> None:
        """An arm was eliminated."""
        self.remaining.remove(arm)
        for instance in self.instances:
            instance.candidates.discard(arm)

    def _cycle(self) -> list[int]:
        """The remaining arms in the order in which they are played from here."""
        return sorted(self.remaining, key=lambda arm: (arm < self.following, arm))

    def _missing(self, instance: Instance, arm: int) -> int:
        return instance.needed - instance.pulls(self.lanes[arm])


def listen_to_votes(task: Task, means: tuple[float, ...], seed: np.random.SeedSequence) -> Transcript:
    """Run `dme` or `edme` with equally active players until one arm is left, and keep what each sends."""
    rng = np.random.default_rng(seed)
    values = np.array(means)
    server = VoteServer(task)
    players = [Skipper(task) for _ in range(task.players)]
    sent: list[list[UpMessage]] = [[] for _ in players]
    for each in players:
        each.plan(0.0, rng)
    while len(server.remaining) > 1:
        index = min(range(len(players)), key=lambda player: players[player].until)
        player = players[index]
        now = player.until
        if now == np.inf:
            raise ValueError("no player has anything left to vote on, and several arms are left: the task is tied")
        player.make(player.draws, values, rng)
        player.draws, player.since = 0, now
        fallen: list[int] = []
        for vote in player.vote():
            sent[index].append(vote)
            fallen += [arm for elimination in server.receive(index, vote, 0) for arm in elimination.arms]
        for each in players if fallen else [player]:
            each.interrupt(now, values, rng)
            for arm in fallen:
                each.lose(arm)
            each.plan(now, rng)
    counts = [[(lane.pulls, int(lane.total)) for lane in each.lanes] for each in players]
    return Transcript(
        task,
        means,
        tuple(map(tuple, sent)),
        tuple(tuple(pulls for pulls, _ in row) for row in counts),
        tuple(tuple(total for _, total in row) for row in counts),
    )
