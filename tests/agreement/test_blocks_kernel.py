"""The parts of the kernel of `blocks` against the core's: what blocks pay and cost, and how the server judges."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import pytest

from outvote.core.blocks import sizes
from outvote.core.blocks.bets import STAKES, log_factors
from outvote.core.blocks.code import BlockCodebook
from outvote.core.blocks.server import BlockServer
from outvote.core.errors import InvalidSettings
from outvote.core.messages import Block
from outvote.simulation.arrays import Integers
from outvote.simulation.compiled_blocks import new_fleet, new_room, record, rules, tables
from outvote.simulation.kernels import blocks as kernel
from outvote.simulation.settings import Settings, read_settings


def of(**options: Any) -> Settings:
    return read_settings(protocol="blocks", engine="fast", trials=1, **options)


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
    settings = of(means=(0.5,) * arms, players=6, floor=1, delta=1e-3)
    server, fleet, room, out = BlockServer(settings.task), new_fleet(arms), new_room(arms), record(settings, 1)
    kernel.reset(fleet, rules(settings), 6)
    sent: set[int] = set()
    number = heard = 0
    while not server.finished:
        number += 1
        size = random.choice((1, 3, 7, 15))
        counts = {arm: (size, size) for arm in server.remaining}
        for arm in counts:
            n = size if number % 3 else random.choice((0, random.randint(1, 20)))
            counts[arm] = (n, sum(random.random() < 0.7 - 0.05 * arm for _ in range(n)))
        if sum(n > 0 for n, _ in counts.values()) < 2:
            continue
        player = random.randrange(6)
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
        heard += len(announced)
        assert fleet.numbers[kernel.ANNOUNCED] == heard
        assert np.flatnonzero(fleet.fell == kernel.UNANNOUNCED).tolist() == list(server.remaining)
        if announced:
            fallen = [arm for arm, draw in out.eliminations[0].tolist() if draw == number]
            assert fallen == list(announced[0].arms)
    assert number > 5


def columns(counts: list[tuple[int, int]]) -> tuple[Integers, Integers]:
    decided, successes = np.array(counts).T
    return decided.copy(), successes.copy()


@pytest.mark.parametrize(
    "world",
    [
        {"cycle": (0.05, 100)},
        {"jumps": (0.05, 100)},
        {"drift_to": (0.5, 0.6)},
        {"swap": 10},
        {"drop": 0.1},
        {"rewards": "beta"},
    ],
)
def test_it_knows_no_world_that_it_was_not_written_for(world: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings, match="'fast' cannot run"):
        of(means=(0.6, 0.5), **world)
