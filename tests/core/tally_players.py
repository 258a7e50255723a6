"""Tally players for tests by hand: small tasks, generators that say what they are told, and what must not change."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from outvote.core.errors import (
    OutvoteError,
)
from outvote.core.messages import PlayerId, Tally
from outvote.core.tally.player import MOST_WAITING, TallyPlayer
from outvote.core.task import Task


def new_task(arms: int = 2, *, window: float | None = None, **options: Any) -> Task:
    fields: dict[str, Any] = {"players": 4, "epsilon": 0, "delta": 0.05, "protocol": "tally", "reward_window": window}
    return Task(arms=arms, **{**fields, **options})


class Forbidden(random.Random):
    """A generator from which nothing may be drawn."""

    def random(self) -> float:
        raise AssertionError("a number was drawn")

    def getrandbits(self, k: int, /) -> int:
        raise AssertionError("bits were drawn")


class Scripted(random.Random):
    """A generator that says what it is told, and notices what is asked beyond."""

    def __init__(self, *, coins: Iterable[float] = (), below: Iterable[int] = (), bits: Iterable[int] = ()) -> None:
        super().__init__(0)
        self.coins, self.below, self.bits = list(coins), list(below), list(bits)

    def random(self) -> float:
        return self.coins.pop(0)

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        assert stop is None
        value = self.below.pop(0)
        assert 0 <= value < start
        return value

    def getrandbits(self, k: int, /) -> int:
        assert k == 1
        return self.bits.pop(0)

    @property
    def used_up(self) -> bool:
        return not (self.coins or self.below or self.bits)


def new_player(arms: int = 2, player: PlayerId = 0, **options: Any) -> TallyPlayer:
    """A player whose rewards are 0 and 1: it has nothing to draw."""
    return TallyPlayer(new_task(arms, **options), player, Forbidden())


def decide(player: TallyPlayer, turns: int) -> list[tuple[int, int]]:
    return [player.decide() for _ in range(turns)]


def play(player: TallyPlayer, turns: int, worth: Sequence[float]) -> list[Tally]:
    """Decide and reward at once; arm k always pays worth[k]."""
    tallies: list[Tally] = []
    for _ in range(turns):
        arm, ticket = player.decide()
        tallies += player.reward(arm, worth[arm], ticket=ticket)
    return tallies


def batches(player: TallyPlayer) -> dict[int, tuple[int, int, int, int, float]]:
    """Ticket -> arm, size, decisions to come, decisions without a reward, successes."""
    return {ticket: tuple(rest) for ticket, *rest in player.snapshot()["batches"]}


def refused(player: TallyPlayer, error: type[OutvoteError], call: Callable[[], object]) -> str:
    """The message of a call that is refused and changes nothing."""
    before = player.snapshot()
    with pytest.raises(error) as caught:
        call()
    assert player.snapshot() == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


def overloaded() -> TallyPlayer:
    """A player that has as many open tallies as it keeps, the newest of them just full.

    K = 2: 2·64 = 128 tallies are 2 of 3, 6 of 7, 24 of 15 and 96 of 31 events.
    """
    assert MOST_WAITING == 64
    player = new_player(2, window=60.0)
    decide(player, 2 * 3 + 6 * 7 + 24 * 15 + 96 * 31)
    assert sorted(batches(player)) == list(range(128))
    assert player.take_full() == list(range(128))
    return player
