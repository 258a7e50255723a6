"""Blocks keep δ in worlds in which nothing is alike, and the tests would notice if they did not.

Comparisons with a binomial law raise a false alarm with probability 1e-6 at most each, those of two samples with 1e-6.
Seeds are fixed. `make validity` has all scenarios, with more fleets.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from benchmarks.validity.scenarios import CONTROLS, SCENARIOS
from benchmarks.validity.worlds import World, bets, log_factors, play
from core.blocks.block_players import Unshuffled
from outvote.core.blocks import bets as core_bets
from outvote.core.blocks.player import BlockPlayer
from outvote.core.blocks.server import BlockServer
from outvote.core.task import Task

ALARM = 1e-6
FLEETS = 150


def too_many(wrong: int, fleets: int, delta: float) -> bool:
    return bool(stats.binom.sf(wrong - 1, fleets, delta) < ALARM)


def most_wrong(name: str, delta: float, fleets: int = FLEETS) -> int:
    """In how many fleets the arm that fares worst is refuted while it is at least as good as every other."""
    scenario = {**SCENARIOS, **CONTROLS}[name]
    return int(np.sum([scenario.play(delta, seed).wrong for seed in range(fleets)], axis=0).max())


# ---- in any world


@pytest.mark.parametrize("delta", [0.05, 0.2, 0.5])
@pytest.mark.parametrize(
    "name",
    [
        "two of three equal",
        "sites at .1 and .9, two of three equal",
        "sites that differ in ranking",
        "a fast cycle of ±.3",
        "quiet and busy sites, blocks closed by age",
        "the best changes halfway",
        "visitors of 20 visits at .1 or .9",
        "blocks arrive in any order",
        "one arm slows the next decision threefold",
    ],
)
def test_an_arm_that_is_as_good_is_lost_no_more_often_than_delta(name: str, delta: float) -> None:
    assert not too_many(most_wrong(name, delta), FLEETS, delta)


@pytest.mark.parametrize(
    ("name", "least", "fleets"),
    [
        ("blocks that are not shuffled", 0.4, 100),
        ("the same, in blocks of 3", 0.4, 100),
        ("failed on the first arm, back at once with +.2", 0.11, 500),
        ("arms drawn among the arms left", 0.1, 500),
    ],
)
def test_one_thing_that_is_wrong_is_found_out(name: str, least: float, fleets: int) -> None:
    """Negative controls: what the test above would see."""
    wrong = most_wrong(name, 0.05, fleets)
    assert too_many(wrong, fleets, 0.05)
    assert wrong >= least * fleets


# ---- the simulation and the core


def test_the_simulation_bets_as_the_core_does() -> None:
    rng = random.Random(3)
    first, second = np.empty(14), np.empty(14)
    for decided, other in [(1, 1), (3, 3), (31, 31), (127, 127), (5, 5), (3, 9), (20, 11), (127, 90)] * 20:
        own, others = rng.randint(0, decided), rng.randint(0, other)
        log_factors(decided, own, other, others, bets(), first, second)
        assert [first, second] == pytest.approx(np.array(core_bets.log_factors(decided, own, other, others)), abs=1e-9)


def by_core(
    means: Sequence[float], *, sites: int, floor: int, delta: float, age: float, horizon: int, rng: random.Random
) -> tuple[int, list[bool]]:
    """A fleet of the core's own objects, one decision a second: when it decided, and whom it refuted."""
    task = Task(
        arms=len(means), players=sites, protocol="blocks", delta=delta, floor=floor, parameters={"block_age": age}
    )
    players = [BlockPlayer(task, player, rng) for player in range(sites)]
    server = BlockServer(task)
    for draw in range(1, horizon + 1):
        number, now = rng.randrange(sites), 1000 * draw
        player = players[number]
        blocks = list(player.tick(now))
        ticket = player.decide(now)
        player.reward(ticket, float(rng.random() < means[ticket.arm]), now)
        for block in blocks + list(player.tick(now)):
            for elimination in server.receive(number, block, now):
                for each in players:
                    each.receive(elimination)
        if server.finished:
            break
    return draw if server.finished else -1, [arm not in server.contenders for arm in range(len(means))]


@pytest.mark.parametrize(
    ("means", "sites", "floor", "age"),
    [
        ((0.6, 0.4), 3, 1, 1e6),
        ((0.5, 0.3, 0.2), 4, 3, 1e6),
        ((0.5, 0.3, 0.3), 5, 1, 60.0),
        ((0.6, 0.4, 0.4, 0.3, 0.2, 0.1, 0.1), 6, 1, 90.0),
    ],
)
def test_the_simulation_decides_as_the_core_does(means: tuple[float, ...], sites: int, floor: int, age: float) -> None:
    rng, generator = random.Random(12), np.random.default_rng(13)
    fleets, many, horizon = 150, 1500, 1_200
    core = [
        by_core(means, sites=sites, floor=floor, delta=0.2, age=age, horizon=horizon, rng=rng) for _ in range(fleets)
    ]
    world = World(age=age, floor=floor)
    fast = [
        play(np.tile(means, (sites, 1)), np.ones(sites), world, delta=0.2, horizon=horizon, rng=generator)
        for _ in range(many)
    ]
    ended = [draw if draw >= 0 else horizon + 1 for draw, _ in core]
    decided = [course.decided if course.decided >= 0 else horizon + 1 for course in fast]
    assert stats.ks_2samp(ended, decided).pvalue > ALARM
    for arm in range(len(means)):
        table = [
            [sum(refuted[arm] for _, refuted in core), sum(not refuted[arm] for _, refuted in core)],
            [sum(course.refuted[arm] for course in fast), sum(not course.refuted[arm] for course in fast)],
        ]
        assert stats.fisher_exact(table).pvalue > ALARM


# ---- the core by itself


def visited(shuffle: random.Random, *, fleets: int) -> int:
    """Two equal arms, visitors of 40 visits who succeed nearly always or hardly ever: how often the first is lost."""
    task, rng = Task(arms=2, players=4, protocol="blocks", delta=0.05, floor=31), random.Random(1)
    lost = 0
    for _ in range(fleets):
        players = [BlockPlayer(task, player, shuffle) for player in range(4)]
        server = BlockServer(task)
        for visitor in range(100):
            number, mean = rng.randrange(4), rng.choice([0.1, 0.9])
            for now in range(40 * visitor, 40 * visitor + 40):
                ticket = players[number].decide(now)
                players[number].reward(ticket, float(rng.random() < mean), now)
                for block in players[number].tick(now):
                    server.receive(number, block, now)
            if server.finished:
                break
        lost += 0 not in server.contenders
    return lost


def test_the_cores_own_fleet_keeps_delta_and_would_not_if_blocks_were_not_shuffled() -> None:
    fleets = 80
    assert not too_many(visited(random.Random(2), fleets=fleets), fleets, 0.05)
    assert too_many(visited(Unshuffled(2), fleets=fleets), fleets, 0.05)
