"""What one trial came to, whichever engine ran it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outvote.simulation.environments import best_arms, good_arms


@dataclass(frozen=True, slots=True)
class Costs:
    """Payload bits and messages of one trial."""

    up_bits: int = 0
    down_bits: int = 0
    instance_bits: int = 0
    up_messages: int = 0
    down_messages: int = 0
    implied_bits: int = 0
    """Not in `up_bits`: what naming the arm in every tally would add."""


def judge(means: Sequence[float], epsilon: float, fallen: set[int]) -> tuple[bool, bool, bool]:
    """All good, some good, only the best: of what remains to a fleet that shares it."""
    remaining = set(range(len(means))) - fallen
    good = good_arms(means, epsilon)
    return remaining <= good, bool(remaining & good), len(remaining) == 1 and remaining <= best_arms(means)


@dataclass(frozen=True, slots=True)
class Trial:
    """Moments are draws, counted from 1, or None where they were not reached."""

    regret: list[float]
    """At each grid point."""
    costs: Costs
    eliminations: list[tuple[int, int]]
    """(arm, draw), in order; of players on their own the first to eliminate an arm."""
    finished: int | None
    all_finished: int | None
    solved: int | None
    correct: bool
    """All arms that remain at the horizon are ε-approximations of the best."""
    safe: bool
    """At least one of them is."""
    best: bool
    """Only the best remains."""
    held: bool = False
    """The sites differ, and a decision is held back at the horizon."""
    lost: bool = False
    """Every arm that is best was eliminated; of players on their own, by any of them."""

    @property
    def first_elimination(self) -> int | None:
        return self.eliminations[0][1] if self.eliminations else None
