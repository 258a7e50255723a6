"""The rules of `outvote.core.decisions` to the letter: a list of all that happened, from which everything is counted.

Nothing is kept that can be counted. Where chance decides (when a group closes, and how a reward between 0 and 1 is
rounded) there are a least and a most. `Watched` is the module itself, which does nothing that these rules do not say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

from outvote.core.decisions import GROUP_COST, Capacity, Decisions, Group, Ticket
from outvote.core.errors import UnknownDecision


class Answer(NamedTuple):
    """A reward that counted."""

    process: int
    """The number of the process that took it."""
    arm: int
    place: int
    reward: float


class LiteralGroup:
    """All that happened to one group."""

    def __init__(self, run: str, number: int, sizes: Mapping[int, int]) -> None:
        self.run = run
        self.number = number
        self.sizes = dict(sizes)
        """Of the arms that are not out."""
        self.history: list[Ticket | Answer] = []
        """Its decisions and their rewards, in their order."""
        self.last: int | None = None
        """When its last decision was made, or was known to be the last."""
        self.latest = 0
        """When it has closed at the latest."""
        self.gone = False
        """It has closed, or all of its arms are out."""

    def decisions(self, arm: int) -> list[Ticket]:
        return [what for what in self.history if isinstance(what, Ticket) and what.arm == arm]

    def answers(self, arm: int) -> list[Answer]:
        return [what for what in self.history if isinstance(what, Answer) and what.arm == arm]

    def left(self) -> int:
        return sum(size - len(self.decisions(arm)) for arm, size in self.sizes.items())

    def cost(self) -> int:
        return GROUP_COST + sum(len(self.decisions(arm)) for arm in self.sizes)

    def largest(self, arm: int) -> dict[tuple[int, int], float]:
        """The largest reward of each decision that has one: after a restart it is not known what it had before."""
        found: dict[tuple[int, int], float] = {}
        for process, _, place, reward in self.answers(arm):
            found[process, place] = max(reward, found.get((process, place), 0.0))
        return found

    def total(self, arm: int) -> float:
        """The sum of the largest rewards, as they came: at no time more than there were decisions."""
        total, decided, counted = 0.0, 0, dict[tuple[int, int], float]()
        for what in self.history:
            if what.arm != arm:
                continue
            if isinstance(what, Ticket):
                decided += 1
                continue
            before = counted.get((what.process, what.place), 0.0)
            if what.reward > before:
                counted[what.process, what.place] = what.reward
                total = min(total + what.reward - before, decided)
        largest = self.largest(arm)
        if len({process for process, _ in largest}) == 1:  # nothing was counted again
            assert total == sum(largest.values())
        return total

    def bounds(self, arm: int, *, binary: bool) -> tuple[float, float]:
        """The least and the most that its decisions can be worth, if rewards between 0 and 1 are rounded."""
        largest = self.largest(arm)
        if not binary or all(answer.reward in (0, 1) for answer in self.answers(arm)):
            return self.total(arm), self.total(arm)
        least = len({place for (_, place), reward in largest.items() if reward == 1})
        most = sum(reward > 0 for reward in largest.values())
        return least, min(most, len(self.decisions(arm)))


class Literal:
    """All that happened to the decisions of one player."""

    def __init__(self, arms: int, window: int, limit: int, *, binary: bool, in_order: bool) -> None:
        self.arms = arms
        self.window = window
        self.longest_delay = max(1_000, window // 10) if window else 0
        self.in_order = in_order
        self.binary = binary
        self.limit = limit
        self.ceiling = limit
        """No more memory than this may be used."""
        self.process = 0
        self.runs: set[str] = set()
        """Of all groups that this process knows of; without a window they have no name."""
        self.out: set[int] = set()
        self.groups: list[LiteralGroup] = []
        """All that there ever were."""
        self.uncounted = 0
        self.late, self.refused, self.too_late = [0] * arms, [0] * arms, [0] * arms

    def waiting(self) -> list[LiteralGroup]:
        return [group for group in self.groups if not group.gone]

    def used(self) -> int:
        return sum(group.cost() for group in self.waiting())

    # ---- what happens

    def open(self, group: Group, sizes: Mapping[int, int]) -> None:
        assert group.number not in {other.number for other in self.waiting()}
        self.runs.add(group.run)
        self.groups.append(LiteralGroup(group.run, group.number, sizes))
        self.grow()

    def grow(self) -> None:
        """Memory is checked when a group opens: what is open by then may still be filled."""
        filled = self.used() + sum(group.left() for group in self.waiting())
        self.ceiling = max(self.limit, filled)

    def place(self, ticket: Ticket, arm: int, now: int) -> None:
        (group,) = [group for group in self.waiting() if group.number == ticket.group]
        assert group.last is None
        place = len(group.decisions(arm))
        assert place < group.sizes[arm]
        assert ticket == (group.run, group.number, arm, place, now)
        group.history.append(ticket)
        if not group.left():
            self.wait(group, now)

    def wait(self, group: LiteralGroup, now: int) -> None:
        group.last, group.latest = now, now + self.window + self.longest_delay

    def answer(self, ticket: Ticket, now: int) -> str:
        """What becomes of a reward."""
        if ticket.group < 0:
            return "ignored"
        if ticket.arm not in range(self.arms):
            return "of no arm"
        if now > ticket.at + self.window:
            return "late"
        known = [
            made[:4]
            for group in self.waiting()
            for made in group.history
            if isinstance(made, Ticket) and made.arm in group.sizes
        ]
        if ticket[:4] in known:
            return "counted"
        return "out" if ticket.arm in self.out and ticket.run in (self.runs if self.window else ("",)) else "refused"

    def reward(self, ticket: Ticket, reward: float) -> bool:
        """A reward that counts; whether it may change anything."""
        (group,) = [group for group in self.waiting() if group.number == ticket.group]
        before = group.largest(ticket.arm).get((self.process, ticket.place), -1.0)
        group.history.append(Answer(self.process, ticket.arm, ticket.place, reward))
        return reward > before

    def close(self, closed: list[Group], now: int) -> None:
        """These groups have closed, and no others."""
        waiting = {group.number: group for group in self.waiting()}
        for group in waiting.values():
            if group.last is None and not group.left():  # the arms that it lacked are out
                self.wait(group, now)
        assert [(each.due, each.number) for each in closed] == sorted((each.due or 0, each.number) for each in closed)
        for each in closed:
            group = waiting.pop(each.number)
            assert group.last is not None, "an open group closed"
            assert now >= group.last + self.window + (self.window > 0), "a group closed within a window"
            self.check_group(each, group)
            group.gone = True
        for group in waiting.values():
            assert group.last is None or now < group.latest, "a group closes too late"

    def drop(self, arms: Iterable[int]) -> None:
        self.out.update(arms)
        for group in self.waiting():
            group.sizes = {arm: size for arm, size in group.sizes.items() if arm not in self.out}
            group.gone = not group.sizes

    def restart(self, out: Iterable[int]) -> None:
        """A new process goes on with what was saved."""
        self.process += 1
        self.out = set(out)
        self.runs = {group.run for group in self.waiting()}

    def resume(self, now: int, *, crashed: bool) -> None:
        for group in self.waiting():
            if group.last is None:
                if crashed:
                    group.sizes = {arm: len(group.decisions(arm)) for arm in group.sizes}
                if not group.left():
                    self.wait(group, now)
            else:  # the clock may have been set back
                group.last = min(group.last, now)
                group.latest = min(group.latest, now + self.window + self.longest_delay)

    # ---- what must hold

    def check_group(self, found: Group, group: LiteralGroup) -> None:
        assert (found.run, found.left, found.due is None) == (group.run, group.left(), group.last is None)
        assert found.counts.keys() == group.sizes.keys()
        for arm, count in found.counts.items():
            decided = len(group.decisions(arm))
            assert (count.decided, count.left) == (decided, group.sizes[arm] - decided)
            least, most = group.bounds(arm, binary=self.binary)
            assert least <= count.total <= most <= decided
            assert not self.binary or count.total == int(count.total)

    def check(self, decisions: Decisions) -> None:
        waiting = self.waiting()
        found = {group.number: group for group in decisions.groups}
        assert list(found) == [group.number for group in waiting]
        for group in waiting:
            lacks_decisions_that_are_out = group.last is None and not group.left()
            if not lacks_decisions_that_are_out:
                self.check_group(found[group.number], group)
        if self.in_order:
            full = sorted((group.last, found[group.number].due or 0) for group in waiting if group.last is not None)
            assert all(due <= later or last == at for (last, due), (at, later) in pairwise(full))
        for arm in range(self.arms):
            rewards = [reward for group in self.groups for reward in group.largest(arm).values()]
            sure = sum(reward == 1 if self.binary else reward > 0 for reward in rewards)
            assert decisions.seen.decisions[arm] == sum(len(group.decisions(arm)) for group in self.groups)
            assert decisions.seen.rewards[arm] == len(rewards)
            assert sure <= decisions.seen.successes[arm] <= sum(reward > 0 for reward in rewards)
        assert decisions.seen.late == self.late
        assert decisions.seen.refused == self.refused
        assert decisions.seen.out == self.too_late
        assert decisions.uncounted == self.uncounted
        assert decisions.capacity.used == self.used() <= self.ceiling
        assert decisions.open_decisions == sum(len(group.decisions(arm)) for group in waiting for arm in group.sizes)


class Watched(Decisions):
    """Decisions that do what the literal ones do."""

    saved: ClassVar[Literal]
    """What the next one that is restored had seen when it was saved."""

    def __init__(self, arms: int, window: float, rng: Any = None, *, binary: bool = False, in_order: bool = False):
        super().__init__(arms, window, rng, binary=binary, in_order=in_order)
        self.literal = Literal(arms, self.window, self.capacity.limit, binary=binary, in_order=in_order)
        self.closed: list[Group] = []
        """By the last tick."""

    def open(self, sizes: Mapping[int, int], *, number: int | None = None) -> Group | None:
        full = self.literal.used() >= self.literal.limit
        group = super().open(sizes, number=number)
        assert (group is None) == full
        if group is not None:
            self.literal.open(group, sizes)
        return group

    def place(self, group: Group, arm: int, now: int) -> Ticket:
        ticket = super().place(group, arm, now)
        self.literal.place(ticket, arm, now)
        return ticket

    def reward(self, ticket: Ticket, reward: float, now: int) -> None:
        literal, before = self.literal, self.snapshot()
        answer, refused = literal.answer(ticket, now), None
        try:
            super().reward(ticket, reward, now)
        except UnknownDecision as error:
            refused = error
        assert (refused is not None) == (answer in ("refused", "of no arm")), answer
        may_change = answer == "counted" and literal.reward(ticket, reward)
        if answer in ("late", "refused", "out"):
            counter = {"late": literal.late, "refused": literal.refused, "out": literal.too_late}[answer]
            counter[ticket.arm] += 1
            before["seen"][answer] = list(counter)
        assert may_change or self.snapshot() == before, answer
        if refused is not None:
            raise refused

    def close_due(self, now: int) -> list[Group]:
        due = self.is_due(now)
        self.closed = super().close_due(now)
        assert due or not self.closed
        self.literal.close(self.closed, now)
        return self.closed

    def drop(self, arms: Iterable[int]) -> None:
        gone = list(arms)
        super().drop(gone)
        self.literal.drop(gone)

    def resume(self, now: int, *, crashed: bool) -> None:
        super().resume(now, crashed=crashed)
        self.literal.resume(now, crashed=crashed)

    def restore(self, record: Mapping[str, Any], *, out: Iterable[int]) -> None:
        gone = list(out)
        super().restore(record, out=gone)
        self.literal, limit = self.saved, self.literal.limit
        self.literal.restart(gone)
        self.literal.limit = limit

    def share(self, capacity: Capacity) -> None:
        super().share(capacity)
        self.literal.limit = capacity.limit
        self.literal.grow()
