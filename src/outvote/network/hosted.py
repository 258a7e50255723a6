"""One task at one site: its player, and what of its messages is saved, sent and in the log. No clock, no disk."""

from __future__ import annotations

from typing import Protocol, cast

from outvote.core import protocols
from outvote.core.messages import UpMessage
from outvote.core.task import Task
from outvote.network.records import Coder


class Counts(Protocol):
    """What every player of the registry counts besides."""

    late_rewards: int
    dropped_rewards: int


class HostedTask:
    """One task at this site."""

    def __init__(self, task_id: str, task: Task, player: protocols.Player) -> None:
        self.task_id = task_id
        self.task = task
        self.player = player
        self.coder = Coder(task)
        self.indices = {name: index for index, name in enumerate(task.arms)}
        self.eliminations = 0
        """How many of the task's eliminations were applied: they come numbered, and in order."""
        self.announced: tuple[int, ...] = tuple(range(len(task.arms)))
        self.stopped = False
        self.killed = False
        """Its kill switch is on: the fallback is served, and nothing is learnt from what is."""
        self.switches = 0
        """How often the switch was used, as far as this edge knows."""
        self.new: list[UpMessage] = []
        """Produced since the last save: not yet to be sent."""
        self.unsent: set[int] = set()
        """Messages in the store that the log is not known to hold. Not all after some number: a tally has the place at
        which it began, and may be complete after a later one was sent."""
        self.windows: list[tuple[float, int]] = []
        """When which ticket's reward window passes."""
        self.dirty = False

    @property
    def counts(self) -> Counts:
        return cast("Counts", self.player)

    @property
    def waiting(self) -> int:
        """Messages that the log is not known to hold."""
        return len(self.unsent) + len(self.new)

    @property
    def served_when_stopped(self) -> int:
        """The winner, the declared fallback, or the first arm that remains."""
        fallback = self.task.fallback
        if fallback is None or len(self.announced) == 1:
            return self.announced[0]
        return self.task.arms.index(fallback)

    @property
    def served_when_killed(self) -> int:
        """The declared fallback, whoever has won; without one, the first arm that remains."""
        fallback = self.task.fallback
        return self.announced[0] if fallback is None else self.task.arms.index(fallback)

    def switch(self, killed: bool, switches: int) -> bool:
        """The kill switch was used, so often in all; returns whether that changes something. What is older does not."""
        if switches < self.switches or (switches, killed) == (self.switches, self.killed):
            return False
        changed = killed != self.killed
        self.killed, self.switches, self.dirty = killed, switches, True
        return changed

    def eliminate(self, payload: bytes) -> None:
        message = self.coder.read_down(self.announced, payload)
        self.player.receive(message)
        self.announced = tuple(arm for arm in self.announced if arm not in message.arms)
        self.eliminations += 1
        self.dirty = True
