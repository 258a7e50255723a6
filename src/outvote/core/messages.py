"""What crosses the network: a `Vote` or a `Tally` goes up, an `Elimination` comes down. Nothing else does."""

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


UpMessage: TypeAlias = Vote | Tally


@dataclass(frozen=True, slots=True)
class Elimination:
    """The fleet has eliminated these arms (Algorithm 3, line 16)."""

    arms: tuple[int, ...]
