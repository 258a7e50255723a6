"""Whatever is decided, rewarded, forged, dropped, saved and lost, and whenever: decisions count as the rules say.

The rules are in `literal_decisions`, and every call is checked against them: of decisions in groups of several arms,
and of the players of both protocols, of which every message must say what its groups say.
"""

from __future__ import annotations

import copy
import json
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amounts import examples
from outvote.core import protocols
from outvote.core.decisions import GROUP_COST, MAX_OPEN, Capacity, Group, Ticket
from outvote.core.errors import UnknownDecision
from outvote.core.messages import Elimination, Tally
from outvote.core.tally.cycle import Cycle
from outvote.core.task import Task
from outvote.core.votes.player import MedianPlayer

from .literal import LiteralPlayer, assert_same
from .literal_decisions import Watched
from .tasks import SEEDS, ShortTask

Step = tuple[str, int]
"""What happens, and a seed for its details."""
KINDS = (
    *("decide",) * 5,
    *("reward",) * 4,
    *("wait", "wait", "wait to the edge", "tick", "tick", "tick", "forge", "drop"),
    *("save", "crash", "restart"),
)
PLANS = st.lists(st.tuples(st.sampled_from(KINDS), SEEDS), min_size=15, max_size=60)
LIMITS = [MAX_OPEN, 1_000, 3 * GROUP_COST, 1]
"""Of memory."""
WINDOWS = [60.0, 1.0, 0.0, 0.001, 604_800.0]


class Extreme(random.Random):
    """A generator whose fractions are often the least or the most that there can be."""

    def random(self) -> float:
        return min(max(1.2 * super().random() - 0.1, 0.0), 1.0 - 2.0**-53)


class Course(ABC):
    """A player, or decisions without one, with a clock, an application that errs, and a process that crashes."""

    decisions: Watched

    def __init__(self, arms: int, window: float, limit: int, seed: int) -> None:
        self.arms = arms
        self.window = round(1000 * window)
        self.limit = limit
        self.rng = Extreme(seed)
        self.now = 10**12
        self.tickets: list[Ticket] = []
        """All that were ever issued, also those that a crash lost."""
        self.happened: Counter[str] = Counter()
        self.start()
        self.decisions.share(Capacity(limit))
        self.save()

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def decide(self, rng: random.Random) -> Ticket: ...

    @abstractmethod
    def reward(self, ticket: Ticket, reward: float) -> None: ...

    @abstractmethod
    def tick(self) -> None: ...

    @abstractmethod
    def drop(self, arms: Sequence[int]) -> None: ...

    @abstractmethod
    def snapshot(self) -> dict[str, Any]: ...

    @abstractmethod
    def restore(self, snapshot: dict[str, Any], *, crashed: bool) -> None: ...

    def kept(self) -> Any:
        """What else a process has when it is restored as it was saved."""
        return copied(self.decisions.literal)

    def restore_kept(self, kept: Any) -> None:
        Watched.saved = copied(kept)

    # ---- what happens

    def happen(self, kind: str, rng: random.Random) -> None:
        recent = self.tickets[-200:]
        if kind == "decide":
            self.issue(rng.choice([1, 2, 5, 20]), rng)
        elif kind == "reward" and recent:
            for ticket in rng.choices(recent[-rng.choice([5, 40, 200]) :], k=rng.choice([1, 5, 20])):
                self.answer(ticket, rng)
        elif kind == "wait":
            self.now += rng.choice([0, 1, self.window // 3, self.window, self.window + 1, 2 * self.window + 2_000])
        elif kind == "wait to the edge" and recent:  # the last millisecond of a window, or one beside it
            for ticket in sorted(rng.sample(recent, min(9, len(recent))), key=lambda ticket: ticket.at):
                self.now = max(self.now, ticket.at + self.window + rng.choice([-1, 0, 0, 1]))
                self.answer(ticket, rng)
                if rng.random() < 0.5:
                    self.tick()
        elif kind == "tick":
            self.tick()
        elif kind == "forge":
            counted = [ticket for ticket in recent if ticket.group >= 0]
            for ticket in rng.choices(counted, k=5) if counted else ():
                self.answer(self.forged(ticket, rng.choice(counted), rng), rng)
        elif kind == "drop":
            self.drop(rng.sample(range(self.arms), rng.choice([1, 1, 1, min(2, self.arms), self.arms])))
        elif kind == "save":
            self.save()
        elif kind == "restart":
            self.save()
            self.begin_again(rng, crashed=False)
        elif kind == "crash":
            self.begin_again(rng, crashed=True)
        self.decisions.literal.check(self.decisions)

    def issue(self, count: int, rng: random.Random) -> None:
        made = [self.decide(rng) for _ in range(count)]
        if self.window:
            issued = {ticket[:4] for ticket in self.tickets if ticket.group >= 0}
            assert not issued & {ticket[:4] for ticket in made}, "a ticket was issued twice"
        self.tickets += made

    def answer(self, ticket: Ticket, rng: random.Random) -> None:
        literal = self.decisions.literal
        what = literal.answer(ticket, self.now)
        self.happened[what] += 1
        self.happened["refused, and issued"] += what == "refused" and ticket in self.tickets
        if ticket.run and min(ticket[1:]) >= 0:
            assert Ticket.parse(str(ticket)) == ticket
        try:
            self.reward(ticket, rng.choice([0.0, 1.0, 1.0, rng.randrange(9) / 8]))
        except UnknownDecision:
            self.happened["an error"] += 1

    def forged(self, ticket: Ticket, other: Ticket, rng: random.Random) -> Ticket:
        """One that differs in a thing or two from one that was issued, and may have them from another one."""
        fields: dict[str, list[Any]] = {
            "run": ["AAAAAAAA", other.run],
            "group": [ticket.group + 1, max(0, ticket.group - 1), other.group, 10**6],
            "arm": [other.arm, (ticket.arm + 1) % self.arms, self.arms, -1],
            "place": [ticket.place + 1, other.place, -1, 10**6],
            "at": [self.now, other.at, max(0, self.now - self.window), 0],
        }
        return ticket._replace(
            **{name: rng.choice(fields[name]) for name in rng.sample(list(fields), rng.choice([1, 2]))}
        )

    def save(self) -> None:
        self.disk = json.dumps(self.snapshot(), allow_nan=False), self.kept()

    def begin_again(self, rng: random.Random, *, crashed: bool) -> None:
        """A new process with what was saved last; the clock may have been set meanwhile."""
        w = self.window
        self.now = max(0, self.now + rng.choice([0, 0, 0, 1, w // 2, w, 3 * w, -1, -w // 2, -w, -9 * w]))
        text, kept = self.disk
        self.restore_kept(kept)
        self.restore(json.loads(text), crashed=crashed)
        self.decisions.share(Capacity(self.limit))
        self.happened["crashes" if crashed else "restarts"] += 1

    def note(self, closed: Sequence[Group]) -> None:
        self.happened["closed"] += len(closed)
        self.happened["closed together"] += len(closed) > 1


def copied(what: Any) -> Any:
    """A copy that has nothing in common but the task."""
    return copy.deepcopy(what, {id(task): task for task in [getattr(what, "task", None)] if task is not None})


class Bare(Course):
    """Decisions without a player, in groups of several arms."""

    def __init__(self, arms: int, window: float, limit: int, seed: int, *, binary: bool, in_order: bool) -> None:
        self.options = {"binary": binary, "in_order": in_order}
        super().__init__(arms, window, limit, seed)

    def start(self) -> None:
        self.decisions = Watched(self.arms, self.window / 1000, self.rng, **self.options)

    @property
    def remaining(self) -> set[int]:
        return set(range(self.arms)) - self.decisions.literal.out

    def decide(self, rng: random.Random) -> Ticket:
        open_ones = [group for group in self.decisions.groups if group.left]
        group = rng.choice(open_ones) if open_ones and rng.random() < 0.9 else None
        if group is None and self.remaining:
            arms = rng.sample(sorted(self.remaining), rng.randint(1, min(3, len(self.remaining))))
            group = self.decisions.open({arm: rng.randint(1, 6) for arm in arms})
        if group is None:
            return Ticket.uncounted(0)
        return self.decisions.place(group, rng.choice([a for a, count in group.counts.items() if count.left]), self.now)

    def reward(self, ticket: Ticket, reward: float) -> None:
        self.decisions.reward(ticket, reward, self.now)

    def tick(self) -> None:
        self.note(self.decisions.close_due(self.now))

    def drop(self, arms: Sequence[int]) -> None:
        self.decisions.drop(arms)

    def snapshot(self) -> dict[str, Any]:
        return self.decisions.snapshot()

    def restore(self, snapshot: dict[str, Any], *, crashed: bool) -> None:
        self.start()
        self.decisions.restore(snapshot, out=set(Watched.saved.out))
        assert self.decisions.snapshot() == snapshot
        self.decisions.resume(self.now, crashed=crashed)


class Played(Course):
    """A player."""

    player: Any

    def __init__(self, task: Task, limit: int, seed: int) -> None:
        self.task = task
        super().__init__(len(task.arms), task.reward_window, limit, seed)

    def start(self) -> None:
        self.player = protocols.player(self.task, "site", rng=self.rng)
        self.watch()

    def watch(self) -> None:
        assert isinstance(self.player.decisions, Watched)
        self.decisions = self.player.decisions

    def decide(self, rng: random.Random) -> Ticket:
        ticket: Ticket = self.player.decide(self.now)
        assert ticket.arm in self.player.remaining
        if ticket.group < 0 and not self.player.finished:
            assert self.decisions.literal.used() >= self.limit, "a decision was not counted though there is memory"
            self.decisions.literal.uncounted += 1
            self.happened["no memory"] += 1
        assert ticket.group < 0 or not self.player.finished
        return ticket

    def reward(self, ticket: Ticket, reward: float) -> None:
        self.player.reward(ticket, reward, self.now)

    def drop(self, arms: Sequence[int]) -> None:
        """Perhaps all of them: the last one must stay."""
        self.player.receive(Elimination(tuple(arms)))

    def snapshot(self) -> dict[str, Any]:
        state: dict[str, Any] = self.player.snapshot()
        return state

    def restore(self, snapshot: dict[str, Any], *, crashed: bool) -> None:
        self.player = protocols.restore(self.task, snapshot, rng=self.rng)
        assert self.player.snapshot() == snapshot
        self.watch()
        self.player.resume(self.now, crashed=crashed)


class Tallied(Played):
    """A player of Tally: every group of a size that messages have is told of, as it is."""

    def decide(self, rng: random.Random) -> Ticket:
        ticket = super().decide(rng)
        assert ticket.group < 0 or ticket.arm == Cycle(self.task).arm("site", ticket.group)
        return ticket

    def tick(self) -> None:
        tallies = list(self.player.tick(self.now))
        said = []
        for group in self.decisions.closed:
            [(arm, count)] = group.counts.items()
            if count.decided in self.task.tally_sizes:
                said.append(Tally(arm, int(count.total), count.decided, group.number))
        assert tallies == said
        self.note(self.decisions.closed)


class Voted(Played):
    """A player of the paper: it does what Algorithm 2 makes of what its groups say."""

    player: MedianPlayer

    def start(self) -> None:
        super().start()
        self.literal = LiteralPlayer(self.task)

    def watch(self) -> None:
        super().watch()
        assert self.decisions.literal.in_order  # as the paper counts them

    def kept(self) -> Any:
        return super().kept(), copied(self.literal)

    def restore_kept(self, kept: Any) -> None:
        super().restore_kept(kept[0])
        self.literal = copied(kept[1])

    def decide(self, rng: random.Random) -> Ticket:
        ticket = super().decide(rng)
        assert ticket.arm == self.literal.decide()
        return ticket

    def tick(self) -> None:
        self.happened["an elimination completed an epoch"] += self.literal.test_due()
        votes = list(self.player.tick(self.now))
        said = []
        for group in self.decisions.closed:
            [(arm, count)] = group.counts.items()
            self.literal.observe(arm, round(8 * count.total), pulls=count.decided)
            said += self.literal.test()
        said += self.literal.test()  # an elimination may have completed an epoch
        assert votes == said
        assert_same(self.player, self.literal)
        self.note(self.decisions.closed)

    def drop(self, arms: Sequence[int]) -> None:
        if len(arms) == 1:  # the most delicate moment: one arm lacks decisions for the end of an epoch, and others wait
            for _ in range(40):
                if self.literal.waited_for():
                    arms = self.literal.waited_for()[:1]
                    break
                self.issue(1, self.rng)
                self.now += self.window // 4
                self.tick()
            self.issue(20, self.rng)
        super().drop(arms)
        self.literal.eliminate(arms)


@pytest.fixture(scope="module")
def watched() -> Iterator[None]:
    """Players have decisions that are checked against the rules."""
    with pytest.MonkeyPatch.context() as patch:
        for protocol in ("tally", "votes"):
            patch.setattr(f"outvote.core.{protocol}.player.Decisions", Watched)
        yield


def bare(rng: random.Random) -> Course:
    window, limit, seed = rng.choice(WINDOWS), rng.choice(LIMITS), rng.randrange(2**32)
    options = {"binary": rng.random() < 0.5, "in_order": rng.random() < 0.5}
    return Bare(rng.randint(1, 6), window, limit, seed, **options)


def tallied(rng: random.Random) -> Course:
    task = Task(arms=rng.randint(2, 5), players=2, delta=0.1, floor=2, reward_window=rng.choice(WINDOWS))
    return Tallied(task, rng.choice(LIMITS), rng.randrange(2**32))


def voted(rng: random.Random) -> Course:
    lengths = [(rng.randint(1, 4), rng.randint(1, 3)) for _ in range(rng.randint(1, 3))]
    fields = {"protocol": "edme", "instances": len(lengths), "players": 3, "epsilon": 0.9, "delta": 0.9}
    task = ShortTask(lengths, arms=rng.randint(2, 5), reward_window=rng.choice(WINDOWS), **fields)
    return Voted(task, rng.choice(LIMITS), rng.randrange(2**32))


def run(course: Course, plan: Sequence[Step]) -> Course:
    for kind, seed in plan:
        course.happen(kind, random.Random(seed))
    course.now += 2 * course.window + course.decisions.literal.longest_delay
    course.tick()
    course.now += course.window + course.decisions.literal.longest_delay
    course.tick()
    assert all(group.left for group in course.decisions.groups), "a group waits for ever"
    course.decisions.literal.check(course.decisions)
    return course


@examples(1_000)
@given(seed=SEEDS, plan=PLANS)
def test_decisions_count_as_the_rules_say(seed: int, plan: list[Step]) -> None:
    run(bare(random.Random(seed)), plan)


@examples(1_000)
@given(seed=SEEDS, plan=PLANS)
def test_a_player_of_tally_says_what_its_decisions_were_worth(seed: int, plan: list[Step], watched: None) -> None:
    run(tallied(random.Random(seed)), plan)


@examples(1_000)
@given(seed=SEEDS, plan=PLANS)
def test_a_player_of_the_paper_votes_on_what_its_decisions_were_worth(
    seed: int, plan: list[Step], watched: None
) -> None:
    run(voted(random.Random(seed)), plan)


def test_seeded_courses_see_everything(watched: None) -> None:
    """Without this the tests above could pass because nothing ever happens in them."""
    everything = {"counted", "ignored", "late", "out", "refused", "refused, and issued", "of no arm"}
    everything |= {"closed", "closed together", "crashes", "restarts"}
    for make, more in (
        (bare, set()),
        (tallied, {"no memory"}),
        (voted, {"no memory", "an elimination completed an epoch"}),
    ):
        happened: Counter[str] = Counter()
        for seed in range(100):
            rng = random.Random(seed)
            plan = [(rng.choice(KINDS), rng.randrange(2**16)) for _ in range(60)]
            happened.update({what for what, times in run(make(rng), plan).happened.items() if times})
        assert {what for what, courses in happened.items() if courses >= 5} >= everything | more
