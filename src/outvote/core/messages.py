"""What crosses the network: a `Vote` goes up, an `Elimination` comes down. Nothing else does."""

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
class Elimination:
    """The fleet has eliminated these arms (Algorithm 3, line 16)."""

    arms: tuple[int, ...]
