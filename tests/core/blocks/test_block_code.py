"""The code of blocks is exact: as short as its formula says, and bits that no block has are refused."""

from __future__ import annotations

import contextlib
import itertools
import math
import random
import time
from collections.abc import Iterator
from fractions import Fraction

import pytest

from core.blocks.block_players import new_task
from outvote.core.blocks.code import BlockCodebook
from outvote.core.blocks.sizes import RUNGS
from outvote.core.codes import pack, unpack
from outvote.core.errors import MalformedMessage
from outvote.core.messages import Block, Elimination


def new_book(arms: int, *, floor: int = 3, left: tuple[int, ...] | None = None) -> BlockCodebook:
    """`left` is how many arms remained, by the number of eliminations."""
    book = BlockCodebook(new_task(arms, floor=floor))
    book.arms_left = list(left or (arms,))
    return book


def price(arms: int, floor: int, block: Block) -> int:
    """⌈log₂⌉ of one over the share of all that this block has, field by field."""
    sizes = [decided for decided, _ in block.counts]
    due = (1 << max(1, block.number.bit_length())) - 1
    rungs = {max(floor, rung) for rung in RUNGS}
    if set(sizes) == {max(floor, min(127, due))}:
        share = Fraction(16, 15)
    else:
        share = Fraction(16 * 8)
        if len(set(sizes)) > 1 or sizes[0] not in rungs:
            share *= 256 ** len(sizes)
    total, successes = sum(sizes), sum(own for _, own in block.counts)
    share *= 2 ** math.ceil(math.log2(arms))
    share *= (total + 1) * math.comb(total, successes)
    share /= math.prod(math.comb(decided, own) for decided, own in block.counts)
    return next(bits for bits in itertools.count() if 2**bits >= share)


def checked(book: BlockCodebook, arms: int, floor: int, block: Block) -> str:
    bits = book.encode(block)
    assert book.decode_up(unpack(pack(bits)), player=0, sequence=block.number) == block
    assert len(bits) == price(arms, floor, block)
    return bits


def counts_of(sizes: tuple[int, ...]) -> Iterator[tuple[tuple[int, int], ...]]:
    for successes in itertools.product(*(range(size + 1) for size in sizes)):
        yield tuple(zip(sizes, successes, strict=True))


@pytest.mark.parametrize(("arms", "most", "left"), [(2, 8, (2,)), (3, 3, (3, 2)), (4, 1, (4, 3, 2))])
def test_every_small_block_survives_its_code_and_no_two_have_the_same(
    arms: int, most: int, left: tuple[int, ...]
) -> None:
    """All counts up to `most`, left out or not, at all numbers of eliminations."""
    book = new_book(arms, floor=1, left=left)
    for number in (0, 2, 5):
        seen: set[str] = set()
        blocks = 0
        for heard, remaining in enumerate(left):
            for sizes in itertools.product(range(most + 1), repeat=remaining):
                if sum(size > 0 for size in sizes) > 1:
                    for counts in counts_of(sizes):
                        seen.add(checked(book, arms, 1, Block(number, heard, counts)))
                        blocks += 1
        assert len(seen) == blocks


@pytest.mark.parametrize("floor", [1, 3, 5, 31])
def test_large_blocks_survive_their_code(floor: int) -> None:
    rng = random.Random(floor)
    for _ in range(150):
        arms = rng.randint(2, 12)
        left = tuple(sorted(rng.sample(range(2, arms + 1), rng.randint(1, min(3, arms - 1))), reverse=True))
        book = new_book(arms, floor=floor, left=left)
        heard = rng.randrange(len(left))
        size = rng.choice([max(floor, rung) for rung in RUNGS] + [rng.randint(floor, 255)])
        alike = rng.random() < 0.6
        sizes = [size if alike else rng.choice([0, size, rng.randint(floor, 255)]) for _ in range(left[heard])]
        if sum(size > 0 for size in sizes) < 2:
            continue
        mean = rng.random() ** 3
        counts = tuple((size, sum(rng.random() < mean for _ in range(size))) for size in sizes)
        checked(book, arms, floor, Block(rng.choice([0, 1, 4, 30, 64, 10**6]), heard, counts))


def test_what_is_due_is_cheapest_then_a_rung_then_each_count() -> None:
    """Four arms of 3 decisions without a success: 13 numbers of successes, 2 bits for `heard`.

    Due: 16/15·4·13 = 55.5, 6 bits; a rung: 16·8·4·13 = 6,656, 13 bits; one by one 16·8·4·256⁴·14, 45 bits.
    """
    book = new_book(4)
    assert len(book.encode(Block(0, 0, ((3, 0),) * 4))) == 6
    assert len(book.encode(Block(9, 0, ((3, 0),) * 4))) == 13
    assert len(book.encode(Block(0, 0, ((3, 0), (3, 0), (3, 0), (4, 0))))) == 45


@pytest.mark.parametrize(("arms", "floor", "left"), [(2, 1, (2,)), (2, 3, (2,)), (3, 1, (3, 2)), (5, 3, (5, 4, 2))])
def test_short_bits_are_the_code_of_one_block_or_refused(arms: int, floor: int, left: tuple[int, ...]) -> None:
    """All strings of up to ten bits, decoded under several numbers."""
    book = new_book(arms, floor=floor, left=left)
    for number in (0, 3, 70):
        found = 0
        for length in range(11):
            for bits in map("".join, itertools.product("01", repeat=length)):
                with contextlib.suppress(MalformedMessage):
                    block = book.decode_up(bits, player=0, sequence=number)
                    found += 1
                    assert isinstance(block, Block)
                    assert book.encode(block) == bits
        assert found > 0 or number == 70  # blocks of 127 need more


def test_cut_extended_and_random_bits_are_refused_or_another_block() -> None:
    rng = random.Random(8)
    book = new_book(4, floor=3, left=(4, 3))
    refused = 0
    for _ in range(400):
        counts = tuple((31, rng.randint(0, 31)) for _ in range(4))
        bits = book.encode(Block(20, 0, counts))
        flipped = rng.randrange(len(bits))
        for wrong in (
            bits[:-1],
            bits + "0",
            bits + "1",
            bits[:flipped] + str(1 - int(bits[flipped])) + bits[flipped + 1 :],
            "".join(rng.choice("01") for _ in range(rng.randint(1, 90))),
        ):
            try:
                block = book.decode_up(wrong, player=0, sequence=20)
            except MalformedMessage:
                refused += 1
            else:
                assert book.encode(block) == wrong
                assert block != Block(20, 0, counts)
    assert refused > 1000


@pytest.mark.parametrize("bits", ["", "2", "0b1", " 1", "01\n", "٠١", "-1", "+1", "1_0"])
def test_what_is_not_bits_is_refused(bits: str) -> None:
    with pytest.raises(MalformedMessage):
        new_book(3).decode_up(bits, player=0, sequence=0)


def test_more_eliminations_than_there_were_are_refused() -> None:
    ahead, behind = new_book(4, left=(4, 3)), new_book(4)
    bits = ahead.encode(Block(0, 1, ((3, 1),) * 3))
    with pytest.raises(MalformedMessage, match="1 eliminations, the fleet of 0"):
        behind.decode_up(bits, player=0, sequence=0)
    behind.arms_left.append(3)
    assert behind.decode_up(bits, player=0, sequence=0) == Block(0, 1, ((3, 1),) * 3)


@pytest.mark.parametrize(
    "block",
    [
        Block(0, 4, ((3, 1), (3, 1))),
        Block(0, -1, ((3, 1), (3, 1))),
        Block(0, True, ((3, 1), (3, 1))),
        Block(0, 0, ((3, 1), (2, 1))),
        Block(0, 0, ((3, 4), (3, 1))),
        Block(0, 0, ((3, 1), (256, 1))),
        Block(0, 0, ((3, 1), (0, 1))),
        Block(0, 0, ((3, 1), (0, 0))),
        Block(0, 0, ((3, 1),)),
        Block(0, 0, ()),
        Block(0, 0, ((3.0, 1), (3, 1))),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_block_has_no_bits(block: Block) -> None:
    with pytest.raises(MalformedMessage):
        new_book(4).encode(block)


def test_bits_of_any_length_are_refused_in_little_time() -> None:
    rng, book, begin = random.Random(4), new_book(4), time.process_time()
    for length in (1_000, 100_000, 1_000_000):
        with pytest.raises(MalformedMessage):
            book.decode_up(f"{rng.getrandbits(length):0{length}b}", player=0, sequence=10**6)
    assert time.process_time() - begin < 5


def test_the_largest_block_of_fifty_arms_takes_little_time() -> None:
    """.2 s where this was written; counts coded one after the other, each with its own large numbers, took 19 s."""
    rng, book = random.Random(4), new_book(50)
    block = Block(0, 0, tuple((rng.randint(200, 255), rng.randint(50, 150)) for _ in range(50)))
    begin = time.process_time()
    checked(book, 50, 3, block)
    assert time.process_time() - begin < 5


def test_an_elimination_says_why_in_two_bits_and_who_is_left() -> None:
    book = new_book(5)
    several, last = Elimination((1, 4)), Elimination((0, 1, 3, 4))
    assert book.encode_down(range(5), several) == "00" + "10110"
    assert book.encode_down(range(5), last) == "00" + "010"
    for elimination in (several, last):
        assert book.decode_down(range(5), book.encode_down(range(5), elimination)) == elimination
    for bits in ("", "0", "00", "01" + "10110", "10110", "00" + "11111", "00" + "111"):
        with pytest.raises(MalformedMessage):
            book.decode_down(range(5), bits)
