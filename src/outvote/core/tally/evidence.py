"""The evidence against each arm: rounds of bets on what the fleet has reported.

A round takes one tally of every contender, all of one size, in the order in which they arrived. Before it, the
contender with the highest mean so far leads; every other arm's wealth is then bet on its being worse than the leader,
the leader's on its being worse than the runner-up. Nothing in a round has been looked at before, so if an arm is best
its wealth is at most 1 on average for ever, and reaches 1/δ with probability δ at most (docs/tally.md).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from operator import add
from typing import Any, Protocol, TypeAlias

from outvote.core.messages import PlayerId
from outvote.core.tally.bets import Bets, bets, wealth
from outvote.core.task import Task

Used: TypeAlias = tuple[PlayerId, int, int, int]
"""A tally that a round has used: whose, of which arm, its size and its successes."""


def log_thresholds(task: Task) -> tuple[float, float]:
    """The wealth at which an arm is refuted, and that of the ε-stop: with an ε each has half of δ."""
    refuted = math.log((2.0 if task.epsilon > 0 else 1.0) / task.delta)
    return refuted, math.log(2.0 * (len(task.arms) - 1) / task.delta)


class Account:
    """What the rounds have shown of one arm."""

    __slots__ = ("better", "log_wealth", "margin_better", "margin_worse", "pair", "successes", "trials", "worse")

    def __init__(self, stakes: int, margins: int) -> None:
        self.trials = 0
        self.successes = 0
        self.log_wealth = 0.0
        """The evidence against this arm."""
        self.worse = [0.0] * stakes
        """Its contributions, as the suspect, to each bet so far."""
        self.better = [0.0] * stakes
        """Its contributions as the rival."""
        self.margin_worse = [0.0] * margins
        self.margin_better = [0.0] * margins
        """The same for the bets of the ε-stop."""
        self.pair: tuple[int, float] | None = None
        """The last rival, and what all bets against it were worth after that round: often needed again in the next."""

    @property
    def standing(self) -> float:
        """The mean so far, drawn a little towards ½: who leads."""
        return (self.successes + 0.5) / (self.trials + 1)


class Suspected(Protocol):
    """An arm's account, whoever keeps it."""

    @property
    def log_wealth(self) -> float: ...


class Contest:
    """The arms that contend, and what the evidence takes from them: the part that is the same whoever keeps it."""

    accounts: Sequence[Suspected]

    def __init__(self, task: Task) -> None:
        self._task = task
        self._sizes = task.tally_sizes
        self.contenders = list(range(len(task.arms)))
        """Arms that may still be best, in increasing order."""
        self.rounds = 0
        self._threshold, self._margin_threshold = log_thresholds(task)

    def withdraw(self, arms: Collection[int]) -> None:
        """Arms that were eliminated elsewhere contend no more.

        If none is left, those contend again that only the ε-stop ended; else the least refuted stays.
        """
        left = [arm for arm in self.contenders if arm not in arms]
        if not left:
            there = [arm for arm in range(len(self.accounts)) if arm not in arms] or self.contenders[:1]
            left = [arm for arm in there if self.accounts[arm].log_wealth < self._threshold]
            left = left or [min(there, key=lambda arm: (self.accounts[arm].log_wealth, arm))]
        self.contenders = left

    def _drop_the_refuted(self) -> None:
        """The strongest evidence first, so that if all are refuted the least refuted stays."""
        wealth_of = {arm: self.accounts[arm].log_wealth for arm in self.contenders}
        if max(wealth_of.values()) < self._threshold:
            return  # as in nearly all rounds
        for arm in sorted(self.contenders, key=lambda arm: (-wealth_of[arm], arm)):
            if wealth_of[arm] >= self._threshold and len(self.contenders) > 1:
                self.contenders.remove(arm)


class Evidence(Contest):
    """All arms' accounts, and the tallies that wait for a round."""

    accounts: list[Account]

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        arms = len(task.arms)
        margin = task.epsilon > 0
        stakes = len(self._bets(self._sizes[0], 0.0).log_weights)
        margins = len(self._bets(self._sizes[0], task.epsilon).log_weights) if margin else 0
        self.accounts = [Account(stakes, margins) for _ in range(arms)]
        self._waiting: dict[int, list[deque[tuple[PlayerId, int]]]] = {
            size: [deque() for _ in range(arms)] for size in self._sizes
        }

    def add(self, player: PlayerId, arm: int, size: int, successes: int) -> list[Used]:
        """A tally of a contender; returns the (player, arm, size, successes) that the rounds it completes have used."""
        self._waiting[size][arm].append((player, successes))
        used: list[Used] = []
        could_be_ready: tuple[int, ...] = (size,)
        while (ready := self._ready(could_be_ready)) is not None:
            contenders = len(self.contenders)
            used += self._play_round(ready)
            if len(self.contenders) < contenders:  # a round of another size may have waited for the one that fell
                could_be_ready = (size, *self._sizes)
        return used

    def waiting(self, arm: int) -> int:
        """Tallies of an arm that no round has used yet."""
        return sum(len(queues[arm]) for queues in self._waiting.values())

    def leader(self) -> int:
        """The contender with the highest mean; of equal ones the lowest index."""
        return max(self.contenders, key=lambda arm: (self.accounts[arm].standing, -arm))

    # ---- snapshots

    def snapshot(self) -> dict[str, Any]:
        return {
            "contenders": list(self.contenders),
            "rounds": self.rounds,
            "accounts": [
                [a.trials, a.successes, a.log_wealth, a.worse, a.better, a.margin_worse, a.margin_better]
                for a in self.accounts
            ],
            "waiting": [
                [size, [[list(each) for each in queue] for queue in queues]] for size, queues in self._waiting.items()
            ],
        }

    def restore(self, record: Mapping[str, Any]) -> None:
        """Take over what `snapshot` wrote."""
        self.contenders = list(record["contenders"])
        self.rounds = record["rounds"]
        for account, (trials, successes, log_wealth, *sums) in zip(self.accounts, record["accounts"], strict=True):
            account.trials, account.successes, account.log_wealth = trials, successes, log_wealth
            account.worse, account.better, account.margin_worse, account.margin_better = map(list, sums)
        for size, queues in record["waiting"]:
            self._waiting[size] = [deque((player, successes) for player, successes in queue) for queue in queues]

    # ---- how it works

    def _bets(self, size: int, epsilon: float) -> Bets:
        return bets(size, self._task.privacy_budget, epsilon)

    def _ready(self, sizes: tuple[int, ...]) -> int | None:
        """The first of these sizes of which every contender has a tally waiting."""
        if len(self.contenders) > 1:
            for size in sizes:
                queues = self._waiting[size]
                if all([queues[arm] for arm in self.contenders]):
                    return size
        return None

    def _play_round(self, size: int) -> list[Used]:
        table = self._bets(size, 0.0)
        accounts = self.accounts
        leader = self.leader()
        second = max((arm for arm in self.contenders if arm != leader), key=lambda arm: (accounts[arm].standing, -arm))
        rivals = [(arm, second if arm == leader else leader) for arm in self.contenders]
        before = [self._worth(table, arm, rival) for arm, rival in rivals]
        used = []
        for arm in self.contenders:
            player, successes = self._waiting[size][arm].popleft()
            used.append((player, arm, size, successes))
            account = accounts[arm]
            account.trials += size
            account.successes += successes
            account.worse = list(map(add, account.worse, table.worse[successes]))
            account.better = list(map(add, account.better, table.better[successes]))
        self.rounds += 1
        for (arm, rival), old in zip(rivals, before, strict=True):
            new = wealth(table.log_weights, accounts[arm].worse, accounts[rival].better)
            accounts[arm].log_wealth += new - old
            accounts[arm].pair = (rival, new)
        self._drop_the_refuted()
        if self._task.epsilon > 0:
            self._stop_within_epsilon(size, used)
        return used

    def _worth(self, table: Bets, arm: int, rival: int) -> float:
        """What all bets on the arm against the rival are worth so far."""
        pair = self.accounts[arm].pair
        if pair is not None and pair[0] == rival:
            return pair[1]
        return wealth(table.log_weights, self.accounts[arm].worse, self.accounts[rival].better)

    def _stop_within_epsilon(self, size: int, used: list[Used]) -> None:
        """If every other contender is shown to be less than ε better than the leader, the leader is good enough."""
        table = self._bets(size, self._task.epsilon)
        for _, arm, _, successes in used:
            account = self.accounts[arm]
            account.margin_worse = list(map(add, account.margin_worse, table.worse[successes]))
            account.margin_better = list(map(add, account.margin_better, table.better[successes]))
        leader = self.leader()
        favour = self.accounts[leader].margin_better
        if all(
            wealth(table.log_weights, self.accounts[arm].margin_worse, favour) >= self._margin_threshold
            for arm in self.contenders
            if arm != leader
        ):
            self.contenders = [leader]
