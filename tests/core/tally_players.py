"""Tally players for tests by hand: small tasks, generators that say what they are told, and what must not change."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from outvote.core.decisions import Capacity, Ticket
from outvote.core.errors import OutvoteError
from outvote.core.messages import PlayerId, Tally
from outvote.core.tally.player import TallyPlayer
from outvote.core.task import Task


def new_task(arms: int = 2, *, window: float = 0.0, **options: Any) -> Task:
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
    """A player whose rewards are 0 and 1: without a window it has nothing to draw."""
    task = new_task(arms, **options)
    return TallyPlayer(task, player, random.Random(1) if task.reward_window else Forbidden())


def decide(player: TallyPlayer, turns: int, now: int = 0) -> list[Ticket]:
    return [player.decide(now) for _ in range(turns)]


def named(tickets: Iterable[Ticket]) -> list[tuple[int, int]]:
    """The arm and the group of each."""
    return [(ticket.arm, ticket.group) for ticket in tickets]


def play(player: TallyPlayer, turns: int, worth: Sequence[float], now: int = 0) -> list[Tally]:
    """Decide and reward at once; arm k always pays worth[k]."""
    tallies: list[Tally] = []
    for _ in range(turns):
        ticket = player.decide(now)
        player.reward(ticket, worth[ticket.arm], now)
        tallies += player.tick(now)
    return tallies


def groups(player: TallyPlayer) -> dict[int, tuple[int, int, int, float]]:
    """Of each tally that has not left: arm, decisions to come, decisions made, successes."""
    found = {}
    for group in player.decisions.groups:
        [(arm, count)] = group.counts.items()
        found[group.number] = arm, count.left, count.decided, count.total
    return found


def refused(player: TallyPlayer, error: type[OutvoteError], call: Callable[[], object]) -> str:
    """The message of a call that is refused and changes nothing."""
    before = player.snapshot()
    with pytest.raises(error) as caught:
        call()
    assert player.snapshot() == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


def overloaded() -> TallyPlayer:
    """A player that has as many open tallies as there is memory for, the newest of them just full.

    K = 2: two tallies of 3 events and two of 7 take 4·64 + 2·3 + 2·7 = 276.
    """
    player = new_player(2, window=60.0)
    player.decisions.share(Capacity(276))
    decide(player, 2 * 3 + 2 * 7)
    assert sorted(groups(player)) == [0, 1, 2, 3]
    assert player.decisions.capacity.used == 276
    return player
