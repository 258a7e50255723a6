"""Blocks whatever happens: what is expected of them, exactly; and whatever the network does to them.

Expectations are those of `benchmarks.validity`, by enumeration with fractions: the small cases. `make validity` has the
large ones.
"""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from amounts import examples
from benchmarks.validity.enumerations import ENUMERATIONS, among_arms, largest
from benchmarks.validity.exact import drawn
from outvote.core.blocks.code import BlockCodebook
from outvote.core.blocks.player import BlockPlayer
from outvote.core.blocks.server import BlockServer
from outvote.core.errors import MalformedMessage
from outvote.core.messages import Block, Elimination
from outvote.core.task import Task

from .tasks import SEEDS


def new_task(arms: int, *, floor: int = 1, **options: Any) -> Task:
    fields: dict[str, Any] = {"players": 3, "delta": 0.5, "protocol": "blocks"}
    return Task(arms=arms, floor=floor, **{**fields, **options})


# ---- what is expected, exactly


@pytest.mark.parametrize("name", ENUMERATIONS)
def test_no_block_pays_more_than_its_bound_in_expectation(name: str) -> None:
    """E G ≤ (1 − βτ)^m in all small populations, and there are some that reach it."""
    for case in ENUMERATIONS[name].small:
        count, most = largest(name, case)
        assert count > 0
        assert most == 1


def test_drawing_among_the_arms_left_is_found_out() -> None:
    """The negative control: arms that are equal in every unit, and a level that moves within the block."""
    assert among_arms(3) > Fraction(14, 10)
    assert among_arms(7) > 3


def shares(successes: int, size: int, arms: int) -> list[tuple[tuple[int, ...], Fraction]]:
    """How the successes of a block with equal arms may be shared among them, and how likely."""
    ways = list(drawn([size] * arms, successes))
    return [(counts, Fraction(count, sum(count for _, count in ways))) for counts, count in ways]


@pytest.mark.parametrize(
    ("arms", "size", "successes", "delta"),
    [
        (2, 1, (1, 1, 1, 1, 1, 1, 1, 1), 0.6),
        (2, 3, (3, 2, 3, 4), 0.5),
        (2, 3, (3, 3, 3, 3), 0.3),
        (3, 1, (1, 2, 1, 2), 0.7),
        (3, 3, (4, 5), 0.5),
    ],
)
def test_of_equal_arms_each_is_refuted_with_probability_delta_at_most(
    arms: int, size: int, successes: tuple[int, ...], delta: float
) -> None:
    """By the core's own server, over all that can happen. Every unit has the same outcome with each arm."""
    task = new_task(arms, floor=1, delta=delta)

    def follow(server: BlockServer, number: int, chance: Fraction) -> list[Fraction]:
        refuted = [chance * (arm not in server.contenders) for arm in range(arms)]
        if number == len(successes) or server.finished:
            return refuted
        refuted = [Fraction(0)] * arms
        snapshot = server.snapshot()
        heard = len(snapshot["history"]) - 1
        for counts, share in shares(successes[number], size, arms):
            after = BlockServer.restore(task, snapshot)
            told = tuple((size, counts[arm]) for arm in after.remaining)
            after.receive(0, Block(number, heard, told), 0)
            refuted = [a + b for a, b in zip(refuted, follow(after, number + 1, chance * share), strict=True)]
        return refuted

    refuted = follow(BlockServer(task), 0, Fraction(1))
    assert len(set(refuted)) == 1  # the arms are equal
    assert 0 < refuted[0] <= delta


# ---- the code


@st.composite
def blocks(draw: st.DrawFn) -> tuple[Task, list[int], Block]:
    arms, floor = draw(st.integers(2, 9)), draw(st.sampled_from([1, 2, 3, 31]))
    left = sorted(draw(st.sets(st.integers(2, arms), min_size=1)), reverse=True)
    left = [arms, *(each for each in left if each < arms)]
    heard = draw(st.integers(0, min(len(left), 2 ** math.ceil(math.log2(arms))) - 1))
    one = st.integers(floor, 255)
    sizes = draw(
        st.lists(st.just(0) | one, min_size=left[heard], max_size=left[heard]).filter(lambda s: sum(map(bool, s)) > 1)
        | st.builds(lambda size: [size] * left[heard], one | st.sampled_from([3, 7, 15, 31, 63, 127]))
    )
    sizes = [size if not size else max(size, floor) for size in sizes]
    counts = tuple((size, draw(st.integers(0, size))) for size in sizes)
    return new_task(arms, floor=floor), left, Block(draw(st.integers(0, 200)), heard, counts)


@examples(400)
@given(found=blocks())
def test_every_block_survives_its_code(found: tuple[Task, list[int], Block]) -> None:
    task, left, block = found
    book = BlockCodebook(task)
    book.arms_left = left
    assert book.decode_up(book.encode(block), player=0, sequence=block.number) == block


@examples(400)
@given(bits=st.text(alphabet="01", max_size=90), number=st.integers(0, 100), arms=st.integers(2, 6))
def test_any_bits_are_the_code_of_one_block_or_refused(bits: str, number: int, arms: int) -> None:
    book = BlockCodebook(new_task(arms))
    try:
        block = book.decode_up(bits, player=0, sequence=number)
    except MalformedMessage:
        event("refused")
    else:
        assert book.encode(block) == bits


# ---- any order of events, loss, duplication and restart


class Fleet:
    """Three players and a server; blocks on their way are lost, doubled and mixed. A clock, windows and crashes."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        arms = rng.randint(2, 6)
        self.task = new_task(
            arms,
            floor=rng.choice([1, 2, 3]),
            delta=0.3,
            reward_window=rng.choice([0.0, 5.0]),
            parameters={"block_age": rng.choice([10.0, 86_400.0])},
        )
        self.means = [rng.choice([0.1, 0.5, 0.9]) for _ in range(arms)]
        self.now = 10**12
        self.players = [BlockPlayer(self.task, player, rng) for player in range(3)]
        self.saved = [json.dumps(player.snapshot()) for player in self.players]
        self.server, self.book = BlockServer(self.task), BlockCodebook(self.task)
        self.on_way: list[tuple[int, int, str]] = []
        self.eliminations: list[Elimination] = []
        self.counted: dict[tuple[int, int], Block] = {}

    def run(self, steps: int) -> None:
        whats = (self.decide, self.wait, self.tick, self.deliver, self.hear, self.save, self.crash, self.restart)
        for _ in range(steps):
            [what] = self.rng.choices(whats, [30, 8, 15, 25, 5, 3, 1, 2])
            what(self.rng.randrange(3))
            remaining = set(self.server.remaining)
            assert set(self.server.contenders) <= remaining
            assert self.server.contenders
            assert all(set(player.remaining) >= remaining for player in self.players)

    def decide(self, player: int) -> None:
        """A run of decisions, of which some are rewarded."""
        playing = self.players[player]
        for _ in range(self.rng.choice([1, 3, 30])):
            ticket = playing.decide(self.now)
            assert ticket.arm in playing.remaining
            if self.rng.random() < 0.8:
                playing.reward(ticket, float(self.rng.random() < self.means[ticket.arm]), self.now)

    def wait(self, player: int) -> None:
        self.now += self.rng.choice([0, 1, 3_000, 20_000])

    def tick(self, player: int) -> None:
        """Blocks leave once their player is saved."""
        for block in self.players[player].tick(self.now):
            told = [decided for decided, _ in block.counts if decided]
            assert len(told) > 1
            assert min(told) >= (self.task.floor or 0)
            assert (player, block.number) not in self.counted
            self.counted[player, block.number] = block
            self.on_way.append((player, block.number, self.book.encode(block)))
        self.save(player)

    def deliver(self, player: int) -> None:
        if not self.on_way:
            return
        place, chance = self.rng.randrange(len(self.on_way)), self.rng.random()
        sender, number, bits = self.on_way[place]
        if chance < 0.8:
            self.on_way.pop(place)
        if chance < 0.05:
            return  # it is lost
        message = self.book.decode_up(bits, player=sender, sequence=number)
        assert message == self.counted[sender, number]
        twin = BlockServer.restore(self.task, json.loads(json.dumps(self.server.snapshot())))
        announced = self.server.receive(sender, message, self.now)
        assert twin.receive(sender, message, self.now) == announced
        assert twin.snapshot() == self.server.snapshot()
        for elimination in announced:
            before = [arm for arm in range(len(self.means)) if arm not in self.gone()]
            assert self.book.decode_down(before, self.book.encode_down(before, elimination)) == elimination
            self.eliminations.append(elimination)
            self.book.arms_left.append(len(before) - len(elimination.arms))

    def gone(self) -> set[int]:
        return {arm for elimination in self.eliminations for arm in elimination.arms}

    def hear(self, player: int) -> None:
        """The next elimination, and the one before again."""
        heard = self.players[player].heard
        for elimination in self.eliminations[max(0, heard - 1) : heard + 1]:
            self.players[player].receive(elimination)
        assert self.players[player].heard == min(heard + 1, len(self.eliminations))

    def save(self, player: int) -> None:
        self.saved[player] = json.dumps(self.players[player].snapshot())

    def crash(self, player: int) -> None:
        self.begin_again(player, crashed=True)

    def restart(self, player: int) -> None:
        self.save(player)
        self.begin_again(player, crashed=False)

    def begin_again(self, player: int, *, crashed: bool) -> None:
        restored = BlockPlayer.restore(self.task, json.loads(self.saved[player]), self.rng)
        restored.resume(self.now, crashed=crashed)
        self.players[player] = restored


@examples(60)
@given(seed=SEEDS)
def test_whatever_happens_the_fleet_keeps_its_rules(seed: int) -> None:
    """Each block is sealed once, read as it was sent and counted once; what is restored goes on as the original."""
    fleet = Fleet(seed)
    fleet.run(250)
    event(f"{len(fleet.eliminations)} eliminations")
    assert fleet.server.refused == 0
    assert fleet.server.blocks <= len(fleet.counted)


def test_fleets_of_these_tests_do_decide() -> None:
    """Or the test above would not see eliminations."""
    fleets = [Fleet(seed) for seed in range(12)]
    for fleet in fleets:
        fleet.run(400)
    assert sum(bool(fleet.eliminations) for fleet in fleets) > 5
    assert any(len(fleet.eliminations) > 1 for fleet in fleets)
