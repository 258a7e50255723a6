"""What one trial came to, whichever engine ran it."""

from __future__ import annotations

from dataclasses import dataclass

from outvote.core.codes import fixed_width


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


def unlimited_costs(*, players: int, arms: int, draws: int) -> Costs:
    """Every draw is reported and told to all others: N·T·⌈log₂K⌉ bits, as the paper counts."""
    bits, told = fixed_width(arms), draws * (players - 1)
    return Costs(up_bits=draws * bits, down_bits=told * bits, up_messages=draws, down_messages=told)


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
    """The sites were found to differ, and the decision was held back."""

    @property
    def first_elimination(self) -> int | None:
        return self.eliminations[0][1] if self.eliminations else None
