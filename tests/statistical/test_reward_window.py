"""A reward window keeps means unbiased when good and bad outcomes are reported at different speed, or one never is.

Each test compares counts with their exact binomial law. There are two windowed cases of three arms; each comparison
raises a false alarm with probability 1e-7 at most, so all of them together with 6e-7. The seed is fixed.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass

import pytest
from scipy import stats

from outvote.core.task import Task
from outvote.core.votes.player import MedianPlayer

MEANS = (0.1, 0.3, 0.8)
WINDOW = 60.0
BETWEEN_EVENTS = 0.001
FALSE_ALARM = 1e-7
SEED = 20


@dataclass(frozen=True)
class Reporting:
    """Seconds until an outcome is reported; None is never."""

    success: float | None
    failure: float | None


ONLY_SUCCESSES = Reporting(success=0.5, failure=None)
SLOW_SUCCESSES = Reporting(success=59.0, failure=0.5)


def first_epoch(reporting: Reporting, reward_window: float | None) -> tuple[MedianPlayer, list[int], list[float]]:
    """Run a site until its player's first epoch ends; its player, and the pulls and totals of that epoch."""
    task = Task(arms=len(MEANS), players=64, epsilon=0.5, delta=0.05, reward_window=reward_window, protocol="dme")
    player = MedianPlayer(task, "site")
    rng = random.Random(SEED)
    agenda: list[tuple[float, int, str, int, int]] = []  # time, order, what, arm, ticket
    event = 0
    while player.epoch() == 1:
        now = event * BETWEEN_EVENTS
        if agenda and agenda[0][0] <= now:
            _, _, what, arm, ticket = heapq.heappop(agenda)
            if what == "close":
                player.close(ticket)
            else:
                player.reward(arm, 1.0 if what == "success" else 0.0, ticket=ticket)
            continue
        arm, ticket = player.decide()
        success = rng.random() < MEANS[arm]
        delay = reporting.success if success else reporting.failure
        if delay is not None:
            heapq.heappush(agenda, (now + delay, event, "success" if success else "failure", arm, ticket))
        for full in player.take_full():
            heapq.heappush(agenda, (now + WINDOW, event, "close", arm, full))
        event += 1
    epoch = player.snapshot()["epochs"][0]
    return player, epoch["pulls_before"], epoch["totals_before"]


@pytest.mark.parametrize("reporting", [ONLY_SUCCESSES, SLOW_SUCCESSES], ids=["only successes", "slow successes"])
def test_with_a_window_means_are_unbiased_whatever_is_reported_sooner(reporting: Reporting) -> None:
    player, pulls, totals = first_epoch(reporting, WINDOW)
    # ε_1 = .125, 4/ε_1² = 256; η_1 = .05^(1/32)/2 = .4553, 256·ln(9/.4553) = 763.9
    assert pulls == [764, 764, 764]
    for mean, trials, total in zip(MEANS, pulls, totals, strict=True):
        assert stats.binomtest(round(total), trials, mean).pvalue > FALSE_ALARM
    # By Hoeffding the order of the arms is wrong with probability exp(−764·.2²) + exp(−764·.5²) = 5e-14 at most.
    assert player.candidates() == (1, 2)
    assert player.dropped_rewards == 0


def test_without_a_window_only_successes_are_seen_and_all_arms_look_perfect() -> None:
    player, pulls, totals = first_epoch(ONLY_SUCCESSES, None)
    assert [total / trials for total, trials in zip(totals, pulls, strict=True)] == [1.0, 1.0, 1.0]
    assert player.status == "tied"


def test_without_a_window_what_comes_slowly_is_missed() -> None:
    _, pulls, totals = first_epoch(SLOW_SUCCESSES, None)
    # The epoch is over before the first success is reported, though it would be within the window.
    assert min(pulls) >= 764
    assert totals == [0.0, 0.0, 0.0]
