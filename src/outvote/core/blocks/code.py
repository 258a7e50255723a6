"""From blocks to bits and back: one arithmetic code with whole numbers, so that no fraction of a bit is wasted.

It names no arm: the counts are those of the arms that remained at closing, in order. A block of the size that is due
for its number pays next to nothing for its sizes. Decoding accepts exactly what encoding produces.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from outvote.core.blocks.sizes import LARGEST, RUNGS, planned
from outvote.core.codes import TallyCodebook, fixed_width, shown
from outvote.core.errors import MalformedMessage
from outvote.core.events import is_index
from outvote.core.messages import Block, Elimination, PlayerId, UpMessage
from outvote.core.task import Task

DUE: Final = 15
"""Of 16: the share of the code for blocks of the size that is due."""
UNPLANNED: Final = len(RUNGS)
"""In place of a rung: each arm has a count of decisions of its own."""
EVIDENCE: Final = "00"
"""Why an arm is out: the evidence against it. Other reasons are people's."""
MOST: Final = 255
"""Decisions of one arm in one block."""

Symbol = tuple[int, int, int]
"""The place of a symbol among all: how much is before it, how much it takes, and how much there is."""


class Writer:
    """Narrows an interval symbol by symbol, from 0 to 1 at first."""

    def __init__(self) -> None:
        self._low, self._width, self._whole = 0, 1, 1

    def write(self, symbol: Symbol) -> None:
        before, size, total = symbol
        self._low = self._low * total + self._width * before
        self._width *= size
        self._whole *= total

    def bits(self) -> str:
        """The first number in the interval with as few binary digits as an interval of this width may need."""
        length = (-(-self._whole // self._width) - 1).bit_length()
        number = -((-self._low << length) // self._whole)
        return f"{number:0{length}b}" if length else ""


class Reader:
    """Finds the symbols that a `Writer` wrote."""

    def __init__(self, bits: str) -> None:
        self._number, self._length = int(bits, 2), len(bits)
        self._low, self._width, self._whole = 0, 1, 1

    def place(self, total: int) -> int:
        """Where the number is in what is left of the interval, in so many equal parts."""
        return (((self._number * self._whole) - (self._low << self._length)) * total) // (self._width << self._length)

    def read(self, symbol: Symbol) -> None:
        """On to the next symbol, after the one that `place` fell on."""
        before, size, total = symbol
        self._low = self._low * total + self._width * before
        self._width *= size
        self._whole *= total

    def read_uniform(self, total: int) -> int:
        place = self.place(total)
        self.read((place, 1, total))
        return place


class BlockCodebook(TallyCodebook):
    """The bits of a task's messages: blocks up, survivors down."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.arms_left = [len(task.arms)]
        """By the number of eliminations: how many arms remained. Whoever decodes adds to it."""
        assert task.floor is not None
        self._floor = task.floor
        self._heards = 1 << fixed_width(len(task.arms))

    def encode(self, message: Any) -> str:
        """The payload of a block; its length is the message's price in the ledger."""
        block: Block = message
        check_counts(block, self._floor)
        if not is_index(block.heard, self._heards):
            raise MalformedMessage(f"a block has heard of 0 to {self._heards - 1} eliminations, got {block.heard!r}")
        writer = Writer()
        sizes = [decided for decided, _ in block.counts]
        rung = self._rung(block.number, sizes)
        if rung is None:
            writer.write((0, DUE, 16))
        else:
            writer.write((DUE, 1, 16))
            writer.write((rung, 1, UNPLANNED + 1))
        writer.write((block.heard, 1, self._heards))
        if rung == UNPLANNED:
            for decided in sizes:
                writer.write((decided, 1, MOST + 1))
        left, successes = sum(sizes), sum(successes for _, successes in block.counts)
        writer.write((successes, 1, left + 1))
        writer.write(_place(block.counts, left, successes))
        return writer.bits()

    def decode_up(self, bits: str, *, player: PlayerId, sequence: int) -> UpMessage:
        """The inverse of `encode`; the envelope gives the block's number."""
        if not bits or set(bits) - {"0", "1"}:
            raise MalformedMessage(f"a block is bits, got {shown(bits)!r}")
        reader = Reader(bits)
        rung = None
        if reader.place(16) < DUE:
            reader.read((0, DUE, 16))
        else:
            reader.read((DUE, 16 - DUE, 16))
            rung = reader.read_uniform(UNPLANNED + 1)
        heard = reader.read_uniform(self._heards)
        if heard >= len(self.arms_left):
            raise MalformedMessage(f"a block has heard of {heard} eliminations, the fleet of {len(self.arms_left) - 1}")
        arms = self.arms_left[heard]
        if rung == UNPLANNED:
            sizes = [reader.read_uniform(MOST + 1) for _ in range(arms)]
        else:
            size = planned(sequence, self._floor) if rung is None else max(self._floor, RUNGS[rung])
            sizes = [size] * arms
        left = sum(sizes)
        successes = reader.read_uniform(left + 1)
        counts = _counts(sizes, left, successes, reader.place(math.comb(left, successes)))
        block = Block(sequence, heard, counts)
        if self.encode(block) != bits:
            raise MalformedMessage(f"no code of a block: {shown(bits)!r}")
        return block

    def encode_down(self, announced: Sequence[int], message: Elimination) -> str:
        """Why arms are out, in 2 bits, and who is left."""
        return EVIDENCE + super().encode_down(announced, message)

    def decode_down(self, announced: Sequence[int], bits: str) -> Elimination:
        if not bits.startswith(EVIDENCE):
            raise MalformedMessage(f"an elimination begins with its reason, {EVIDENCE}; got {shown(bits)!r}")
        return super().decode_down(announced, bits[len(EVIDENCE) :])

    def _rung(self, number: int, sizes: Sequence[int]) -> int | None:
        """How the sizes are told: None if they are due, else a rung, else one by one."""
        first = sizes[0]
        if any(size != first for size in sizes):
            return UNPLANNED
        if first == planned(number, self._floor):
            return None
        return next((rung for rung, size in enumerate(RUNGS) if max(self._floor, size) == first), UNPLANNED)


def check_counts(block: Block, floor: int) -> None:
    """At least two arms with the floor's decisions; 0 for those that have fewer. Raises `MalformedMessage`."""
    told = 0
    for decided, successes in block.counts:
        if not is_index(decided, MOST + 1) or not is_index(successes, decided + 1) or 0 < decided < floor:
            raise MalformedMessage(
                f"an arm of a block has 0 or {floor} to {MOST} decisions and at most as many successes, "
                f"got {successes!r} of {decided!r}"
            )
        told += decided > 0
    if told < 2:
        raise MalformedMessage(f"a block compares two arms or more, got {told}")


def _place(counts: Sequence[tuple[int, int]], left: int, successes: int) -> Symbol:
    """Of these counts among all that have as many successes in all: each takes the ways to choose which decisions."""
    before, size, total = 0, 1, math.comb(left, successes)
    for decided, own in counts:
        for value, ways in _laws(decided, left, successes):
            if value == own:
                break
            before += size * ways
        size *= math.comb(decided, own)
        left, successes = left - decided, successes - own
    return before, size, total


def _counts(sizes: Sequence[int], left: int, successes: int, place: int) -> tuple[tuple[int, int], ...]:
    """The counts that have this place."""
    counts = []
    for decided in sizes:
        for own, ways in _laws(decided, left, successes):
            if place < ways:
                counts.append((decided, own))
                place //= math.comb(decided, own)
                left, successes = left - decided, successes - own
                break
            place -= ways
    return tuple(counts)


def _laws(decided: int, left: int, successes: int) -> Iterator[tuple[int, int]]:
    """In how many ways so many of the successes that are left are of the next arm: each from the one before."""
    others = left - decided
    least, most = max(0, successes - others), min(decided, successes)
    ways = math.comb(decided, least) * math.comb(others, successes - least)
    for own in range(least, most + 1):
        yield own, ways
        ways = ways * ((decided - own) * (successes - own)) // ((own + 1) * (others - successes + own + 1))


assert LARGEST <= MOST
