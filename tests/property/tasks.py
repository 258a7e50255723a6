"""What the property tests draw: tasks whose epochs are short, and rewards about which players disagree.

The paper's shortest epoch takes some sixty pulls of each arm. A `ShortTask` differs from a task in its epochs alone,
so that a run of fifty steps reaches votes, eliminations and several epochs; a part of the tasks keep the real ones.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from outvote.core.task import Task
from outvote.core.votes.schedule import Schedule

SEEDS = st.integers(0, 2**16)


@dataclass(frozen=True, slots=True)
class ShortSchedule(Schedule):
    """Epochs of `first`, `first + growth`, … pulls: they grow, as the paper's do."""

    first: int = 1
    growth: int = 1

    def pulls(self, epoch: int) -> int:
        return self.first + self.growth * (epoch - 1)


class ShortTask(Task):
    """A task with short epochs: one (first, growth) for each instance."""

    lengths: tuple[tuple[int, int], ...]

    def __init__(self, lengths: Sequence[tuple[int, int]], **fields: Any) -> None:
        object.__setattr__(self, "lengths", tuple(lengths))  # first: the construction asks for the schedules
        super().__init__(**fields)

    def schedules(self) -> tuple[Schedule, ...]:
        return tuple(ShortSchedule(len(self.arms), self.epsilon, 0.0, *length) for length in self.lengths)


@dataclass(frozen=True, slots=True)
class Rewards:
    """What an arm gives at a player: its level in eighths, either always or as the chance of a 1.

    Eighths add up without rounding, so equal means are exactly equal, and steady equal levels tie for ever.
    """

    levels: Sequence[Sequence[int]]
    steady: bool

    def draw(self, player: int, arm: int, rng: random.Random) -> float:
        level = self.levels[player][arm]
        if self.steady:
            return level / 8
        return 1.0 if rng.randrange(8) < level else 0.0


@st.composite
def tasks(
    draw: st.DrawFn, protocol: str | None = None, *, window: bool | None = False, short: bool | None = None
) -> Task:
    """A small task; what is None is drawn."""
    protocol = protocol or draw(st.sampled_from(["dme", "edme"]))
    players = draw(st.sampled_from([2, 3, 4, 5, 1]))
    fields: dict[str, Any] = {
        "protocol": protocol,
        "arms": draw(st.sampled_from([3, 4, 5, 6, 2])),
        "players": [f"site-{player}" for player in range(players)] if draw(st.booleans()) else players,
        "epsilon": draw(st.sampled_from([0.9, 0.95, 0.99])),
        "delta": draw(st.sampled_from([0.5, 0.9, 0.99])),
        "quorum": draw(st.sampled_from(["certified", "paper"])),
        "reward_window": 60.0 if (draw(st.booleans()) if window is None else window) else 0.0,
    }
    # Quarters: a quorum is a real number, and may need half a vote more than a whole one.
    quarters = st.integers(1, 4 * players).map(lambda quarter: quarter / 4)
    count = 1
    if protocol == "dme":
        fields["active_players"] = draw(quarters | st.just(float(players)))
    elif draw(st.booleans()):
        fields["instances"] = count = draw(st.integers(1, 3))
    else:
        fields["instances"] = sorted(draw(st.sets(quarters, min_size=1, max_size=3)))
        count = len(fields["instances"])
    if not (draw(st.sampled_from([True, True, False, True, True])) if short is None else short):
        return Task(**fields)
    lengths = st.tuples(st.integers(1, 4), st.integers(1, 3))
    return ShortTask(draw(st.lists(lengths, min_size=count, max_size=count)), **fields)


@st.composite
def rewards(draw: st.DrawFn, task: Task) -> Rewards:
    """Rewards for every player of a task: the same levels for all, or each its own."""
    levels = st.lists(st.integers(0, 8), min_size=len(task.arms), max_size=len(task.arms))
    shared = draw(st.sampled_from([False, False, True]))
    own = [draw(levels)] * task.players if shared else [draw(levels) for _ in range(task.players)]
    return Rewards(own, draw(st.booleans()))


def pace(task: Task) -> int:
    """By how much plays must be longer in a task with the paper's epochs than in one with short ones."""
    return max(1, min((schedule.pulls(1) for schedule in task.schedules()), default=0) // 4)
