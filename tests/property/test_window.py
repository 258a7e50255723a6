"""With a reward window batches count as a whole, when they close.

Whatever is answered late or never, and whatever is eliminated or restarted meanwhile, only what was answered before
the close of its batch counts, and what was not counts 0.
"""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amounts import examples
from outvote.core.errors import BatchNotClosable, NoOutstandingDecision, UnknownTicket
from outvote.core.messages import Elimination, Vote
from outvote.core.task import Task
from outvote.core.votes.player import MedianPlayer

from .fleet import new_player, restored_player
from .literal import LiteralPlayer, assert_same
from .tasks import SEEDS, pace, tasks

Step = tuple[str, int, int]
"""What to do, how often, and a seed for its details."""
KINDS = (*("decide",) * 4, *("close",) * 4, "answer", "answer", "play to the corner", "eliminate", "restart", "fork")
PLANS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 30), SEEDS), min_size=12, max_size=40)


class Window:
    """A player whose batches the test closes when it likes, and what must then have been counted."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.player = new_player(task, "site-0")
        self.literal = LiteralPlayer(task)
        self.twins: list[MedianPlayer] = []
        """Players restored on the way, which are then told the same as the original."""
        self.arm_of: dict[int, int] = {}
        self.decided: Counter[int] = Counter()
        self.eighths: Counter[int] = Counter()
        self.newest: dict[int, int] = {}
        """The batch of each arm to which its last decision belongs."""
        self.waiting: list[int] = []
        """The ticket of each decision without a reward."""
        self.due: list[int] = []
        self.named: set[int] = set()
        """The tickets that `take_full` has named."""
        self.closed: set[int] = set()
        self.dropped = 0

    def decide(self, rng: random.Random, *, prompt: float) -> None:
        """One decision, with its reward at once or later or never."""
        arm, ticket = self.player.decide()
        assert arm == self.literal.decide()
        for twin in self.twins:
            assert twin.decide() == (arm, ticket)
        assert self.arm_of.setdefault(ticket, arm) == arm, "a ticket stands for two arms"
        assert ticket not in self.named, "a decision was added to a full batch"
        self.take_full()
        if self.newest.setdefault(arm, ticket) != ticket:
            assert self.newest[arm] in self.named, "a batch was left that nobody was told to close"
            self.newest[arm] = ticket
        self.decided[ticket] += 1
        self.waiting.append(ticket)
        if rng.random() < prompt:
            self.answer(len(self.waiting) - 1, rng)

    def take_full(self) -> None:
        full = self.player.take_full()
        assert not self.named & set(full), "a ticket was named twice"
        self.named |= set(full)
        self.due += full
        for twin in self.twins:
            assert twin.take_full() == full

    def answer(self, index: int, rng: random.Random) -> None:
        ticket, eighths = self.waiting.pop(index), rng.randint(0, 8)
        arm = self.arm_of[ticket]
        assert self.reward(arm, ticket, eighths) == [], "a reward made a vote before its batch closed"
        if arm not in self.player.remaining:
            self.literal.late += 1
        elif ticket in self.closed:
            self.dropped += 1
        else:
            self.eighths[ticket] += eighths

    def reward(self, arm: int, ticket: int, eighths: int) -> list[Vote]:
        votes = self.player.reward(arm, eighths / 8, ticket=ticket)
        for twin in self.twins:
            assert twin.reward(arm, eighths / 8, ticket=ticket) == votes
        return list(votes)

    def close(self, ticket: int) -> None:
        votes = list(self.player.close(ticket))
        for twin in self.twins:
            assert list(twin.close(ticket)) == votes
        arm = self.arm_of.get(ticket)  # None: the player asked for a test, nothing was decided under this ticket
        if arm is not None and arm in self.literal.remaining and ticket not in self.closed:
            self.literal.observe(arm, self.eighths[ticket], pulls=self.decided[ticket])
            self.closed.add(ticket)
        assert votes == self.literal.test()

    def eliminate(self, rng: random.Random) -> None:
        arms = rng.sample(range(len(self.task.arms)), rng.choice([1, 1, 1, 2]))
        if len(arms) == 1:
            arms = self.literal.waited_for()[:1] or arms
        message = Elimination(tuple(arms))
        for player in (self.player, *self.twins):
            player.receive(message)
        self.literal.eliminate(message.arms)
        self.take_full()

    def restored(self) -> tuple[MedianPlayer, list[int]]:
        """The player again, from its snapshot, and the tickets to close: it names all that are not closed again."""
        snapshot = self.player.snapshot()
        player = restored_player(self.task, json.loads(json.dumps(snapshot)))
        assert player.snapshot() == snapshot
        due = player.take_full()
        full = {ticket for ticket in self.named - self.closed if ticket in self.arm_of}
        unclosed = {ticket for ticket in full if self.arm_of[ticket] in self.player.remaining}
        assert sorted(ticket for ticket in due if ticket in self.arm_of) == sorted(unclosed)
        assert set(due) <= self.named
        assert len(due) > len(unclosed) or not self.literal.test_due(), "nothing is left that ends the complete epoch"
        return player, due

    def check(self) -> None:
        """Only closed batches count, each as a whole, and Algorithm 2 sees nothing else."""
        pulls, eighths = Counter[int](), Counter[int]()
        for ticket in self.closed:
            pulls[self.arm_of[ticket]] += self.decided[ticket]
            eighths[self.arm_of[ticket]] += self.eighths[ticket]
        snapshot, arms = self.player.snapshot(), range(len(self.task.arms))
        assert snapshot["pulls"] == [pulls[arm] for arm in arms]
        assert snapshot["totals"] == [eighths[arm] / 8 for arm in arms]
        assert snapshot["dropped_rewards"] == self.dropped
        assert_same(self.player, self.literal)
        # Else an epoch that an elimination completed would wait for a batch that may never become full.
        assert self.due or not self.literal.test_due()
        for twin in self.twins:
            assert twin.snapshot() == snapshot


@examples(300)
@given(task=tasks(window=True), plan=PLANS, prompt=st.sampled_from([0.0, 0.3, 0.9, 1.0]))
def test_only_closed_batches_count_and_a_restored_player_goes_on_as_the_original(
    task: Task, plan: list[Step], prompt: float
) -> None:
    window = Window(task)
    for kind, count, seed in plan:
        rng = random.Random(seed)
        if kind == "decide":
            for _ in range(count * pace(task)):
                window.decide(rng, prompt=prompt)
        elif kind == "answer":
            for _ in range(min(count * pace(task), len(window.waiting))):
                window.answer(rng.randrange(len(window.waiting)), rng)
        elif kind == "close":
            for _ in range(min(count, len(window.due))):
                window.close(window.due.pop(rng.randrange(len(window.due))))
        elif kind == "play to the corner":
            for _ in range(40 * pace(task)):
                window.decide(rng, prompt=prompt)
                while window.due and not window.literal.waited_for():
                    window.close(window.due.pop(rng.randrange(len(window.due))))
                if window.literal.waited_for():
                    break
            window.eliminate(rng)
        elif kind == "eliminate":
            window.eliminate(rng)
        elif kind == "restart":
            window.player, window.due = window.restored()
        else:
            window.twins.append(window.restored()[0])
        window.check()


@examples(150)
@given(task=tasks(window=True, short=True), draws=st.integers(1, 200), seed=SEEDS)
def test_a_batch_closes_once_after_its_last_decision_and_takes_no_more_rewards_than_decisions(
    task: Task, draws: int, seed: int
) -> None:
    window, rng = Window(task), random.Random(seed)
    for _ in range(draws):
        window.decide(rng, prompt=0.5)
        while window.due and rng.random() < 0.3:
            window.close(window.due.pop())
    while window.waiting:
        window.answer(-1, rng)
    player, before = window.player, window.player.snapshot()
    for ticket, arm, _, left, _, _ in before["batches"]:
        if window.decided[ticket]:
            with pytest.raises(NoOutstandingDecision):
                player.reward(arm, 1.0, ticket=ticket)
        if left:
            with pytest.raises(BatchNotClosable):
                player.close(ticket)
    with pytest.raises(UnknownTicket):
        player.close(before["next_ticket"])
    assert player.snapshot() == before
    for ticket in window.due * 2:  # the second time counts nothing
        window.close(ticket)
    window.check()


@examples(100)
@given(task=tasks("dme", window=True), epochs=st.integers(1, 3), seed=SEEDS)
def test_with_prompt_closing_each_candidate_is_judged_on_exactly_the_pulls_of_its_epoch(
    task: Task, epochs: int, seed: int
) -> None:
    window, rng = Window(task), random.Random(seed)
    instance = window.literal.instances[0]
    while instance.epoch <= epochs and not instance.finished():
        window.decide(rng, prompt=1.0)
        for ticket in window.due:
            window.close(ticket)
            assert all(instance.pulls[arm] in (0, instance.length) for arm in instance.candidates)
        window.due = []
    window.check()
