"""Decisions that wait for their rewards: tickets, groups and windows. Every protocol uses this module.

A reward counts if it comes within the window of its own decision. The largest one counts; a decision without a reward
counts 0. Decisions are told to the fleet in groups:

    open ──last decision──▶ waiting ──one window later, and a random delay──▶ closed
      └───────────────────────────┴──its arms are eliminated──▶ dropped

A group never closes earlier, whatever was answered: otherwise fast rewards would count more than slow ones. The delay
hides the time of the last decision. Which reward came for which decision is kept in memory only: a snapshot has
counts.

Times are whole milliseconds since 1970, from the caller's clock. That clock must not go back while the process runs.
With a window of 0, as in simulation, a decision is rewarded before the clock moves on.
"""

from __future__ import annotations

import heapq
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from outvote.core.errors import InvalidReward, InvalidTicket, UnknownDecision

if TYPE_CHECKING:
    import random

UNCOUNTED = "uncounted"
"""The text of a ticket whose reward is ignored."""
LEAST_DELAY = 1_000
"""A group closes up to so many milliseconds after its window, or up to a tenth of the window if that is longer."""
MAX_OPEN = 1 << 23
"""Decisions that may wait for rewards at once, of all players that share a `Capacity`: 64 MiB of memory."""
GROUP_COST = 64
"""A group takes about as much memory as so many decisions."""
RUN_LENGTH = 8

_RUN_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_NUMBER = "(0|[1-9][0-9]{0,12})"
_TICKET = re.compile(rf"([A-Za-z0-9_-]{{{RUN_LENGTH}}})\.{_NUMBER}\.{_NUMBER}\.{_NUMBER}\.([0-9]{{13}})")
_NO_REWARD = -1.0
_ticket = tuple.__new__
"""Makes a `Ticket` in half the time that its own constructor takes."""


class Ticket(NamedTuple):
    """One decision. Its reward must name it."""

    run: str
    """The process that decided, drawn at random for each task: another task's ticket is recognised."""
    group: int
    """-1 if the reward is ignored."""
    arm: int
    place: int
    """Which decision of the arm in its group, from 0."""
    at: int
    """When it was made."""

    @classmethod
    def uncounted(cls, arm: int) -> Ticket:
        """The ticket of a decision whose reward is ignored."""
        return cls("", -1, arm, 0, 0)

    @classmethod
    def parse(cls, text: object) -> Ticket | None:
        """Read a ticket that `str` wrote; None for `uncounted`. Raises `InvalidTicket`."""
        if text == UNCOUNTED:
            return None
        found = _TICKET.fullmatch(text) if isinstance(text, str) and len(text) <= 64 else None
        if found is None:
            got = repr(text[:64]) if isinstance(text, str) else type(text).__name__
            raise InvalidTicket(f"must be the ticket that the decision came with, got {got}")
        run, group, arm, place, at = found.groups()
        return _ticket(cls, (run, int(group), int(arm), int(place), int(at)))

    def __str__(self) -> str:
        run, group, arm, place, at = self
        return UNCOUNTED if group < 0 else f"{run}.{group}.{arm}.{place}.{at:013d}"


class Count:
    """The decisions of one arm in one group."""

    __slots__ = ("decided", "largest", "left", "total")

    def __init__(self, left: int, decided: int = 0, total: float = 0.0) -> None:
        self.left = left
        """Decisions still to come."""
        self.decided = decided
        self.total = total
        """The sum of the largest rewards."""
        self.largest = array("d", (_NO_REWARD,)) * decided if decided else array("d")
        """The largest reward of each decision; below 0 if there was none. In memory only."""


class Group:
    """Decisions that are counted together."""

    __slots__ = ("counts", "due", "left", "number", "run")

    def __init__(self, run: str, number: int, counts: dict[int, Count]) -> None:
        self.run = run
        self.number = number
        self.counts = counts
        """By arm."""
        self.left = 0
        """Decisions still to come, of all arms."""
        for count in counts.values():
            self.left += count.left
        self.due: int | None = None
        """When it closes; None while it is open."""

    @property
    def cost(self) -> int:
        cost = GROUP_COST
        for count in self.counts.values():
            cost += count.decided
        return cost

    def row(self) -> list[Any]:
        """Its counters in plain JSON types."""
        counts = [[arm, count.left, count.decided, float(count.total)] for arm, count in self.counts.items()]
        return [self.run, self.number, self.due, counts]


class Capacity:
    """The memory that all players of a process share."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int = MAX_OPEN) -> None:
        self.limit = limit
        self.used = 0


class Seen:
    """What came of decisions, counted by arm, for the people at this site."""

    NAMES = ("decisions", "rewards", "successes", "late", "refused", "out")

    def __init__(self, arms: int) -> None:
        self.decisions = [0] * arms
        """Decisions that count."""
        self.rewards = [0] * arms
        """Those that have a reward."""
        self.successes = [0] * arms
        """Those whose largest reward is above 0."""
        self.late = [0] * arms
        """Rewards after their window: ignored."""
        self.refused = [0] * arms
        """Rewards for decisions that are not known here: refused."""
        self.out = [0] * arms
        """Rewards of arms that were eliminated meanwhile: ignored."""

    def snapshot(self) -> dict[str, list[int]]:
        return {name: list(getattr(self, name)) for name in self.NAMES}

    def restore(self, record: Mapping[str, Sequence[int]]) -> None:
        """Take over what `snapshot` wrote."""
        for name in self.NAMES:
            setattr(self, name, list(record[name]))


class Decisions:
    """The decisions of one player that may still be rewarded."""

    def __init__(
        self,
        arms: int,
        window: float,
        rng: random.Random | None = None,
        *,
        binary: bool = False,
        in_order: bool = False,
    ) -> None:
        """`window` is in seconds. `rng` draws delays and names (default: the system's generator). With `binary` a
        reward between 0 and 1 becomes a success with that probability, and repeating it changes nothing. With
        `in_order` no group closes before one that had its last decision earlier."""
        self.window = round(window * 1000)
        self.seen = Seen(arms)
        self.capacity = Capacity()
        """Replaced by the one that all players of a process share."""
        self.uncounted = 0
        """Decisions that were not counted for lack of memory."""
        self.next_number = 0
        self._binary = binary
        self._in_order = in_order
        self._latest = 0
        """When the last of the groups that wait closes, if they close in order."""
        self._rng = rng
        self._run = ""
        self._key = b""
        self._groups: dict[int, Group] = {}
        self._waiting: list[tuple[int, int]] = []
        """A heap: when groups close, with their numbers. Dropped groups stay in it. At 0: those yet to wait."""
        self._out: set[int] = set()
        """Arms whose groups were dropped."""
        self._runs: set[str] = {""}
        """Of all groups since this process began."""

    # ---- deciding

    def open(self, sizes: Mapping[int, int], *, number: int | None = None) -> Group | None:
        """A new group of so many decisions of each arm; None if there is no memory for it."""
        capacity = self.capacity
        if capacity.used >= capacity.limit:
            return None
        if number is None:
            number = self.next_number
        self.next_number = number + 1
        if not self._run and self.window:
            generator = self._generator()
            self._run = "".join(generator.choice(_RUN_LETTERS) for _ in range(RUN_LENGTH))
            self._runs.add(self._run)
        group = Group(self._run, number, {arm: Count(size) for arm, size in sizes.items()})
        self._groups[number] = group
        capacity.used += GROUP_COST
        return group

    def place(self, group: Group, arm: int, now: int) -> Ticket:
        """The next decision of an arm in an open group."""
        count = group.counts[arm]
        place = count.decided
        count.decided = place + 1
        count.left -= 1
        count.largest.append(_NO_REWARD)
        group.left -= 1
        if not group.left:
            self._await(group, now)
        self.capacity.used += 1
        self.seen.decisions[arm] += 1
        return _ticket(Ticket, (group.run, group.number, arm, place, now))

    # ---- rewards

    def reward(self, ticket: Ticket, reward: float, now: int) -> None:
        """Take the reward of one decision. Sent again it changes nothing: the largest counts.

        A late reward, and one of an arm that is out, is counted in `seen` and ignored. Raises `InvalidReward`, or
        `UnknownDecision` for a decision of another task, process or place.
        """
        check_reward(reward)
        run, number, arm, place, at = ticket
        if number < 0:
            return
        seen = self.seen
        if not 0 <= arm < len(seen.late):
            raise unknown_decision()
        if now > at + self.window:
            seen.late[arm] += 1
            return
        group = self._groups.get(number)
        count = group.counts.get(arm) if group is not None and group.run == run else None
        if count is None or not 0 <= place < count.decided:
            if count is None and arm in self._out and run in self._runs:
                seen.out[arm] += 1
                return
            seen.refused[arm] += 1
            raise unknown_decision()
        self._count(count, ticket, reward)

    def _count(self, count: Count, ticket: Ticket, reward: float) -> None:
        _, _, arm, place, _ = ticket
        before = count.largest[place]
        if self._binary and before < reward < 1.0 and reward > 0.0:
            reward = float(self._uniform(ticket) < reward)
        if reward <= before:
            return
        if before < 0.0:
            self.seen.rewards[arm] += 1
            before = 0.0
        if before == 0.0 < reward:
            self.seen.successes[arm] += 1
        count.largest[place] = reward
        # After a restart a reward may be counted again: which decisions had one is not stored.
        count.total = min(count.total + reward - before, count.decided)

    # ---- closing

    def is_due(self, now: int) -> bool:
        """Whether a group closes now."""
        return bool(self._waiting) and self._waiting[0][0] <= now

    def close_due(self, now: int) -> list[Group]:
        """Take out the groups whose time has come, in the order in which they closed."""
        waiting = self._waiting
        if not waiting or waiting[0][0] > now:
            return []
        closed = []
        while waiting and waiting[0][0] <= now:
            due, number = heapq.heappop(waiting)
            group = self._groups.get(number)
            if group is None:
                continue
            if group.due is None:
                self._await(group, now)
            elif group.due == due:
                del self._groups[number]
                self.capacity.used -= group.cost
                closed.append(group)
        return closed

    def drop(self, arms: Iterable[int]) -> None:
        """These arms are out: their decisions leave all groups, and will never count."""
        self._out.update(arms)
        for number, group in list(self._groups.items()):
            for arm in self._out & group.counts.keys():
                count = group.counts.pop(arm)
                group.left -= count.left
                self.capacity.used -= count.decided
            if not group.counts:
                self.capacity.used -= group.cost
                del self._groups[number]
            elif not group.left and group.due is None:  # the decisions that it lacked will not come
                heapq.heappush(self._waiting, (0, number))

    def cut(self, group: Group) -> None:
        """An open group takes no more decisions: it closes one window after its last one."""
        heapq.heappush(self._waiting, (0, group.number))
        group.left = 0
        for count in group.counts.values():
            count.left = 0

    @property
    def groups(self) -> Iterable[Group]:
        """All groups that are not closed, in the order in which they were opened."""
        return self._groups.values()

    @property
    def open_decisions(self) -> int:
        """Decisions in groups that are not closed."""
        return sum(count.decided for group in self._groups.values() for count in group.counts.values())

    # ---- restarts

    def resume(self, now: int, *, crashed: bool) -> None:
        """Go on after a restart. After a crash, saved groups take no more decisions: some of those that were made may
        not have been saved. They close one window from now."""
        latest = now + self.window + self._longest_delay
        full = [group for group in self._groups.values() if group.due is not None and group.due > latest]
        cut = [group for group in self._groups.values() if group.due is None and (crashed or not group.left)]
        if full:  # the machine's clock was set back
            self._latest = max((group.due or 0 for group in self._groups.values() if group not in full), default=0)
            full.sort(key=lambda group: (group.due, group.number))
        for group in (*full, *cut):
            group.left = 0
            for count in group.counts.values():
                count.left = 0
            self._await(group, now)

    def snapshot(self) -> dict[str, Any]:
        """Counts in plain JSON types: no single decision, no reward of one."""
        return {
            "groups": [group.row() for group in self._groups.values()],
            "next_number": self.next_number,
            "uncounted": self.uncounted,
            "seen": self.seen.snapshot(),
        }

    def restore(self, record: Mapping[str, Any], *, out: Iterable[int]) -> None:
        """Take over what `snapshot` wrote; `out` are the arms that were eliminated."""
        self.next_number = record["next_number"]
        self.uncounted = record["uncounted"]
        self.seen.restore(record["seen"])
        self._out = set(out)
        for run, number, due, counts in record["groups"]:
            group = Group(run, number, {arm: Count(left, decided, total) for arm, left, decided, total in counts})
            self._groups[number] = group
            self._runs.add(run)
            self.capacity.used += group.cost
            group.due = due
            if due is not None:
                self._latest = max(self._latest, due)
                heapq.heappush(self._waiting, (due, number))

    def share(self, capacity: Capacity) -> None:
        """Use the memory that all players of a process share."""
        used = sum(group.cost for group in self._groups.values())
        self.capacity = capacity
        capacity.used += used

    # ---- internals

    @property
    def _longest_delay(self) -> int:
        return max(self.window // 10, LEAST_DELAY) if self.window else 0

    def _await(self, group: Group, now: int) -> None:
        # At least 1 ms: in the last millisecond of its window a reward still counts.
        delay = 1 + int(self._generator().random() * self._longest_delay) if self.window else 0
        due = now + self.window + delay
        if self._in_order:
            due = self._latest = max(self._latest, due)
        group.due = due
        heapq.heappush(self._waiting, (group.due, group.number))

    def _uniform(self, ticket: Ticket) -> float:
        """A number from 0 to 1 that belongs to one decision, so that a repeated reward is rounded the same way."""
        import hashlib  # slow to import, and needed for rewards between 0 and 1 alone

        if not self._key:
            self._key = self._generator().randbytes(16)
        place = f"{ticket.group}.{ticket.arm}.{ticket.place}".encode()
        digest = hashlib.blake2b(place, digest_size=8, key=self._key).digest()
        return int.from_bytes(digest, "big") / 2.0**64

    def _generator(self) -> random.Random:
        if self._rng is None:
            import random  # slow to import, and needed by some players alone

            self._rng = random.SystemRandom()
        return self._rng


def check_reward(reward: object) -> None:
    """A number from 0 to 1."""
    try:
        if 0.0 <= reward <= 1.0:  # type: ignore[operator]  # whatever cannot be compared is refused below
            return
    except TypeError:
        pass
    raise InvalidReward(f"a reward must be a number from 0 to 1, got {reward!r}")


def unknown_decision() -> UnknownDecision:
    return UnknownDecision(
        "no decision with this ticket waits here: it is of another task or another process, or a crash lost it"
    )
