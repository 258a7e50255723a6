"""The kernel of `blocks` against the core's own objects: its parts equal in value, its trials equal in law.

Comparisons and alarms as in `laws`: a test of two laws makes at most 25, at 1e-4 / 3000 each, so it gives a false alarm
with probability below 1e-6. Seeds are fixed. `test_power` shows what differences the tests see.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import pytest
from scipy import stats

from outvote.core.blocks import sizes
from outvote.core.blocks.bets import STAKES, log_factors
from outvote.core.blocks.code import BlockCodebook
from outvote.core.blocks.server import BlockServer
from outvote.core.messages import Block
from outvote.simulation.arrays import Integers
from outvote.simulation.compiled_blocks import new_fleet, new_room, record, rules, run_blocks, tables
from outvote.simulation.kernels import blocks as kernel
from outvote.simulation.settings import Settings, read_settings
from outvote.simulation.stepwise import run_trial
from outvote.simulation.streams import generator
from outvote.simulation.trials import Trial

from .laws import ALARM, assert_same_law, p_values, seeds

TRIALS = 250
"""Of the core: with 6,000 of the kernel they tell two laws apart that differ by .2 somewhere (Kolmogorov and Smirnov's
distance at `ALARM`)."""
SITES = (0.9, 0.5, 0.3)

CORNERS: dict[str, dict[str, Any]] = {
    "two arms": dict(means=(0.8, 0.3), players=3, horizon=250),
    "three arms": dict(means=SITES, players=4, horizon=300),
    "seven arms": dict(means=(0.95, 0.8, 0.6, 0.5, 0.3, 0.2, 0.05), players=5, horizon=1_000),
    "twelve arms": dict(means=(0.95, *(0.3,) * 10, 0.05), players=3, horizon=1_000),
    "one player": dict(means=(0.9, 0.5, 0.2), players=1, horizon=300),
    "more players than arms": dict(means=(0.9, 0.4), players=30, horizon=500),
    "dead players": dict(means=(0.9, 0.5, 0.2), players=6, dead=3, horizon=300),
    "uneven": dict(means=(0.9, 0.4, 0.1), players=4, activity=(10, 3, 0, 1), horizon=400),
    "80-20": dict(means=(0.9, 0.5, 0.3, 0.1), players=10, activity="80-20", horizon=600),
    "equal arms": dict(means=(0.5, 0.5, 0.5), players=3, horizon=400),
    "certain rewards": dict(means=(1.0, 1.0, 0.0, 0.5), players=3, horizon=300),
    "more players than draws": dict(means=(0.95, 0.5, 0.1), players=150, horizon=900, grid=5),
    "a floor of one": dict(means=SITES, players=4, floor=1, horizon=250),
    "a floor between the rungs": dict(means=SITES, players=4, floor=5, horizon=400),
    "a high floor": dict(means=(0.9, 0.4, 0.3), players=3, floor=31, horizon=900),
    "sizes grow": dict(means=(0.6, 0.5), players=1, floor=2, horizon=900, trials=150),
    "one grid point": dict(means=SITES, players=5, horizon=300, grid=1),
    "every draw a grid point": dict(means=(0.9, 0.3), players=4, horizon=60, grid=60),
    "ε": dict(means=(0.9, 0.8, 0.2), players=4, epsilon=0.2, horizon=400),
    "an age in draws": dict(means=(0.8, 0.5, 0.3), players=6, floor=3, horizon=500, parameters={"block_age": 0.05}),
    "levels differ by site": dict(means=SITES, players=8, horizon=500, site_spread=1.5),
    "arms differ by site": dict(means=(0.8, 0.5, 0.4), players=8, horizon=500, spread=1.0, site_spread=0.5),
    "a row for each site": dict(means=((0.9, 0.5, 0.1), (0.2, 0.3, 0.1), (0.8, 0.1, 1.0)), players=3, horizon=500),
    "visitors": dict(means=(0.8, 0.5, 0.3), players=4, horizon=400, visits=8, visitor_spread=2.0),
    "visitors of one visit": dict(means=(0.8, 0.5, 0.3), players=4, horizon=400, visits=1, visitor_spread=2.0),
    "visitors who prefer nothing": dict(means=SITES, players=4, horizon=300, visits=5),
    "quiet sites": dict(means=(0.8, 0.5, 0.4), players=8, horizon=600, per_day=9),
    "quiet and unlike sites": dict(means=(0.9, 0.3), players=10, activity="80-20", horizon=600, per_day=12, floor=2),
    "busy days": dict(means=SITES, players=4, horizon=300, per_day=100_000),
    "a week of one site": dict(means=(0.6, 0.5), players=1, horizon=900, per_day=150, trials=150),
    "everything at once": dict(
        means=(0.8, 0.5, 0.4, 0.3), players=6, activity=(5, 1, 1, 2, 2, 0), horizon=900, per_day=25,
        site_spread=1.0, spread=0.2, visits=3, visitor_spread=1.0,
    ),
}  # fmt: skip


def of(**options: Any) -> Settings:
    chosen = {"protocol": "blocks", "delta": 0.2, "grid": 4, "trials": TRIALS, "engine": "fast", **options}
    return read_settings(**chosen)


def by_core(settings: Settings, key: int) -> list[Trial]:
    return [run_trial(settings, seed, lambda draws: None) for seed in seeds(settings.trials, key)]


# ---- equal in value


@pytest.mark.parametrize("decided", [1, 2, 3, 7, 12, 31])
def test_what_equal_counts_pay_is_what_the_core_says(decided: int) -> None:
    found = tables(2)
    kernel.fill(found, decided)
    for suspect in range(decided + 1):
        for rival in range(decided + 1):
            at = kernel.place_of(decided, suspect, rival)
            paid = np.log(found.factors[at : at + len(STAKES)])
            np.testing.assert_allclose(paid, log_factors(decided, suspect, decided, rival)[0], rtol=0, atol=1e-10)


def test_what_the_largest_blocks_pay_is_what_the_core_says() -> None:
    found, random = tables(2), Random(1)
    kernel.fill(found, sizes.LARGEST)
    for _ in range(100):
        suspect, rival = random.randrange(sizes.LARGEST + 1), random.randrange(sizes.LARGEST + 1)
        at = kernel.place_of(sizes.LARGEST, suspect, rival)
        paid = np.log(found.factors[at : at + len(STAKES)])
        exact = log_factors(sizes.LARGEST, suspect, sizes.LARGEST, rival)[0]
        np.testing.assert_allclose(paid, exact, rtol=0, atol=1e-9)


def test_what_unequal_counts_pay_is_what_the_core_says() -> None:
    found, random = tables(2), Random(2)
    for _ in range(200):
        n, m = random.sample(range(1, random.choice((5, 20, 60)) + 2), 2)
        a, b = random.randrange(n + 1), random.randrange(m + 1)
        kernel.pay_unequal(found, n, a, m, b)
        np.testing.assert_allclose(np.log(found.unequal), log_factors(n, a, m, b)[0], rtol=0, atol=1e-10)


def test_sizes_are_those_of_the_core() -> None:
    for number in [*range(300), 1 << 40]:
        for floor in (1, 3, 5, 31, 127):
            for cap in sizes.RUNGS:
                assert kernel.planned(number, floor, cap) == sizes.planned(number, floor, cap)
    for size in range(1, sizes.LARGEST + 1):
        assert kernel.below(size) == sizes.below(size)
        assert kernel.above(size) == sizes.above(size)


@pytest.mark.parametrize("kind", ["due", "planned", "unplanned"])
def test_bits_are_those_of_the_code(kind: str) -> None:
    random = Random(3)
    for _ in range(1_000):
        arms, floor = random.randint(2, 12), random.choice((1, 3, 5, 31))
        settings = of(means=(0.5,) * arms, players=2, floor=floor)
        number, left = random.randrange(200), random.randint(2, arms)
        size = sizes.planned(number, floor, sizes.LARGEST if kind == "due" else random.choice(sizes.RUNGS))
        decided = [size] * left
        if kind == "unplanned":
            decided = [random.choice((0, random.randint(floor, sizes.LARGEST))) for _ in range(left)]
            decided[:2] = random.choices(range(floor, sizes.LARGEST + 1), k=2)
        mean = random.choice((0.0, 0.02, 0.3, 1.0))
        counts = [(n, sum(random.random() < mean for _ in range(n))) for n in decided]
        block = Block(number, random.randrange(arms), tuple(counts))
        found = kernel.block_bits(tables(arms).log_factorials, rules(settings), number, left, *columns(counts))
        assert found == len(BlockCodebook(settings.task).encode(block))


@pytest.mark.parametrize("arms", [2, 4, 9])
def test_the_server_judges_the_same_blocks_alike(arms: int) -> None:
    """Blocks of equal and of unequal counts, until one arm is left: the same evidence, the same announcements."""
    random = Random(arms)
    settings = of(means=(0.5,) * arms, players=6, floor=1)
    server, fleet, room, out = BlockServer(settings.task), new_fleet(arms), new_room(arms), record(settings, 1)
    kernel.reset(fleet, rules(settings), 6)
    sent: set[int] = set()
    number = 0
    while not server.finished:
        number += 1
        size = random.choice((1, 3, 7, 15))
        counts = {arm: (size, size) for arm in server.remaining}
        for arm in counts:
            n = size if number % 3 else random.choice((0, random.randint(1, 20)))
            counts[arm] = (n, sum(random.random() < 0.7 - 0.05 * arm for _ in range(n)))
        if sum(n > 0 for n, _ in counts.values()) < 2:
            continue
        player, heard = random.randrange(6), len(server._history) - 1
        announced = server.receive(player, Block(number, heard, tuple(counts.values())), number)
        fleet.numbers[kernel.WAITING] += 1
        fleet.numbers[kernel.REPORTED] += player not in sent
        sent.add(player)
        decided, successes = columns([counts.get(arm, (0, 0)) for arm in range(arms)])
        kernel.bet(fleet, tables(arms), decided, successes)
        for arm in server.contenders:
            assert math.log(fleet.means[arm].sum() / (arms - 1)) == pytest.approx(server.log_wealth(arm), abs=1e-9)
        kernel.refute(fleet, settings.task.delta, decided, room.against)
        kernel.announce(fleet, out, 0, number)
        assert np.flatnonzero(fleet.contending).tolist() == list(server.contenders)
        assert fleet.numbers[kernel.ANNOUNCED] == len(server._history) - 1
        assert np.flatnonzero(fleet.fell == kernel.UNANNOUNCED).tolist() == list(server.remaining)
        if announced:
            fallen = [arm for arm, draw in out.eliminations[0].tolist() if draw == number]
            assert fallen == list(announced[0].arms)
    assert number > 5


def columns(counts: list[tuple[int, int]]) -> tuple[Integers, Integers]:
    decided, successes = np.array(counts).T
    return decided.copy(), successes.copy()


# ---- equal in law


@pytest.mark.parametrize("corner", CORNERS)
def test_the_kernel_equals_core(corner: str) -> None:
    settings = of(**CORNERS[corner])
    fast, core = run_blocks(settings, 6_000, generator(81)), by_core(settings, 82)
    assert_same_law(fast, core)
    table = [[sum(trial.lost == lost for trial in trials) for lost in (False, True)] for trials in (fast, core)]
    assert stats.fisher_exact(table).pvalue >= ALARM


@pytest.mark.parametrize(("problem", "activity"), [(1, "uniform"), (2, "80-20")])
def test_the_kernel_equals_core_in_the_papers_settings(problem: int, activity: str) -> None:
    settings = of(problem=problem, activity=activity, players=64, delta=0.05, horizon=4_000, grid=10, trials=100)
    assert_same_law(run_blocks(settings, 2_000, generator(83)), by_core(settings, 84))


def test_corner_cases_reach_what_they_are_for() -> None:
    def trials(corner: str) -> list[Trial]:
        return run_blocks(of(**CORNERS[corner]), 500, generator(85))

    def share(corner: str, name: str) -> float:
        return float(np.mean([getattr(trial, name) not in (None, False) for trial in trials(corner)]))

    for corner in ("seven arms", "twelve arms", "sizes grow", "levels differ by site", "visitors", "quiet sites"):
        assert share(corner, "finished") > 0.2
    for corner in ("a row for each site", "visitors", "equal arms"):
        assert 0.001 < share(corner, "lost") < 0.5
    assert share("ε", "solved") > 0.3
    assert share("dead players", "all_finished") == 0
    assert any(trial.finished != trial.all_finished for trial in trials("80-20"))
    plain = of(**{**CORNERS["quiet sites"], "per_day": None})
    often = np.mean([trial.costs.up_messages for trial in run_blocks(plain, 500, generator(85))])
    assert np.mean([trial.costs.up_messages for trial in trials("quiet sites")]) > 1.1 * often


FLAWS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "best mean off by .08": ({}, {"means": (0.72, 0.5, 0.3)}),
    "a floor of two more": ({}, {"floor": 5}),
    "a looser threshold": ({}, {"delta": 0.4}),
    "levels alike": ({"site_spread": 1.5}, {}),
    "visitors of half as many visits": ({"visits": 10, "visitor_spread": 2.0}, {"visits": 5}),
    "days of twice the decisions": ({"per_day": 9}, {"per_day": 18}),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_power(flaw: str) -> None:
    """Kernels that differ by so little are told apart by twice as many trials of the core."""
    world, wrong = FLAWS[flaw]
    right: dict[str, Any] = dict(means=(0.8, 0.5, 0.3), players=6, horizon=500, floor=3)
    core = by_core(of(**right, **world, trials=2 * TRIALS), 86)
    known = {} if flaw == "levels alike" else world
    fast = run_blocks(of(**{**right, **known, **wrong}), 6_000, generator(87))
    assert min(p_values(fast, core).values()) < ALARM
