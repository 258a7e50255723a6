"""What users of a site know of its decisions, and so what a tally may say of them. Pure.

A tally speaks of one group of decisions: of all, or of those that a crash has left. It says how many have succeeded:
those whose reward came in its window, each once, however often it was sent.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Final

from outvote.core.decisions import Ticket
from outvote.core.messages import Tally

NEVER: Final = 0.08
LATE: Final = 0.08
AT_ONCE: Final = 0.6
AGAIN: Final = 0.25
"""Shares of decisions that nobody rewards, whose reward comes too late, or at once, or is repeated; some twice."""
OTHERWISE: Final = 0.3
"""The share of repeated rewards that say 0: the largest counts."""
SLACK: Final = 0.05
"""Seconds by which an edge and its users may differ about the time."""


def rewards(rng: random.Random, success: bool) -> list[tuple[float, float]]:
    """When the rewards of one decision are sent, in parts of its window, and what they say."""
    reward, chance = float(success), rng.random()
    if chance < NEVER:
        return []
    if chance < NEVER + LATE:
        return [(rng.uniform(1.05, 1.6), reward)]
    first = 0.0 if rng.random() < AT_ONCE else rng.uniform(0.0, 0.8)
    sent = [(first, reward)]
    while len(sent) < 3 and rng.random() < AGAIN:
        sent.append((rng.uniform(first, 1.3), 0.0 if rng.random() < OTHERWISE else reward))
    return sent


@dataclass(slots=True)
class Group:
    """The decisions of one group."""

    arm: int
    least: int = 0
    """Decisions of which its tally must speak."""
    most: int = 0
    """Decisions of which it may."""
    sure: set[int] = field(default_factory=set)
    """Places whose success counts."""
    possible: set[tuple[int, int]] = field(default_factory=set)
    """Places whose success may count, each with the life of the edge that took it: another life may count it again."""
    kept: int = 0
    """Successes that were saved when the edge was last started: it does not know of which places."""
    not_before: float = 0.0
    """No tally of it may be stored earlier."""

    def verdict(self, tally: Tally, stored: float) -> str:
        """What is wrong with a tally of this group; nothing if nothing is."""
        size = tally.trials
        sure = self.kept + sum(place < size for place in self.sure)
        possible = self.kept + sum(place < size for place, _ in self.possible)
        if size > self.most or tally.successes > possible:
            return "counted twice"
        if size < self.least or tally.successes < min(sure, size):
            return "lost"
        return "wrong" if tally.arm != self.arm or stored < self.not_before else ""


@dataclass
class Told:
    """What users know of one task at one site."""

    groups: dict[int, list[Group]] = field(default_factory=dict)
    """By number; several processes may have used one number, each for a group of its own."""
    unseen: int = 0
    """Decisions that may have been made, and nobody heard of them."""
    refused: list[str] = field(default_factory=list)
    """Tickets whose rewards were refused, and ought to have been taken."""

    def add(self, other: Told) -> None:
        """What was told at another edge of the same name."""
        for number, groups in other.groups.items():
            self.groups.setdefault(number, []).extend(groups)
        self.unseen += other.unseen
        self.refused += other.refused

    def verdict(self, number: int, tallies: Sequence[tuple[Tally, float]]) -> str:
        """What is wrong with the tallies of one number, and when each was stored; nothing if nothing is."""
        groups = [*self.groups.get(number, ())]
        if self.unseen:
            groups += [Group(tally.arm, most=self.unseen) for tally, _ in tallies]
        if len(groups) < len(tallies):
            return "counted twice"
        found = [
            [group.verdict(*tally) for group, tally in zip(chosen, tallies, strict=True)]
            for chosen in permutations(groups, len(tallies))
        ]
        return next(filter(None, min(found, key=lambda verdicts: sum(map(bool, verdicts)))), "")


@dataclass
class Visit:
    """A decision, and when its users asked and heard."""

    ticket: Ticket
    asked: float
    heard: float


class Notes:
    """What users take down of one task at one edge that they reach by HTTP. Times are in seconds since 1970."""

    def __init__(self, window: float) -> None:
        self.unseen = 0
        self._window = window
        self._groups: dict[tuple[str, int], Group] = {}
        """By process and number."""
        self._refused: list[str] = []

    def decided(self, visit: Visit) -> None:
        run, number, arm, place, _ = visit.ticket
        group = self._groups.setdefault((run, number), Group(arm))
        group.least = group.most = max(group.most, place + 1)
        group.not_before = max(group.not_before, visit.asked + self._window - SLACK)

    def rewarded(self, visit: Visit, reward: float, sent: float, heard: float, status: int, lives: set[int]) -> None:
        """A reward was answered with this status, or not at all (0), while the edge was in one of these lives."""
        run, number, _, place, _ = visit.ticket
        group = self._groups[run, number]
        in_time = heard < visit.asked + self._window - SLACK
        if reward and status in (0, 204) and sent < visit.heard + self._window + SLACK:
            group.possible.update((place, life) for life in lives)
            if status and in_time:
                group.sure.add(place)
        if status == 409 and in_time:
            self._refused.append(str(visit.ticket))

    def told(self, *, restarted: bool) -> Told:
        """What tallies may say. If the edge was started again, or has forgotten the task, nobody knows what it lost."""
        found = Told(unseen=self.unseen, refused=[] if restarted else list(self._refused))
        for (_, number), group in self._groups.items():
            least, sure = (0, set[int]()) if restarted else (group.least, group.sure)
            known = replace(group, least=least, most=group.most + self.unseen, sure=sure)
            found.groups.setdefault(number, []).append(known)
        return found
