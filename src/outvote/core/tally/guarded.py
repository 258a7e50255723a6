"""The evidence against each arm where some sites may lie: every round is of one site, and every site has its own purse.

A round takes one tally of every contender, all of one size and all of one site, in the order in which they arrived.
What a site says moves its own purse only: down to a reserve at most, and of what the purses hold against an arm the
most that any f sites may have put there is taken off. So f sites together can neither refute an arm nor save one
(docs/liars.md proves the first and says what the second costs).
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from outvote.core.messages import PlayerId
from outvote.core.tally.bets import Bets, bets, wealth
from outvote.core.tally.evidence import Contest, Used
from outvote.core.tally.pool import Cell, Pool, alike, of_sites, take
from outvote.core.task import Task

RECKONING = 16
"""Who leads, and what is staked on which bet, is reckoned anew when a sixteenth more rounds are in."""

RICHEST = 1000.0
"""A purse grows no further than e to this: no decision needs more, and sums stay as exact as numbers are."""


class Purses:
    """What the bets at each site have made of 1, the reserve aside: the evidence against one arm."""

    __slots__ = ("_log_reserve", "_log_rest", "_tolerate", "of", "total")

    def __init__(self, tolerate: int, reserve: float) -> None:
        self._tolerate = tolerate
        self._log_reserve, self._log_rest = math.log(reserve), math.log1p(-reserve)
        self.of: dict[PlayerId, tuple[float, float, float]] = {}
        """By site: what its bets were worth, what its purse holds with the reserve, and the least that it held; all
        logarithms."""
        self.total = 0.0
        """The logarithm of the product of all purses, as it was added up: no less than `log_wealth`, but for that."""

    def pay(self, player: PlayerId, log_payment: float) -> None:
        """A round at a site multiplies what was staked there."""
        bet, held, least = self.of.get(player, (0.0, 0.0, 0.0))
        bet = min(bet + log_payment, RICHEST)
        staked = bet + self._log_rest
        top = max(staked, self._log_reserve)
        now = top + math.log(math.exp(staked - top) + math.exp(self._log_reserve - top))
        self.of[player] = bet, now, min(least, now)
        self.total += now - held

    @property
    def log_wealth(self) -> float:
        """What is left when the f sites that have put in most are taken off, each with its rise from its lowest."""
        rises = [held - least for _, held, least in self.of.values()]
        return math.fsum(held for _, held, _ in self.of.values()) - math.fsum(heapq.nlargest(self._tolerate, rises))

    def snapshot(self) -> list[Any]:
        return [self.total, [[player, *purse] for player, purse in self.of.items()]]

    def restore(self, record: Sequence[Any]) -> None:
        """Take over what `snapshot` wrote."""
        self.total = record[0]
        self.of = {player: (bet, held, least) for player, bet, held, least in record[1]}


class GuardedEvidence(Contest):
    """The purses against each arm, the pool by which bets are chosen, and the tallies that wait for a round."""

    accounts: list[Purses]

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        arms = len(task.arms)
        self._reserve = task.tolerate / task.players
        self.accounts = [self._purses() for _ in range(arms)]
        self._margins: dict[tuple[int, int], Purses] = {}
        """Of the ε-stop, by suspect and leader: evidence that the suspect is less than ε better."""
        self._cells: list[dict[PlayerId, Cell]] = [{} for _ in range(arms)]
        """By arm and site: tallies of each size that rounds have used, and their successes."""
        self._pools = [Pool.empty(len(self._sizes)) for _ in range(arms)]
        self._next_reckoning = 0
        self._waiting: dict[PlayerId, list[list[deque[int]]]] = {}
        """By site, size and arm."""

    def add(self, player: PlayerId, arm: int, size: int, successes: int) -> list[Used]:
        """A tally of a contender; returns the (player, arm, size, successes) that the rounds it completes have used."""
        queues = self._waiting.get(player)
        if queues is None:
            queues = self._waiting[player] = [[deque() for _ in self.accounts] for _ in self._sizes]
        index = self._sizes.index(size)
        queues[index][arm].append(successes)
        if not self._ready(queues[index]):
            return []
        contenders = len(self.contenders)
        used = self._play_round(player, index)
        if len(self.contenders) < contenders:
            used += self._play_all()
        return used

    def waiting(self, arm: int) -> int:
        """Tallies of an arm that no round has used yet."""
        return sum(len(by_arm[arm]) for queues in self._waiting.values() for by_arm in queues)

    def leader(self) -> int:
        """The contender with the highest mean in the pool; of equal ones the lowest index."""
        return max(self.contenders, key=self._rank)

    # ---- snapshots

    def snapshot(self) -> dict[str, Any]:
        return {
            "contenders": list(self.contenders),
            "rounds": self.rounds,
            "accounts": [account.snapshot() for account in self.accounts],
            "margins": [[*pair, purses.snapshot()] for pair, purses in self._margins.items()],
            "cells": [[[player, list(cell)] for player, cell in cells.items()] for cells in self._cells],
            "pools": [[list(pool.tallies), list(pool.successes)] for pool in self._pools],
            "next_reckoning": self._next_reckoning,
            "waiting": [
                [player, [[list(queue) for queue in by_arm] for by_arm in queues]]
                for player, queues in self._waiting.items()
            ],
        }

    def restore(self, record: Mapping[str, Any]) -> None:
        """Take over what `snapshot` wrote."""
        self.contenders = list(record["contenders"])
        self.rounds = record["rounds"]
        for account, kept in zip(self.accounts, record["accounts"], strict=True):
            account.restore(kept)
        for suspect, leader, kept in record["margins"]:
            self._margins[suspect, leader] = self._purses()
            self._margins[suspect, leader].restore(kept)
        self._cells = [{player: list(cell) for player, cell in rows} for rows in record["cells"]]
        self._pools = [Pool(tuple(tallies), tuple(successes)) for tallies, successes in record["pools"]]
        self._next_reckoning = record["next_reckoning"]
        self._waiting = {
            player: [[deque(queue) for queue in by_arm] for by_arm in queues] for player, queues in record["waiting"]
        }

    # ---- how it works

    def _purses(self) -> Purses:
        return Purses(self._task.tolerate, self._reserve)

    def _rank(self, arm: int) -> tuple[float, int]:
        return self._pools[arm].standing(self._sizes), -arm

    def _ready(self, by_arm: Sequence[deque[int]]) -> bool:
        return len(self.contenders) > 1 and all([by_arm[arm] for arm in self.contenders])

    def _play_all(self) -> list[Used]:
        """An arm fell: rounds may have waited for it at any site."""
        used: list[Used] = []
        again = True
        while again:
            again = False
            for player, queues in self._waiting.items():
                for index, by_arm in enumerate(queues):
                    while self._ready(by_arm):
                        used += self._play_round(player, index)
                        again = True
        return used

    def _play_round(self, player: PlayerId, index: int) -> list[Used]:
        size = self._sizes[index]
        if self.rounds >= self._next_reckoning:
            self._reckon()
        leader, second = heapq.nlargest(2, self.contenders, key=self._rank)
        results = {arm: self._waiting[player][index][arm].popleft() for arm in self.contenders}
        for arm in self.contenders:
            rival = second if arm == leader else leader
            self.accounts[arm].pay(player, self._payment(0.0, index, arm, rival, results))
        if self._task.epsilon > 0:
            for arm in self.contenders:
                if arm != leader:
                    purses = self._margins.setdefault((arm, leader), self._purses())
                    purses.pay(player, self._payment(self._task.epsilon, index, arm, leader, results))
        for arm, successes in results.items():
            cell = self._cells[arm].setdefault(player, [0] * (2 * len(self._sizes) + 2))
            take(cell, index, size, successes)
        self.rounds += 1
        self._drop_the_refuted()
        if self._task.epsilon > 0:
            self._stop_within_epsilon(leader)
        return [(player, arm, size, successes) for arm, successes in results.items()]

    def _payment(self, epsilon: float, index: int, arm: int, rival: int, results: Mapping[int, int]) -> float:
        """What the bets on an arm against its rival pay, weighed by what the pool says of both."""
        table_of: Callable[[int], Bets] = lambda index: self._bets(self._sizes[index], epsilon)  # noqa: E731
        table = table_of(index)
        worse = self._pools[arm].contributions(table_of, "worse", epsilon)
        better = self._pools[rival].contributions(table_of, "better", epsilon)
        after = wealth(
            table.log_weights,
            [a + b for a, b in zip(worse, table.worse[results[arm]], strict=True)],
            [a + b for a, b in zip(better, table.better[results[rival]], strict=True)],
        )
        return after - wealth(table.log_weights, worse, better)

    def _reckon(self) -> None:
        """The pool of each arm anew: bets may be chosen by anything that is known before their round."""
        fresh = [of_sites(list(self._cells[arm].values()), self._sizes, self._task.tolerate) for arm in self.contenders]
        for arm, pool in zip(self.contenders, alike(fresh), strict=True):
            self._pools[arm] = pool
        self._next_reckoning = self.rounds + 1 + self.rounds // RECKONING

    def _drop_the_refuted(self) -> None:
        if any(self.accounts[arm].total >= self._threshold - 1 for arm in self.contenders):  # as in few rounds
            super()._drop_the_refuted()

    def _stop_within_epsilon(self, leader: int) -> None:
        """If every other contender is shown to be less than ε better than the leader, the leader is good enough."""
        if leader in self.contenders and all(
            self._margins[arm, leader].log_wealth >= self._margin_threshold for arm in self.contenders if arm != leader
        ):
            self.contenders = [leader]

    def _bets(self, size: int, epsilon: float) -> Bets:
        return bets(size, self._task.privacy_budget, epsilon)
