"""The Tally player: it tries the remaining arms in turn, a few events each, and reports how many succeeded.

What it does next, and when it reports, may depend on what it has received, never on the content of an open tally:
that keeps the fleet's pool unbiased.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from outvote.core import snapshots
from outvote.core.decisions import Decisions, Group, Ticket
from outvote.core.events import check_arm
from outvote.core.messages import Elimination, PlayerId, Tally
from outvote.core.tally.cycle import Cycle
from outvote.core.tally.noise import noisy
from outvote.core.task import Task

if TYPE_CHECKING:
    import random
    from fractions import Fraction

GROWTH = 4
"""Tallies grow by one bit each time a player has opened so many times as many: K small ones, then 3K, 12K, …"""

_NO_TALLIES: tuple[Tally, ...] = ()


class TallyPlayer:
    """One player of `tally`. See `outvote.core.decisions` for tickets, windows and times: a group is a tally."""

    def __init__(self, task: Task, player: PlayerId, rng: random.Random | None = None) -> None:
        """A new player; `rng` rounds rewards, makes noise and draws when messages leave (default: the system's
        generator)."""
        self.task = task
        self.player = player
        self.decisions = Decisions(len(task.arms), task.reward_window, rng, binary=True)
        cycle = Cycle(task)
        self._order = cycle.order
        self._start = cycle.start(player)
        self._sizes = task.tally_sizes
        self._remaining = set(range(len(task.arms)))
        self._place = -1
        self._opened = 0
        self._rng = rng
        self._budget: Fraction | None = None
        self._arm = 0
        self._group: Group | None = None
        """The tally that takes the next decisions; None while there is no memory for one, and at the end."""
        self._go_on()

    # ---- what an application does

    def decide(self, now: int) -> Ticket:
        """The arm to play now, in the ticket that its reward must name."""
        if self._group is None and len(self._remaining) > 1:  # there was no memory
            self._go_on()
        group, arm = self._group, self._arm
        if group is None:
            self.decisions.uncounted += len(self._remaining) > 1
            return Ticket.uncounted(arm)
        ticket = self.decisions.place(group, arm, now)
        if not group.left:
            self._go_on()
        return ticket

    def reward(self, ticket: Ticket, reward: float, now: int) -> None:
        """The outcome of one decision; see `Decisions.reward`. One between 0 and 1 is a success with that
        probability."""
        self.decisions.reward(ticket, reward, now)

    def tick(self, now: int) -> Sequence[Tally]:
        """Close the tallies whose time has come; returns those to send."""
        closed = self.decisions.close_due(now)
        if not closed:
            return _NO_TALLIES
        # A crash may have cut a tally to a size that no message has: nothing is said of it.
        return [self._tally(group) for group in closed if _size(group) in self._sizes]

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
            self.decisions.drop(range(len(self._order)) if finished else gone)
            if finished or self._arm in gone:
                self._go_on()

    def resume(self, now: int, *, crashed: bool) -> None:
        """Go on after a restart; see `Decisions.resume`."""
        self.decisions.resume(now, crashed=crashed)
        if self._group is not None and not self._group.left:
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
            "decisions": self.decisions.snapshot(),
        }
        return snapshots.seal("player", self.task, state)

    @classmethod
    def restore(cls, task: Task, data: Mapping[str, Any], rng: random.Random | None = None) -> TallyPlayer:
        """The player that `snapshot` was taken of; a snapshot that is not whole is refused."""
        record = snapshots.unseal(data, "player", task)
        player = cls(task, record["player"], rng)
        player._remaining = set(record["remaining"])
        player._place, player._opened = record["place"], record["opened"]
        player._arm = player._order[(player._start + player._place) % len(player._order)]
        player.decisions = Decisions(len(task.arms), task.reward_window, rng, binary=True)
        out = set(range(len(task.arms))) - player._remaining if len(player._remaining) > 1 else range(len(task.arms))
        player.decisions.restore(record["decisions"], out=out)
        player._group = next((group for group in player.decisions.groups if group.left), None)
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
        self._arm, self._group = arm, None
        if len(self._remaining) > 1:
            self._group = self.decisions.open({arm: self._next_size()}, number=self._place)
            self._opened += self._group is not None

    def _next_size(self) -> int:
        until = len(self._order)
        for size in self._sizes:
            if self._opened < until:
                return size
            until *= GROWTH
        return self._sizes[-1]

    def _tally(self, group: Group) -> Tally:
        """The message; with a privacy budget its noise is drawn here, once."""
        [(arm, count)] = group.counts.items()
        successes, size = int(count.total), count.decided
        if self.task.privacy_budget is not None:
            if self._budget is None:
                from fractions import Fraction  # slow to import, and needed with a budget alone

                self._budget = Fraction(self.task.privacy_budget)
            if self._rng is None:
                import random  # slow to import, and needed by some players alone

                self._rng = random.SystemRandom()
            successes = noisy(successes, size, self._budget, self._rng)
        return Tally(arm, successes, size, group.number)


def _size(group: Group) -> int:
    [count] = group.counts.values()
    return count.decided
