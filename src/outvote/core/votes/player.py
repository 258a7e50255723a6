"""The Median Elimination player of Algorithms 2, 3 and 4: one instance, or M instances that share every event.

A vote never eliminates locally: only an `Elimination` removes an arm. The player knows no other participant.

An arm's `alarm` is the running count of pulls at which the epoch test of some instance can change: the test, which
the paper makes after every reward, runs only then. That is all the cleverness there is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from outvote.core import snapshots
from outvote.core.batches import ENDLESS, Batch, BatchBook
from outvote.core.events import check_arm, check_reward, find_batch, invalid_reward, nothing_waits, take_closable
from outvote.core.messages import Elimination, PlayerId, Vote
from outvote.core.task import Task
from outvote.core.votes.epochs import Instance
from outvote.core.votes.schedule import Schedule

ARM_TRANSITIONS = {
    ("candidate", "epoch ends, mean below the median"): "voted",
    ("candidate", "elimination received"): "eliminated",
    ("voted", "elimination received"): "eliminated",
}
"""What can become of one arm in one instance of one player; everything else leaves it as it is."""

_NO_VOTES: tuple[Vote, ...] = ()


class Lane:
    """What a player knows of one arm."""

    __slots__ = ("alarm", "arm", "batch", "following", "pulls", "remaining", "total")

    following: Lane
    """The first remaining arm after this one, in the cycle of increasing index."""
    batch: Batch
    """The batch to which the next decision of this arm belongs."""

    def __init__(self, arm: int) -> None:
        self.arm = arm
        self.pulls = 0
        self.total = 0.0
        self.alarm = math.inf
        self.remaining = True


class MedianPlayer:
    """One player of `dme` or `edme`. See `outvote.core.batches` for tickets and the reward window."""

    def __init__(self, task: Task, player: PlayerId, *, schedules: Sequence[Schedule] | None = None) -> None:
        """A new player; `schedules` replaces the task's epochs (the baselines run with η = δ)."""
        self.task = task
        self.player = player
        self.late_rewards = 0
        """Rewards for arms that were no longer remaining: counted here, otherwise ignored."""
        self.dropped_rewards = 0
        """Rewards for batches that had closed: counted here, otherwise ignored."""
        arms = len(task.arms)
        self._lanes = [Lane(arm) for arm in range(arms)]
        self._instances = [Instance(schedule, arms) for schedule in schedules or task.schedules()]
        self._windowed = task.reward_window is not None
        self._book = BatchBook()
        self._by_ticket = self._book.by_ticket  # the hot path saves a step
        self._full: list[int] = []
        self._due_ticket: int | None = None  # of no batch: its closing only makes the epoch test
        self._next_sequence = 0
        self._last = self._lanes[-1]  # so that arm 0 is played first
        for lane in self._lanes:
            self._open_batch(lane)
        self._refresh()

    # ---- what an application does

    def decide(self) -> tuple[int, int]:
        """The arm to play now, and the ticket that its reward must name (Algorithm 2, line 1)."""
        self._last = lane = self._last.following
        return self._play(lane)

    def expose(self, arm: int) -> int | None:
        """A decision for this arm, whosever turn it is: its ticket; None if nothing is left to learn of the arm.

        For assignments that are made ahead, at random, and count once they are shown, in whatever order that is.
        """
        self._check_arm(arm)
        lane = self._lanes[arm]
        return self._play(lane)[1] if lane.remaining else None

    def reward(self, arm: int, reward: float, *, ticket: int | None = None) -> Sequence[Vote]:
        """The outcome of one decision; returns the votes to send, most often none (Algorithm 2, lines 2 to 12).

        Without a ticket the newest batch of the arm that waits for a reward is meant.
        """
        # Neither a float nor a bool is a ticket or an arm, though each equals one.
        batch = self._by_ticket.get(ticket) if type(ticket) is int else None
        if batch is None or batch.arm != arm or type(arm) is not int:
            batch = self._find_batch(arm, reward, ticket)
            if batch is None:
                return _NO_VOTES
        lane = self._lanes[arm]
        try:
            if not 0.0 <= reward <= 1.0:
                raise invalid_reward(reward)
            total = (batch.total if self._windowed else lane.total) + reward
        except TypeError:
            raise invalid_reward(reward) from None
        waiting = batch.waiting - 1
        if waiting < 0:
            raise nothing_waits(arm, ticket)
        batch.waiting = waiting
        if self._windowed:
            batch.total = total
            return _NO_VOTES
        if not (waiting or batch.left):
            del self._by_ticket[batch.ticket]
        lane.total = total
        lane.pulls = pulls = lane.pulls + 1
        if pulls >= lane.alarm:
            return self._test_epochs()
        return _NO_VOTES

    def take_full(self) -> list[int]:
        """Tickets that came due for closing since the last call: call `close` on each, one reward window from now.

        A restored player names again all that are still to be closed. Without a reward window there are none.
        """
        full, self._full = self._full, []
        return full

    def close(self, ticket: int) -> Sequence[Vote]:
        """The reward window of a full batch has passed: what was not answered counts 0. Returns the votes to send.

        Closing a batch again, or one whose arm was eliminated, counts nothing.
        """
        batch = take_closable(self._book, ticket, windowed=self._windowed)
        if batch is not None:
            lane = self._lanes[batch.arm]
            lane.pulls += batch.size
            lane.total += batch.total
        return self._test_epochs()

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
            self._book.discard(gone)
            self._refresh()
            self._ask_for_test()

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
            "batches": self._book.snapshot(),
            "next_ticket": self._book.next_ticket,
            "due_ticket": self._due_ticket,
            "next_sequence": self._next_sequence,
            "late_rewards": self.late_rewards,
            "dropped_rewards": self.dropped_rewards,
        }
        return snapshots.seal("player", self.task, state)

    @classmethod
    def restore(cls, task: Task, data: Mapping[str, Any]) -> MedianPlayer:
        """The player that `snapshot` was taken of; a snapshot that is not whole is refused."""
        record = snapshots.unseal(data, "player", task)
        player = cls(task, record["player"])
        for lane, pulls, total in zip(player._lanes, record["pulls"], record["totals"], strict=True):
            lane.remaining = lane.arm in record["remaining"]
            lane.pulls, lane.total = pulls, total
        for instance, epoch in zip(player._instances, record["epochs"], strict=True):
            instance.restore(epoch)
        player._last = player._lanes[record["last_arm"]]
        player._next_sequence = record["next_sequence"]
        player._due_ticket = record["due_ticket"]
        player.late_rewards = record["late_rewards"]
        player.dropped_rewards = record["dropped_rewards"]
        player._book.restore(record["batches"], record["next_ticket"])
        for batch in player._book.by_ticket.values():
            if batch.left:
                player._lanes[batch.arm].batch = batch
            elif player._windowed:
                player._full.append(batch.ticket)
        if player._due_ticket is not None:
            player._full.append(player._due_ticket)
        player._refresh()
        return player

    # ---- how it works

    def _play(self, lane: Lane) -> tuple[int, int]:
        batch = lane.batch
        batch.waiting += 1
        batch.left -= 1
        if not batch.left:
            if self._windowed:
                self._full.append(batch.ticket)
            self._open_batch(lane)
        return batch.answer

    def _test_epochs(self) -> Sequence[Vote]:
        """The test of Algorithm 2, line 4, in every instance."""
        votes: list[Vote] = []
        self._due_ticket = None
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
        due = self._test_due()
        following = remaining[0]
        for lane in reversed(self._lanes):
            lane.following = following
            if lane.remaining:
                following = lane
                lane.alarm = 0 if due else min((i.next_change(lane) for i in unfinished), default=math.inf)

    def _test_due(self) -> bool:
        """An elimination took the last arm that an epoch waited for: it ends with the next observation."""
        remaining = [lane for lane in self._lanes if lane.remaining]
        return any(instance.complete(remaining) for instance in self._instances)

    def _ask_for_test(self) -> None:
        """With a reward window observations come only as batches close: do not wait for the next one."""
        if self._windowed and self._due_ticket is None and self._test_due():
            self._due_ticket = self._book.issue_ticket()
            self._full.append(self._due_ticket)

    def _open_batch(self, lane: Lane) -> None:
        """The next decisions of an arm: as many as it takes until an epoch of some instance has what it needs."""
        pulls = lane.pulls
        for batch in self._book.of(lane.arm):
            pulls += batch.size if self._windowed else batch.waiting
        wanted = (i.wanted(lane.arm, pulls) for i in self._instances if not i.finished)
        lane.batch = self._book.open(lane.arm, min(wanted, default=ENDLESS))

    def _find_batch(self, arm: int, reward: float, ticket: int | None) -> Batch | None:
        """The batch of a reward that named none, or none that is open; None where the reward is only counted."""
        check_arm(arm, len(self._lanes))
        check_reward(reward)
        if not self._lanes[arm].remaining:
            self.late_rewards += 1
            return None
        batch = find_batch(self._book, arm, ticket, windowed=self._windowed)
        if batch is None:
            self.dropped_rewards += 1
        return batch

    def _check_arm(self, arm: int) -> None:
        check_arm(arm, len(self._lanes))
