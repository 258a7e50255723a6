"""Sites that lie: what they do to their rewards, and what they send in place of what they saw.

A liar knows everything that helps it: which arm is best, which it pushes, and the protocol. It sends when it is its
turn, as any player, and nothing that a server would refuse: a lie that is refused is no lie worth telling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from outvote.core.decisions import Ticket
from outvote.core.errors import InvalidSettings, one_of
from outvote.core.messages import Elimination, Tally, UpMessage, Vote
from outvote.core.protocols import Player
from outvote.core.tally.cycle import Cycle
from outvote.core.task import Task

LIES = {
    "praise": "nothing but success of the worst arm, nothing but failure of all others",
    "damn": "nothing but failure of the best arm, the truth of all others",
    "flood": "as praise, in the largest tallies, and all arms at every turn",
    "opposite": "every success a failure, every failure a success",
    "swap": "the best arm's results as the second's and the second's as the best's: nothing looks strange",
    "switch": "the truth until the first elimination, then as flood",
    "silent": "nothing at all",
}
"""What each does, and all liars of a fleet together."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What all liars of a fleet want: they know each other."""

    lie: str
    best: int
    second: int
    worst: int

    @classmethod
    def of(cls, lie: str, means: Sequence[float]) -> Aim:
        """By what the arms are worth."""
        if lie not in LIES:
            raise InvalidSettings(f"must be one of {one_of(LIES)}, got {lie!r}", field="lie", code="choice")
        order = sorted(range(len(means)), key=lambda arm: (-means[arm], arm))
        return cls(lie, order[0], order[1], order[-1])


class Liar:
    """Plays as its honest self would, and says something else."""

    def __init__(self, task: Task, honest: Player, aim: Aim) -> None:
        self._task = task
        self._self = honest
        self._aim = aim
        self._lie = "honest" if aim.lie == "switch" else aim.lie
        self._cycle = Cycle(task)
        self._sent = 0
        """The next place in its cycle, or the number of its next vote."""
        self._voted: set[tuple[int, int]] = set()
        self._seen = [0.0] * len(task.arms)
        """The last reward of each arm."""

    def decide(self, now: int) -> Ticket:
        return self._self.decide(now)

    def reward(self, ticket: Ticket, reward: float, now: int) -> None:
        self._seen[ticket.arm] = reward
        self._self.reward(ticket, self._told(ticket.arm, reward), now)

    def tick(self, now: int) -> Sequence[UpMessage]:
        """What its honest self would send of rewards that are lies, or lies of its own."""
        truth = self._self.tick(now)
        if self._lie == "silent" or len(self.remaining) == 1:  # nobody listens to the end
            return ()
        if self._lie in ("honest", "opposite", "swap"):
            return self._note(truth)
        if self._task.protocol == "tally":
            if self._lie == "flood":
                return self._flood()
            return self._note([replace(each, successes=self._claim(each)) for each in truth if isinstance(each, Tally)])
        return self._votes()

    def receive(self, message: Elimination) -> None:
        self._self.receive(message)
        if self._aim.lie == "switch":
            self._lie = "flood"

    def candidates(self, instance: int = 0) -> tuple[int, ...]:
        return self._self.candidates(instance)

    @property
    def remaining(self) -> tuple[int, ...]:
        return self._self.remaining

    def _told(self, arm: int, reward: float) -> float:
        if self._lie == "opposite":
            return 1.0 - reward
        other = {self._aim.best: self._aim.second, self._aim.second: self._aim.best}.get(arm)
        return self._seen[other] if self._lie == "swap" and other is not None else reward

    def _note(self, messages: Sequence[UpMessage]) -> Sequence[UpMessage]:
        """Where its honest self is: from there its own lies go on."""
        for each in messages:
            self._sent = max(self._sent, each.sequence + 1)
            if isinstance(each, Vote):
                self._voted.add((each.instance, each.arm))
        return messages

    def _claim(self, tally: Tally) -> int:
        """Successes of a tally: all or nothing, or the truth."""
        if self._lie == "damn":
            return 0 if tally.arm == self._aim.best else tally.successes
        return tally.trials if tally.arm == self._aim.worst else 0

    def _flood(self) -> list[Tally]:
        """One tally of every arm, as large as may be."""
        places = range(self._sent, self._sent + len(self._task.arms))
        size = self._task.tally_sizes[-1]
        whole = [Tally(self._cycle.arm(self._self.player, place), 0, size, place) for place in places]
        self._sent = places.stop
        return [replace(each, successes=self._claim(each)) for each in whole]

    def _votes(self) -> list[Vote]:
        """Against the best arm first, and unless it only damns that one, against all but the worst."""
        against = [self._aim.best]
        if self._lie != "damn":
            against += [arm for arm in range(len(self._seen)) if arm not in (self._aim.best, self._aim.worst)]
        found = []
        for instance in range(len(self._task.instances)):
            for arm in against:
                if (instance, arm) not in self._voted:
                    self._voted.add((instance, arm))
                    found.append(Vote(arm, instance, self._sent))
                    self._sent += 1
        return found
