"""What crosses the network: a `Vote`, a `Tally` or a `Block` goes up, an `Elimination` down. Nothing else does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

PlayerId: TypeAlias = str | int
"""Who a player is: a name in the network, a number in simulation."""


@dataclass(frozen=True, slots=True)
class Vote:
    """A player would eliminate `arm` (Algorithm 2, line 8).

    `sequence` numbers a player's votes from 0 over all its instances. It belongs to the envelope, not to the
    payload: the server applies a player's votes in that order, whatever order they arrive in.
    """

    arm: int
    instance: int = 0
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """A player has seen `successes` in `trials` events of `arm`; with a privacy budget, so many after noise.

    `sequence` is the place in the player's cycle of arms. It belongs to the envelope: it tells a repeated tally from a
    new one, and it implies the arm.
    """

    arm: int
    successes: int
    trials: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Block:
    """What a player has seen in one randomised block, closed and sealed.

    `number` counts a player's blocks from 0; it belongs to the envelope. `heard` is how many eliminations the player
    had applied at closing. `counts` has, for each arm that remained then, how many decisions it had and how many of
    them succeeded; 0 and 0 for an arm with fewer than the floor.
    """

    number: int
    heard: int
    counts: tuple[tuple[int, int], ...]

    @property
    def sequence(self) -> int:
        """The number under which it is sent."""
        return self.number


UpMessage: TypeAlias = Vote | Tally | Block


@dataclass(frozen=True, slots=True)
class Elimination:
    """The fleet has eliminated these arms (Algorithm 3, line 16)."""

    arms: tuple[int, ...]
