"""A player decides and learns as Algorithm 2 says, however late its rewards come and whatever is eliminated."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amounts import examples
from outvote.core.errors import NoOutstandingDecision, UnknownTicket
from outvote.core.messages import Elimination
from outvote.core.task import Task
from outvote.core.votes.player import MedianPlayer

from .fleet import new_player, restored_player
from .literal import LiteralPlayer, assert_same, epoch_length
from .tasks import SEEDS, ShortTask, pace, rewards, tasks

Step = tuple[str, int, int]
"""What to do, how often, and a seed for its details."""
IMMEDIATE = ("play", "play", "play", "play", "play to the corner", "eliminate", "restart")
DELAYED = ("decide", "decide", "decide", "answer", "answer", "answer", "eliminate", "restart")


def steps(*kinds: str, most: int) -> st.SearchStrategy[list[Step]]:
    """Many steps of these kinds: shorter plans seldom get to the end of an epoch."""
    return st.lists(st.tuples(st.sampled_from(kinds), st.integers(1, most), SEEDS), min_size=10, max_size=30)


class Side:
    """A player and the literal one, side by side: whatever is done to one is done to the other."""

    def __init__(self, task: Task, levels: Sequence[int], *, steady: bool) -> None:
        self.task = task
        self.levels = levels
        self.steady = steady
        self.player = new_player(task, "site-0")
        self.literal = LiteralPlayer(task)
        self.waiting: list[tuple[int, int]] = []

    def decide(self) -> tuple[int, int]:
        arm, ticket = self.player.decide()
        assert arm == self.literal.decide()
        return arm, ticket

    def reward(self, arm: int, ticket: int | None, rng: random.Random) -> None:
        eighths = self.levels[arm] if self.steady else rng.randint(0, self.levels[arm])
        votes = self.player.reward(arm, eighths / 8, ticket=ticket)
        assert list(votes) == self.literal.reward(arm, eighths)
        if votes or isinstance(self.task, ShortTask):  # long epochs: looking after every reward takes too long
            assert_same(self.player, self.literal)

    def eliminate(self, rng: random.Random) -> None:
        """Any arms, known or new, in any order, perhaps all of them: the last one must stay."""
        count = rng.choice([1, 1, 1, 1, 1, 2, len(self.task.arms)])
        arms = rng.sample(range(len(self.task.arms)), count)
        if count == 1:
            arms = self.literal.waited_for()[:1] or arms
        before = self.player.snapshot()
        self.player.receive(Elimination(tuple(arms)))
        again = self.player.snapshot()
        self.player.receive(Elimination(tuple(arms)))
        assert self.player.snapshot() == again, "an elimination that came again changed the player"
        assert again["next_sequence"] == before["next_sequence"], "an elimination made votes"
        self.literal.eliminate(arms)

    def restart(self) -> None:
        snapshot = self.player.snapshot()
        self.player = restored_player(self.task, json.loads(json.dumps(snapshot)))
        assert self.player.snapshot() == snapshot


@examples(160)
@given(data=st.data(), plan=steps(*IMMEDIATE, most=20))
def test_a_player_with_immediate_rewards_is_algorithm_2_to_the_letter(data: st.DataObject, plan: list[Step]) -> None:
    task = data.draw(tasks())
    table = data.draw(rewards(task))
    side = Side(task, table.levels[0], steady=table.steady)
    for kind, count, seed in plan:
        rng = random.Random(seed)
        if kind == "play":
            for _ in range(count * pace(task)):
                side.reward(*side.decide(), rng)
        elif kind == "play to the corner":
            for _ in range(40 * pace(task)):
                if side.literal.waited_for():
                    break
                side.reward(*side.decide(), rng)
            side.eliminate(rng)
        elif kind == "eliminate":
            side.eliminate(rng)
        else:
            side.restart()
        assert_same(side.player, side.literal)


@examples(160)
@given(data=st.data(), plan=steps(*DELAYED, "forget", most=40))
def test_rewards_that_come_late_or_never_count_when_they_come(data: st.DataObject, plan: list[Step]) -> None:
    task = data.draw(tasks())
    table = data.draw(rewards(task))
    side = Side(task, table.levels[0], steady=table.steady)
    given_rewards: Counter[int] = Counter()
    for kind, count, seed in plan:
        rng = random.Random(seed)
        rng.shuffle(side.waiting)
        if kind == "decide":
            side.waiting += [side.decide() for _ in range(count * pace(task))]
        elif kind == "answer":
            for _ in range(min(count * pace(task), len(side.waiting))):
                arm, ticket = side.waiting.pop()
                given_rewards[arm] += arm in side.player.remaining
                side.reward(arm, ticket, rng)
        elif kind == "forget":
            del side.waiting[: count * pace(task)]
        elif kind == "eliminate":
            side.eliminate(rng)
        else:
            side.restart()
        assert_same(side.player, side.literal)
        assert side.player.snapshot()["pulls"] == [given_rewards[arm] for arm in range(len(task.arms))]


@examples(150)
@given(data=st.data(), plan=steps(*DELAYED, "answer newest", most=20))
def test_each_decision_is_rewarded_once(data: st.DataObject, plan: list[Step]) -> None:
    task = data.draw(tasks(short=True))
    side = Side(task, [8] * len(task.arms), steady=False)
    for kind, count, seed in plan:
        rng = random.Random(seed)
        if kind == "decide":
            side.waiting += [side.decide() for _ in range(count)]
        elif kind == "eliminate":
            side.eliminate(rng)
        elif kind == "restart":
            side.restart()
        else:
            for _ in range(min(count, len(side.waiting))):
                arm, named = rng.choice(side.waiting)
                if kind == "answer newest":
                    named = max(of_arm for of, of_arm in side.waiting if of == arm)
                side.waiting.remove((arm, named))
                side.reward(arm, None if kind == "answer newest" else named, rng)
    for arm, named in side.waiting:
        side.reward(arm, named, random.Random(0))
    before = side.player.snapshot()
    assert sorted(arm for _, arm, *_ in before["batches"]) == side.literal.remaining, "an answered batch was kept"
    for arm in side.literal.remaining:
        for ticket in (None, *range(before["next_ticket"])):
            with pytest.raises((NoOutstandingDecision, UnknownTicket)):  # the latter where it is of another arm
                side.player.reward(arm, 1.0, ticket=ticket)
    assert side.player.snapshot() == before


@examples(60)
@given(
    task=tasks(short=False),
    answered=st.sampled_from([0.0, 0.5, 0.9, 0.99, 1.0]),
    silent=st.booleans(),
    laps=st.integers(1, 4000),
    seed=SEEDS,
)
def test_decisions_that_are_never_answered_do_not_pile_up(
    task: Task, answered: float, silent: bool, laps: int, seed: int
) -> None:
    rng, arms = random.Random(seed), len(task.arms)
    player: MedianPlayer = new_player(task, "site-0")
    for _ in range(laps * arms):
        arm, ticket = player.decide()
        if rng.random() < answered and not (silent and arm == 0):  # a whole arm may be silent
            player.reward(arm, rng.randint(0, 8) / 8, ticket=ticket)
        if rng.random() < 0.5 / laps:
            player.receive(Elimination((rng.randrange(arms),)))
    # A batch ends where some epoch has what it needs, so there are no more batches than epochs that the decisions of
    # an arm are enough for: epochs double, so these are few.
    epochs = 0
    for instance in range(len(task.instances)):
        epoch = 1
        while epoch_length(task, instance, epoch) <= laps * arms:
            epoch += 1
        epochs += epoch
    assert len(player.snapshot()["batches"]) <= arms * (epochs + 2)
