"""A player whose rewards come at once decides and learns as Algorithm 2 says, whatever is eliminated.

Rewards that come later, in any order or never: `test_decisions`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from amounts import examples
from outvote.core.messages import Elimination
from outvote.core.task import Task

from .fleet import new_player, restored_player
from .literal import LiteralPlayer, assert_same
from .tasks import SEEDS, ShortTask, pace, rewards, tasks

Step = tuple[str, int, int]
"""What to do, how often, and a seed for its details."""
KINDS = ("play", "play", "play", "play", "play to the corner", "eliminate", "restart")
PLANS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 20), SEEDS), min_size=10, max_size=30)
"""Shorter ones seldom get to the end of an epoch."""


class Side:
    """A player and the literal one, side by side: whatever is done to one is done to the other."""

    def __init__(self, task: Task, levels: Sequence[int], *, steady: bool) -> None:
        self.task = task
        self.levels = levels
        self.steady = steady
        self.player = new_player(task, "site-0")
        self.literal = LiteralPlayer(task)
        self.now = 0

    def play(self, rng: random.Random) -> None:
        self.now += rng.randrange(2)
        counts = self.literal.status() != "finished"
        ticket = self.player.decide(self.now)
        arm = self.literal.decide()
        assert (ticket.arm, ticket.group >= 0) == (arm, counts)
        eighths = self.levels[arm] if self.steady else rng.randint(0, self.levels[arm])
        self.player.reward(ticket, eighths / 8, self.now)
        votes = self.player.tick(self.now)
        assert list(votes) == (self.literal.reward(arm, eighths) if counts else [])
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
        self.player.resume(self.now, crashed=self.now % 2 == 0)


@examples(160)
@given(data=st.data(), plan=PLANS)
def test_a_player_with_immediate_rewards_is_algorithm_2_to_the_letter(data: st.DataObject, plan: list[Step]) -> None:
    task = data.draw(tasks())
    table = data.draw(rewards(task))
    side = Side(task, table.levels[0], steady=table.steady)
    for kind, count, seed in plan:
        rng = random.Random(seed)
        if kind == "play":
            for _ in range(count * pace(task)):
                side.play(rng)
        elif kind == "play to the corner":
            for _ in range(40 * pace(task)):
                if side.literal.waited_for():
                    break
                side.play(rng)
            side.eliminate(rng)
        elif kind == "eliminate":
            side.eliminate(rng)
        else:
            side.restart()
        assert_same(side.player, side.literal)
