"""Lifts hold for all pairs and at all looks together, whatever the fleet's own adaptive course.

Each test says its false-alarm rate; together they raise a false alarm with probability 4e-6 at most. Seeds are fixed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

import pytest
from scipy import stats

from outvote.core import protocols
from outvote.core.messages import Tally
from outvote.core.tally import server as tally_server
from outvote.core.tally.confidence import Outbid
from outvote.core.tally.lift import Lift, lift
from outvote.core.tally.server import TallyServer
from outvote.core.task import Task


def holds(found: Lift, p: float, q: float) -> bool:
    """Whether both intervals hold the true lift."""
    low, high = found.difference_interval
    least, most = found.relative_interval
    return low <= p - q <= high and least <= p / q - 1 and (most is None or p / q - 1 <= most)


def a_lift_misses(task: Task, means: Sequence[float], rng: random.Random, tallies: int, every: int) -> bool:
    """Whether, in a fleet that reports so many tallies, the lift of any pair ever missed.

    It is looked at after each announcement and after every so many tallies, at the pairs that have changed.
    """
    server = protocols.server(task)
    assert isinstance(server, TallyServer)
    players = [protocols.player(task, number, rng=rng) for number in range(task.players)]
    sent, changed = 0, set[int]()
    while sent < tallies and not server.finished:
        player = rng.choice(players)
        ticket = player.decide(0)
        player.reward(ticket, float(rng.random() < means[ticket.arm]), 0)
        for tally in player.tick(0):
            assert isinstance(tally, Tally)
            sent += 1
            changed.add(tally.arm)
            announced = server.receive(player.player, tally, 0)
            for elimination in announced:
                for each in players:
                    each.receive(elimination)
            if announced or sent % every == 0:
                for one, two in combinations(range(len(means)), 2):
                    if changed & {one, two} and not holds(server.lift(one, two), means[one], means[two]):
                        return True
                changed.clear()
    return False


def misses(task: Task, means: Sequence[float], fleets: int, tallies: int, every: int, seed: int) -> int:
    rng = random.Random(seed)
    return sum(a_lift_misses(task, means, rng, tallies, every) for _ in range(fleets))


@pytest.mark.parametrize("means", [(0.5, 0.45, 0.3), (0.1, 0.05, 0.05), (0.99, 0.9, 0.6)])
def test_lifts_miss_at_any_look_no_more_often_than_delta(means: tuple[float, ...]) -> None:
    """100 fleets with δ = .3, a look at every second tally; three exact binomial tests at 1e-6. Seed 51."""
    task = Task(arms=3, players=3, epsilon=0, delta=0.3, protocol="tally")
    missed = misses(task, means, fleets=100, tallies=40, every=2, seed=51)
    assert stats.binomtest(missed, 100, task.delta, alternative="greater").pvalue > 1e-6


def test_noisy_lifts_miss_at_any_look_no_more_often_than_delta() -> None:
    """40 private fleets with δ = .3, a look at every second tally; an exact binomial test at 1e-6. Seed 52."""
    task = Task(arms=2, players=3, epsilon=0, delta=0.3, protocol="tally", privacy_budget=1.0, floor=7)
    missed = misses(task, (0.1, 0.4), fleets=40, tallies=24, every=2, seed=52)
    assert stats.binomtest(missed, 40, task.delta, alternative="greater").pvalue > 1e-6


@pytest.mark.parametrize("budget", [None, 1.0])
def test_with_far_too_small_a_limit_lifts_would_miss_too_often(
    budget: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests above can fail: with a limit of less than one standard deviation they would. Seeds 51 and 52."""

    def careless(arm: Outbid, rival: Outbid, log_limit: float) -> Lift:
        return lift(arm, rival, arm.least + rival.least + 0.25)

    monkeypatch.setattr(tally_server, "lift", careless)
    task = Task(arms=2, players=3, epsilon=0, delta=0.3, protocol="tally", privacy_budget=budget, floor=7)
    missed = misses(task, (0.1, 0.4), fleets=40, tallies=24, every=2, seed=51 if budget is None else 52)
    assert stats.binomtest(missed, 40, task.delta, alternative="greater").pvalue < 1e-6
