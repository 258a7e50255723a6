"""The Median Elimination player of Algorithms 2, 3 and 4: one instance, or M instances that share every event.

A vote never eliminates locally: only an `Elimination` removes an arm. The player knows no other participant.

An arm's `alarm` is the running count of pulls at which the epoch test of some instance can change: the test, which
the paper makes after every reward, runs only then. That is all the cleverness there is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from outvote.core import snapshots
from outvote.core.decisions import Decisions, Group, Ticket
from outvote.core.events import check_arm
from outvote.core.messages import Elimination, PlayerId, Vote
from outvote.core.task import Task
from outvote.core.votes.epochs import Instance
from outvote.core.votes.schedule import Schedule

if TYPE_CHECKING:
    import random

ARM_TRANSITIONS = {
    ("candidate", "epoch ends, mean below the median"): "voted",
    ("candidate", "elimination received"): "eliminated",
    ("voted", "elimination received"): "eliminated",
}
"""What can become of one arm in one instance of one player; everything else leaves it as it is."""

LARGEST_GROUP = 1_000
"""Decisions of one group at most: an epoch may take millions, and memory is checked when a group opens."""

_NO_VOTES: tuple[Vote, ...] = ()


class Lane:
    """What a player knows of one arm."""

    __slots__ = ("alarm", "arm", "following", "group", "pulls", "remaining", "total", "uncounted")

    following: Lane
    """The first remaining arm after this one, in the cycle of increasing index."""

    def __init__(self, arm: int) -> None:
        self.arm = arm
        self.pulls = 0
        self.total = 0.0
        self.alarm = math.inf
        self.remaining = True
        self.group: Group | None = None
        """The group to which the next decision of this arm belongs; None if one has to be opened."""
        self.uncounted = Ticket.uncounted(arm)


class MedianPlayer:
    """One player of `dme` or `edme`. See `outvote.core.decisions` for tickets, windows and times."""

    def __init__(
        self,
        task: Task,
        player: PlayerId,
        rng: random.Random | None = None,
        *,
        schedules: Sequence[Schedule] | None = None,
    ) -> None:
        """A new player; `rng` draws when messages leave, `schedules` replaces the task's epochs (the baselines run
        with η = δ)."""
        self.task = task
        self.player = player
        arms = len(task.arms)
        self.decisions = Decisions(arms, task.reward_window, rng, in_order=True)  # as the paper counts them
        self._lanes = [Lane(arm) for arm in range(arms)]
        self._instances = [Instance(schedule, arms) for schedule in schedules or task.schedules()]
        self._next_sequence = 0
        self._test_pending = False
        """An elimination took the last arm that an epoch waited for."""
        self._last = self._lanes[-1]  # so that arm 0 is played first
        self._refresh()

    # ---- what an application does

    def decide(self, now: int) -> Ticket:
        """The arm to play now, in the ticket that its reward must name (Algorithm 2, line 1)."""
        self._last = lane = self._last.following
        group = lane.group
        if group is None:
            group = lane.group = self._open(lane)
            if group is None:
                return lane.uncounted
        ticket = self.decisions.place(group, lane.arm, now)
        if not group.left:
            lane.group = None
        return ticket

    def reward(self, ticket: Ticket, reward: float, now: int) -> None:
        """The outcome of one decision (Algorithm 2, lines 2 and 3); see `Decisions.reward`."""
        self.decisions.reward(ticket, reward, now)

    def tick(self, now: int) -> Sequence[Vote]:
        """Count the decisions whose time has come; returns the votes to send (Algorithm 2, lines 4 to 12)."""
        closed = self.decisions.close_due(now)
        if not closed and not self._test_pending:
            return _NO_VOTES
        votes: list[Vote] = []
        for group in closed:
            for arm, count in group.counts.items():
                lane = self._lanes[arm]
                lane.pulls += count.decided
                lane.total += count.total
                if lane.pulls >= lane.alarm or self._test_pending:
                    votes += self._test_epochs()
        if self._test_pending:
            votes += self._test_epochs()
        return votes

    # ---- what the network brings

    def receive(self, message: Elimination) -> None:
        """Arms that the fleet has eliminated (Algorithm 3, lines 8 to 10). Again, or late, changes nothing."""
        for arm in message.arms:
            self._check_arm(arm)
        left = len(self.remaining)
        gone: set[int] = set()
        for arm in message.arms:
            lane = self._lanes[arm]
            if lane.remaining and left > 1:  # never the last one
                lane.remaining = False
                left -= 1
                gone.add(arm)
        if gone:
            for instance in self._instances:
                instance.candidates -= gone
            self.decisions.drop(gone)
            self._find_open_groups()
            self._refresh()

    def resume(self, now: int, *, crashed: bool) -> None:
        """Go on after a restart; see `Decisions.resume`."""
        self.decisions.resume(now, crashed=crashed)
        self._find_open_groups()

    # ---- what people ask

    @property
    def remaining(self) -> tuple[int, ...]:
        """K^n: the arms that this player may play."""
        return tuple(lane.arm for lane in self._lanes if lane.remaining)

    def candidates(self, instance: int = 0) -> tuple[int, ...]:
        """K^n_l: the arms that this player would not eliminate."""
        return tuple(sorted(self._instances[instance].candidates))

    def epoch(self, instance: int = 0) -> int:
        """The local epoch l, from 1."""
        return self._instances[instance].epoch

    def pulls(self, arm: int, instance: int = 0) -> int:
        """t^n_k: observations of the arm that count for the current epoch."""
        self._check_arm(arm)
        return self._instances[instance].pulls(self._lanes[arm])

    def mean(self, arm: int, instance: int = 0) -> float:
        """μ̂^n_k over those observations; 0 before the first."""
        self._check_arm(arm)
        return self._instances[instance].mean(self._lanes[arm])

    def arm_state(self, arm: int, instance: int = 0) -> str:
        """One of the states of `ARM_TRANSITIONS`."""
        self._check_arm(arm)
        if not self._lanes[arm].remaining:
            return "eliminated"
        return "candidate" if arm in self._instances[instance].candidates else "voted"

    @property
    def finished(self) -> bool:
        """No instance has anything left to vote on."""
        return all(instance.finished for instance in self._instances)

    @property
    def status(self) -> str:
        """`finished`; `tied` when the last epoch of every unfinished instance separated nothing; else `exploring`."""
        unfinished = [instance for instance in self._instances if not instance.finished]
        if not unfinished:
            return "finished"
        return "tied" if all(instance.tied for instance in unfinished) else "exploring"

    # ---- snapshots

    def snapshot(self) -> dict[str, Any]:
        """The whole state in plain JSON types: a few numbers per arm and instance, no event."""
        state = {
            "player": self.player,
            "remaining": list(self.remaining),
            "last_arm": self._last.arm,
            "pulls": [lane.pulls for lane in self._lanes],
            "totals": [float(lane.total) for lane in self._lanes],
            "epochs": [instance.snapshot() for instance in self._instances],
            "decisions": self.decisions.snapshot(),
            "next_sequence": self._next_sequence,
        }
        return snapshots.seal("player", self.task, state)

    @classmethod
    def restore(cls, task: Task, data: Mapping[str, Any], rng: random.Random | None = None) -> MedianPlayer:
        """The player that `snapshot` was taken of; a snapshot that is not whole is refused."""
        record = snapshots.unseal(data, "player", task)
        player = cls(task, record["player"], rng)
        for lane, pulls, total in zip(player._lanes, record["pulls"], record["totals"], strict=True):
            lane.remaining = lane.arm in record["remaining"]
            lane.pulls, lane.total = pulls, total
        for instance, epoch in zip(player._instances, record["epochs"], strict=True):
            instance.restore(epoch)
        player._last = player._lanes[record["last_arm"]]
        player._next_sequence = record["next_sequence"]
        out = [lane.arm for lane in player._lanes if not lane.remaining]
        player.decisions.restore(record["decisions"], out=out)
        player._find_open_groups()
        player._refresh()
        return player

    # ---- how it works

    def _test_epochs(self) -> Sequence[Vote]:
        """The test of Algorithm 2, line 4, in every instance."""
        votes: list[Vote] = []
        remaining = [lane for lane in self._lanes if lane.remaining]
        for index, instance in enumerate(self._instances):
            if instance.complete(remaining):
                for arm in instance.end_epoch(self._lanes):
                    votes.append(Vote(arm, index, self._next_sequence))
                    self._next_sequence += 1
        self._refresh()
        return votes

    def _refresh(self) -> None:
        """Derive the cycle of remaining arms and the alarms from the rest of the state."""
        remaining = [lane for lane in self._lanes if lane.remaining]
        unfinished = [instance for instance in self._instances if not instance.finished]
        self._test_pending = any(instance.complete(remaining) for instance in unfinished)
        if not unfinished:  # nothing is left to learn: decisions go on, uncounted
            self.decisions.drop(range(len(self._lanes)))
            for lane in self._lanes:
                lane.group = None
        following = remaining[0]
        for lane in reversed(self._lanes):
            lane.following = following
            if lane.remaining:
                following = lane
                lane.alarm = min((i.next_change(lane) for i in unfinished), default=math.inf)

    def _open(self, lane: Lane) -> Group | None:
        """The next decisions of an arm: at most as many as an epoch of some instance still needs.

        None if nothing is left to learn, or there is no memory.
        """
        unfinished = [instance for instance in self._instances if not instance.finished]
        if not unfinished:
            return None
        size = 1  # without a window each decision counts at once, as in the paper
        if self.decisions.window:
            waiting = (group.counts[lane.arm] for group in self.decisions.groups if lane.arm in group.counts)
            pulls = lane.pulls + sum(count.decided for count in waiting)
            size = min(LARGEST_GROUP, *(instance.wanted(lane.arm, pulls) for instance in unfinished))
        group = self.decisions.open({lane.arm: size})
        if group is None:
            self.decisions.uncounted += 1
        return group

    def _find_open_groups(self) -> None:
        """Derive from the decisions which groups take more."""
        for lane in self._lanes:
            lane.group = None
        for group in self.decisions.groups:
            if group.left:
                [arm] = group.counts
                self._lanes[arm].group = group

    def _check_arm(self, arm: int) -> None:
        check_arm(arm, len(self._lanes))
