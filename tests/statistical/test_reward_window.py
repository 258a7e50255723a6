"""A reward counts if it comes within the window of its own decision. Then means are right, whatever is reported sooner.

Counts are compared with their exact binomial law, each comparison at a false-alarm rate of 1e-7. There are 15 of DME
and 2 of Tally, and one of 60 sites at 1e-6, so all together raise a false alarm with probability 3e-6 at most. Seeds
are fixed. Other rules, written down here as negative controls, fail the same comparisons.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from scipy import stats

from outvote.core.decisions import Ticket
from outvote.core.errors import UnknownDecision
from outvote.core.messages import Tally, Vote
from outvote.core.protocols import Player
from outvote.core.tally.player import TallyPlayer
from outvote.core.tally.server import TallyServer
from outvote.core.task import Task
from outvote.core.votes.player import MedianPlayer

MEANS = (0.1, 0.3, 0.8)
WINDOW = 60.0
BETWEEN_EVENTS = 0.001
START = 1_700_000_000_000
FALSE_ALARM = 1e-7
SEED = 20

Report = Callable[[int, bool, random.Random], float | None]
"""Seconds until the outcome of an arm is reported; None is never."""


def only_successes(arm: int, success: bool, rng: random.Random) -> float | None:
    return 0.5 if success else None


def slow_successes(arm: int, success: bool, rng: random.Random) -> float | None:
    return 59.0 if success else 0.5


def slow_failures(arm: int, success: bool, rng: random.Random) -> float | None:
    return 0.5 if success else 59.0


def slow_variants(arm: int, success: bool, rng: random.Random) -> float | None:
    """The better a variant, the later its successes; failures never."""
    return (1.0, 30.0, 60.0)[arm] if success else None


def after_half_a_minute(arm: int, success: bool, rng: random.Random) -> float | None:
    """On average: successes come after Exp(30 s), failures never."""
    return rng.expovariate(1 / 30) if success else None


class Site:
    """A player with visitors, on a clock that goes on by the gap of an arm after each of its decisions."""

    def __init__(
        self, player: Player, means: Sequence[float], report: Report, gaps: Sequence[float], rng: random.Random
    ) -> None:
        self.now = START
        self._player, self._means, self._report, self._rng = player, means, report, rng
        self._gaps = [round(1000 * gap) for gap in gaps]
        self._decided = 0
        self._to_come: list[tuple[int, int, Ticket, float]] = []

    def step(self) -> list[Any]:
        """One decision, and all that is reported before the next; what the player sends meanwhile."""
        ticket = self._player.decide(self.now)
        success = self._rng.random() < self._means[ticket.arm]
        after = self._report(ticket.arm, success, self._rng)
        self._decided += 1
        if after is not None:
            heapq.heappush(self._to_come, (self.now + math.ceil(1000 * after), self._decided, ticket, float(success)))
        self.now += self._gaps[ticket.arm]
        sent: list[Any] = []
        while self._to_come and self._to_come[0][0] <= self.now:
            then, _, ticket, reward = heapq.heappop(self._to_come)
            sent += self._player.tick(then - 1)  # whatever was due before
            self._player.reward(ticket, reward, then)
        return sent + list(self._player.tick(self.now))


# ---- means, whatever is reported sooner


def first_epoch(kind: type[MedianPlayer], report: Report) -> tuple[MedianPlayer, list[int], list[float]]:
    """Run a site until its player's first epoch ends; its player, and the pulls and totals of that epoch."""
    task = Task(arms=len(MEANS), players=64, epsilon=0.5, delta=0.05, reward_window=WINDOW, protocol="dme")
    rng = random.Random(SEED)
    player = kind(task, "site", rng)
    site = Site(player, MEANS, report, [BETWEEN_EVENTS] * len(MEANS), rng)
    while player.epoch() == 1:
        site.step()
    epoch = player.snapshot()["epochs"][0]
    return player, epoch["pulls_before"], epoch["totals_before"]


def agrees(total: float, trials: int, mean: float) -> bool:
    """Whether so many successes can be of a binomial law with this mean."""
    return bool(stats.binomtest(round(total), trials, mean).pvalue > FALSE_ALARM)


@pytest.mark.parametrize("report", [only_successes, slow_successes, slow_failures, slow_variants])
def test_means_are_unbiased_whatever_is_reported_sooner(report: Report) -> None:
    player, pulls, totals = first_epoch(MedianPlayer, report)
    # ε_1 = .125, 4/ε_1² = 256; η_1 = .05^(1/32)/2 = .4553, 256·ln(9/.4553) = 763.9
    assert pulls == [764, 764, 764]
    assert all(map(agrees, totals, pulls, MEANS))
    # By Hoeffding the order of the arms is wrong with probability exp(−764·.2²) + exp(−764·.5²) = 5e-14 at most.
    assert player.candidates() == (1, 2)
    assert player.decisions.seen.late == player.decisions.seen.refused == [0, 0, 0]


def test_the_mean_is_that_of_what_is_reported_in_time() -> None:
    """Of Exp(30 s) a part of 1 − exp(−2) is within 60 seconds; the rest is late."""
    player, pulls, totals = first_epoch(MedianPlayer, after_half_a_minute)
    in_time = 1 - math.exp(-2)
    assert all(agrees(total, trials, mean * in_time) for total, trials, mean in zip(totals, pulls, MEANS, strict=True))
    assert not agrees(totals[2], pulls[2], MEANS[2])
    assert min(player.decisions.seen.late) > 0


class TooSoon(MedianPlayer):
    """A negative control: groups are counted when they have had their last decision."""

    def tick(self, now: int) -> Sequence[Vote]:
        return super().tick(now + 2 * self.decisions.window)

    def reward(self, ticket: Ticket, reward: float, now: int) -> None:
        with suppress(UnknownDecision):
            super().reward(ticket, reward, now)


@pytest.mark.parametrize("report", [only_successes, slow_successes, slow_variants])
def test_groups_that_close_before_their_window_ends_are_biased(report: Report) -> None:
    _, pulls, totals = first_epoch(TooSoon, report)
    assert not agrees(totals[2], pulls[2], MEANS[2])


def test_the_mean_of_what_was_answered_is_biased() -> None:
    """A negative control: 10,000 visitors for each arm, and those who never answer are left out."""
    rng = random.Random(SEED)
    for mean in MEANS:
        outcomes = [rng.random() < mean for _ in range(10_000)]
        answers = [success for success in outcomes if only_successes(0, success, rng) is not None]
        assert agrees(sum(outcomes), len(outcomes), mean)
        assert not agrees(sum(answers), len(answers), mean)


# ---- the window runs from each decision, not from the last one of its group


BETTER, WORSE = 0.6, 0.5
SHORT = 10.0
GAPS = (0.01, 30.0)
"""Many visitors come while the better arm is tried, few while the worse one is."""
SITES = 60


class FromTheLast(TallyPlayer):
    """A negative control: a reward counts until its group closes, one window after the group's last decision."""

    def reward(self, ticket: Ticket, reward: float, now: int) -> None:
        with suppress(UnknownDecision):
            super().reward(ticket._replace(at=now), reward, now)


def slow_shop(kind: type[TallyPlayer], seed: int) -> tuple[TallyPlayer, Site]:
    """One site that compares the better arm with the worse; who buys does so after Exp(30 s)."""
    task = Task(
        arms=2, players=1, epsilon=0, delta=0.05, protocol="tally", reward_window=SHORT, name=f"slow-shop-{seed}"
    )
    rng = random.Random(seed)
    player = kind(task, 0, rng)
    return player, Site(player, (BETTER, WORSE), after_half_a_minute, GAPS, rng)


def tallied(kind: type[TallyPlayer]) -> list[tuple[int, int]]:
    """Successes and events of each arm, in all that a site sends of 20,000 decisions."""
    _, site = slow_shop(kind, SEED)
    tallies: list[Tally] = [tally for _ in range(20_000) for tally in site.step()]
    of_arm = [[tally for tally in tallies if tally.arm == arm] for arm in range(2)]
    return [(sum(each.successes for each in some), sum(each.trials for each in some)) for some in of_arm]


def wrong_winners(kind: type[TallyPlayer]) -> int:
    """At so many of 60 sites the worse arm wins."""
    wrong = 0
    for seed in range(SITES):
        player, site = slow_shop(kind, seed)
        server = TallyServer(player.task)
        while not server.finished:
            for tally in site.step():
                server.receive(player.player, tally, site.now)
        wrong += server.winner == 1
    return wrong


def test_each_decision_has_its_whole_window_and_no_more() -> None:
    in_time = 1 - math.exp(-SHORT / 30)
    better, worse = tallied(TallyPlayer)
    assert agrees(*better, BETTER * in_time)
    assert agrees(*worse, WORSE * in_time)


def test_a_window_from_the_last_decision_of_a_group_is_longer_for_some_arms() -> None:
    in_time = 1 - math.exp(-SHORT / 30)
    better, worse = tallied(FromTheLast)
    assert better[0] / better[1] < worse[0] / worse[1]
    assert not agrees(*worse, WORSE * in_time)


def test_the_better_arm_wins_however_fast_visitors_come() -> None:
    """The worse arm wins at a site with probability δ = .05 at most; an exact binomial test at 1e-6."""
    assert stats.binomtest(wrong_winners(TallyPlayer), SITES, 0.05, alternative="greater").pvalue > 1e-6


def test_a_window_from_the_last_decision_of_a_group_loses_the_better_arm() -> None:
    assert wrong_winners(FromTheLast) == SITES
