"""The Tally player: it tries the remaining arms in turn, a few events each, and reports how many succeeded.

What it does next, and when it reports, may depend on what it has received, never on the content of an open tally:
that keeps the fleet's pool unbiased.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from outvote.core import snapshots
from outvote.core.batches import ENDLESS, Batch, BatchBook
from outvote.core.events import check_arm, check_reward, find_batch, invalid_reward, nothing_waits, take_closable
from outvote.core.messages import Elimination, PlayerId, Tally
from outvote.core.tally.cycle import Cycle
from outvote.core.tally.noise import noisy
from outvote.core.task import Task

if TYPE_CHECKING:
    import random
    from fractions import Fraction

GROWTH = 4
"""Tallies grow by one bit each time a player has opened so many times as many: K small ones, then 3K, 12K, …"""
MOST_WAITING = 64
"""Full tallies per arm that may wait for their reward window; while there are more, decisions are served uncounted."""

_NO_TALLIES: tuple[Tally, ...] = ()


class TallyPlayer:
    """One player of `tally`. See `outvote.core.batches` for tickets and the reward window: a batch is a tally."""

    def __init__(self, task: Task, player: PlayerId, rng: random.Random | None = None) -> None:
        """A new player; `rng` rounds rewards and makes noise (default: the system's generator)."""
        self.task = task
        self.player = player
        self.late_rewards = 0
        """Rewards for arms that were no longer remaining: counted here, otherwise ignored."""
        self.dropped_rewards = 0
        """Rewards for tallies that had closed, or that were not counted: counted here, otherwise ignored."""
        cycle = Cycle(task)
        self._order = cycle.order
        self._start = cycle.start(player)
        self._sizes = task.tally_sizes
        self._remaining = set(range(len(task.arms)))
        self._windowed = task.reward_window is not None
        self._book = BatchBook()
        self._by_ticket = self._book.by_ticket  # the hot path saves a step
        self._full: list[int] = []
        self._given_up: dict[int, int] = {}
        """By ticket of an open tally: decisions that were made again because their answers did not come."""
        self._begun: dict[int, Batch] = {}
        """By arm: tallies that exposures have begun, out of turn. When it is their turn they go on."""
        self._place = -1
        self._opened = 0
        self._rng = rng
        self._budget: Fraction | None = None
        self._batch: Batch
        self._go_on()

    # ---- what an application does

    def decide(self) -> tuple[int, int]:
        """The arm to play now, and the ticket that its reward must name."""
        batch = self._batch
        batch.waiting += 1
        batch.left -= 1
        if not batch.left:
            if self._windowed and batch.ticket in self._by_ticket:
                self._full.append(batch.ticket)
            self._go_on()
        return batch.answer

    def expose(self, arm: int) -> int | None:
        """A decision for this arm, whosever turn it is: its ticket; None if nothing is left to learn of the arm.

        For assignments that are made ahead, at random, and count once they are shown, in whatever order that is.
        """
        check_arm(arm, len(self._order))
        if arm not in self._remaining:
            return None
        if arm == self._batch.arm:
            return self.decide()[1]
        batch = self._begun.get(arm)
        if batch is None:
            self._place += self._steps_to(arm)  # places between are passed over: the fleet counts what there is
            batch = self._begun[arm] = self._open(arm)
        batch.waiting += 1
        batch.left -= 1
        if not batch.left:
            del self._begun[arm]
            if self._windowed and batch.ticket in self._by_ticket:
                self._full.append(batch.ticket)
        return batch.ticket

    def reward(self, arm: int, reward: float, *, ticket: int | None = None) -> Sequence[Tally]:
        """The outcome of one decision; returns the tally that it completes, most often none.

        A reward between 0 and 1 counts as a success with that probability. Without a ticket the newest tally of the
        arm that waits for a reward is meant.
        """
        # Neither a float nor a bool is a ticket or an arm, though each equals one.
        batch = self._by_ticket.get(ticket) if type(ticket) is int else None
        if batch is None or batch.arm != arm or type(arm) is not int:
            batch = self._find_batch(arm, reward, ticket)
            if batch is None:
                return _NO_TALLIES
        try:
            if not 0.0 <= reward <= 1.0:
                raise invalid_reward(reward)
        except TypeError:
            raise invalid_reward(reward) from None
        waiting = batch.waiting - 1
        if waiting < 0:
            self._take_late(batch, ticket)
            waiting = 0
        batch.waiting = waiting
        if reward == 1.0 or (reward != 0.0 and self._generator().random() < reward):
            batch.total += 1.0
        if waiting or batch.left or self._windowed:
            return _NO_TALLIES
        del self._by_ticket[batch.ticket]
        self._given_up.pop(batch.ticket, None)
        if batch is self._batch:  # answers that had been given up have completed it, while it was asked again
            self._go_on()
        elif self._begun.get(batch.arm) is batch:
            del self._begun[batch.arm]
        return (self._tally(batch),)

    def take_full(self) -> list[int]:
        """Tickets that came due for closing since the last call: call `close` on each, one reward window from now.

        A restored player names again all that are still to be closed. Without a reward window there are none.
        """
        full, self._full = self._full, []
        return full

    def close(self, ticket: int) -> Sequence[Tally]:
        """The reward window of a full tally has passed: what was not answered counts 0. Returns the tally to send.

        Closing a tally again, or one whose arm was eliminated, returns nothing.
        """
        batch = take_closable(self._book, ticket, windowed=self._windowed)
        return _NO_TALLIES if batch is None else (self._tally(batch),)

    # ---- what the network brings

    def receive(self, message: Elimination) -> None:
        """Arms that the fleet has eliminated; their open tallies are discarded. Again, or late, changes nothing."""
        for arm in message.arms:
            check_arm(arm, len(self._order))
        gone: set[int] = set()
        for arm in message.arms:
            if arm in self._remaining and len(self._remaining) > 1:  # never the last one
                self._remaining.discard(arm)
                gone.add(arm)
        if gone:
            finished = len(self._remaining) == 1
            self._book.discard(self._remaining | gone if finished else gone)
            self._given_up = {ticket: n for ticket, n in self._given_up.items() if ticket in self._by_ticket}
            self._begun = {} if finished else {arm: each for arm, each in self._begun.items() if arm not in gone}
            if finished or self._batch.arm in gone:
                self._go_on()

    # ---- what people ask

    @property
    def remaining(self) -> tuple[int, ...]:
        """The arms that this player may play."""
        return tuple(sorted(self._remaining))

    def candidates(self, instance: int = 0) -> tuple[int, ...]:
        """All that remain: a player of Tally has no opinion of its own."""
        return self.remaining

    @property
    def finished(self) -> bool:
        """One arm remains."""
        return len(self._remaining) == 1

    @property
    def status(self) -> str:
        """`finished`, else `exploring`."""
        return "finished" if self.finished else "exploring"

    # ---- snapshots

    def snapshot(self) -> dict[str, Any]:
        """The whole state in plain JSON types: a few numbers per arm, no event."""
        state = {
            "player": self.player,
            "remaining": list(self.remaining),
            "place": self._place,
            "opened": self._opened,
            "current": self._batch.row(),
            "batches": self._book.snapshot(),
            "uncounted": [each.row() for each in self._begun.values() if each.ticket not in self._by_ticket],
            "given_up": [[ticket, count] for ticket, count in self._given_up.items()],
            "next_ticket": self._book.next_ticket,
            "late_rewards": self.late_rewards,
            "dropped_rewards": self.dropped_rewards,
        }
        return snapshots.seal("player", self.task, state)

    @classmethod
    def restore(cls, task: Task, data: Mapping[str, Any], rng: random.Random | None = None) -> TallyPlayer:
        """The player that `snapshot` was taken of; a snapshot that is not whole is refused."""
        record = snapshots.unseal(data, "player", task)
        player = cls(task, record["player"], rng)
        player._remaining = set(record["remaining"])
        player._place, player._opened = record["place"], record["opened"]
        player.late_rewards, player.dropped_rewards = record["late_rewards"], record["dropped_rewards"]
        player._book.restore(record["batches"], record["next_ticket"])
        player._given_up = {ticket: count for ticket, count in record["given_up"]}
        current = Batch.of_row(record["current"])
        player._batch = player._by_ticket.get(current.ticket, current)
        begun = [batch for batch in player._by_ticket.values() if batch.left and batch is not player._batch]
        begun += map(Batch.of_row, record["uncounted"])
        player._begun = {batch.arm: batch for batch in begun}
        if player._windowed:
            player._full = [batch.ticket for batch in player._by_ticket.values() if not batch.left]
        return player

    # ---- how it works

    def _go_on(self) -> None:
        """On to the next remaining arm of the cycle."""
        arms = len(self._order)
        while True:
            self._place += 1
            arm = self._order[(self._start + self._place) % arms]
            if arm in self._remaining:
                break
        begun = self._begun.pop(arm, None)
        self._batch = self._open(arm) if begun is None else begun
        self._book.next_ticket = max(self._book.next_ticket, self._place + 1)

    def _steps_to(self, arm: int) -> int:
        """From here to the arm's next place in the cycle."""
        arms = len(self._order)
        here = (self._start + self._place) % arms
        return (self._order.index(arm) - here - 1) % arms + 1

    def _open(self, arm: int) -> Batch:
        """The tally of an arm that takes the next decisions, at this place of the cycle."""
        self._book.next_ticket = self._place
        if len(self._remaining) == 1:
            return self._book.open(arm, ENDLESS)  # nothing is left to learn, but decisions go on
        if not self._windowed and (unanswered := next(iter(self._book.of(arm)), None)) is not None:
            # Its answers may never come: ask again, as often as answers are missing.
            given_up = self._given_up.get(unanswered.ticket, 0)
            self._given_up[unanswered.ticket] = given_up + unanswered.waiting
            unanswered.left, unanswered.waiting = unanswered.waiting, 0
            self._book.next_ticket = self._place + 1
            return unanswered
        size = self._next_size()
        if len(self._by_ticket) >= MOST_WAITING * len(self._order):
            return Batch(self._book.issue_ticket(), arm, size)
        self._opened += 1
        return self._book.open(arm, size)

    def _take_late(self, batch: Batch, ticket: int | None) -> None:
        """An answer that was given up has come after all: one decision less is to be made again."""
        given_up = self._given_up.get(batch.ticket, 0)
        if not given_up:
            raise nothing_waits(batch.arm, ticket)
        self._given_up[batch.ticket] = given_up - 1
        batch.left -= 1

    def _next_size(self) -> int:
        until = len(self._order)
        for size in self._sizes:
            if self._opened < until:
                return size
            until *= GROWTH
        return self._sizes[-1]

    def _tally(self, batch: Batch) -> Tally:
        """The message; with a privacy budget its noise is drawn here, once."""
        successes = int(batch.total)
        if self.task.privacy_budget is not None:
            if self._budget is None:
                from fractions import Fraction  # slow to import, and needed with a budget alone

                self._budget = Fraction(self.task.privacy_budget)
            successes = noisy(successes, batch.size, self._budget, self._generator())
        return Tally(batch.arm, successes, batch.size, batch.ticket)

    def _generator(self) -> random.Random:
        if self._rng is None:
            import random  # slow to import, and needed by some players alone

            self._rng = random.SystemRandom()
        return self._rng

    def _find_batch(self, arm: int, reward: float, ticket: int | None) -> Batch | None:
        """The batch of a reward that named none, or none that is open; None where the reward is only counted."""
        check_arm(arm, len(self._order))
        check_reward(reward)
        if arm not in self._remaining:
            self.late_rewards += 1
            return None
        if ticket is not None and self.finished and self._book.issued(ticket) and ticket not in self._by_ticket:
            self.late_rewards += 1  # of a tally that the end of the task cut off
            return None
        batch = find_batch(self._book, arm, ticket, windowed=self._windowed)
        if batch is None:
            self.dropped_rewards += 1
        return batch
