"""Codes: vectors by hand, encoding and decoding as exact inverses, and refusal of everything else."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from outvote.core.codes import Codebook, TallyCodebook, binary_code, huffman_code, pack, truncated_code
from outvote.core.errors import MalformedMessage, UnknownArm
from outvote.core.messages import Elimination, Tally, Vote
from outvote.core.tally.cycle import Cycle
from outvote.core.task import Task

BINARY = {
    # ⌈log₂K⌉ bits each
    2: ["0", "1"],
    3: ["00", "01", "10"],
    5: ["000", "001", "010", "011", "100"],
    7: ["000", "001", "010", "011", "100", "101", "110"],
    8: ["000", "001", "010", "011", "100", "101", "110", "111"],
    10: ["0000", "0001", "0010", "0011", "0100", "0101", "0110", "0111", "1000", "1001"],
}
TRUNCATED = {
    # The first u = 2^⌈log₂K⌉ − K symbols have one bit less; symbol k ≥ u is k + u in ⌈log₂K⌉ bits.
    2: ["0", "1"],  # u = 0
    3: ["0", "10", "11"],  # u = 1: 1 + 1 = 2, 2 + 1 = 3
    5: ["00", "01", "10", "110", "111"],  # u = 3: 3 + 3 = 6, 4 + 3 = 7
    7: ["00", "010", "011", "100", "101", "110", "111"],  # u = 1: 1 + 1 = 2 and so on
    8: ["000", "001", "010", "011", "100", "101", "110", "111"],  # u = 0
    10: ["000", "001", "010", "011", "100", "101", "1100", "1101", "1110", "1111"],  # u = 6: 6 + 6 = 12
}
HUFFMAN = {
    # Lengths by hand; then codewords are given out by length and, within a length, by symbol (canonical code).
    (1.0, 1.0): ["0", "1"],
    # 1 + 1 = 2, 2 + 2 = 4: lengths 1, 2, 2
    (2.0, 1.0, 1.0): ["0", "10", "11"],
    (1.0, 2.0, 1.0): ["10", "0", "11"],
    # 5 + 9 = 14, 12 + 13 = 25, 14 + 16 = 30, 25 + 30 = 55, 45 + 55 = 100: lengths 4, 4, 3, 3, 3, 1
    (5.0, 9.0, 12.0, 13.0, 16.0, 45.0): ["1110", "1111", "100", "101", "110", "0"],
    # 1 + 1 = 2, 2 + 2 = 4, 4 + 4 = 8: lengths 1, 2, 3, 3
    (4.0, 2.0, 1.0, 1.0): ["0", "10", "110", "111"],
    # equal weights, a power of two of them: the binary code
    (1.0, 1.0, 1.0, 1.0): ["00", "01", "10", "11"],
    # the tie goes to the lower symbols: 0 and 1 are joined first, so they get the long words
    (1.0, 1.0, 1.0): ["10", "11", "0"],
}


@pytest.mark.parametrize("symbols", BINARY)
def test_binary_and_truncated_codewords(symbols: int) -> None:
    assert binary_code(symbols) == BINARY[symbols]
    assert truncated_code(symbols) == TRUNCATED[symbols]


@pytest.mark.parametrize("weights", HUFFMAN)
def test_huffman_codewords(weights: tuple[float, ...]) -> None:
    assert huffman_code(weights) == HUFFMAN[weights]


def every_complete_code(symbols: int) -> set[tuple[int, ...]]:
    """All lengths, longest first, that fill the Kraft sum: what an optimal code can be."""
    if symbols == 1:
        return {(0,)}
    shorter = every_complete_code(symbols - 1)
    split = (lengths[:i] + (n + 1, n + 1) + lengths[i + 1 :] for lengths in shorter for i, n in enumerate(lengths))
    return {tuple(sorted(lengths, reverse=True)) for lengths in split}


@pytest.mark.parametrize("weights", [*HUFFMAN, (8.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0), (1.0, 2.0, 4.0, 8.0, 16.0)])
def test_huffman_is_as_short_as_the_best_of_all_codes(weights: tuple[float, ...]) -> None:
    cost = sum(weight * len(word) for weight, word in zip(weights, huffman_code(weights), strict=True))
    rising = sorted(weights)  # the best use of some lengths gives the longest to the lightest
    best = min(
        sum(w * n for w, n in zip(rising, lengths, strict=True)) for lengths in every_complete_code(len(weights))
    )
    assert cost == best


def test_huffman_ties_go_to_the_lower_symbol_however_weights_are_written() -> None:
    # 0 and 1 make a pair of weight 2, which ties with 2 and 3: the pair holds the lowest symbol, then comes 2.
    # Joining 2 and 3 instead would be as short on average, but another code.
    assert huffman_code([1, 1, 2, 2]) == ["110", "111", "10", "0"]
    assert huffman_code((1.0, 1.0, 2.0, 2.0)) == ["110", "111", "10", "0"]
    # The pair of 0 and 3 counts as 0, so it is joined with 1 before 2 is.
    assert huffman_code([1, 2, 2, 1]) == ["110", "10", "0", "111"]


def task(arms: int, **options: Any) -> Task:
    return Task(arms=arms, players=8, epsilon=0.5, delta=0.05, **{"protocol": "dme", **options})


def test_the_bits_of_a_vote_are_its_instance_and_then_its_arm() -> None:
    extended = Codebook(task(5, protocol="edme", instances=5, code="truncated"))
    assert extended.encode(Vote(4, 3)) == "011" + "111"
    assert extended.instance_bits == 3
    assert Codebook(task(5)).encode(Vote(4)) == "100"
    assert Codebook(task(5)).instance_bits == 0
    assert Codebook(task(10, protocol="edme")).instance_bits == 3


def test_an_elimination_names_no_instance() -> None:
    assert Codebook(task(5, protocol="edme", instances=5)).encode_down(range(5), Elimination((1, 4))) == "001100"


def test_a_vote_with_an_instance_that_does_not_exist_is_refused() -> None:
    codebook = Codebook(task(5, protocol="edme", instances=5))
    with pytest.raises(MalformedMessage, match="no codeword at bit 0 of '101000'"):
        codebook.decode_up("101000", player=0, sequence=0)
    with pytest.raises(MalformedMessage, match=r"unknown instance: got 5, allowed is 0 to 4"):
        codebook.encode(Vote(0, 5))
    with pytest.raises(MalformedMessage, match=r"unknown instance: got -1, allowed is 0 to 4"):
        codebook.encode(Vote(0, -1))


@pytest.mark.parametrize("arms", [(5,), (-1, 2), (1, 7)])
def test_messages_with_unknown_arms_are_not_encoded(arms: tuple[int, ...]) -> None:
    codebook = Codebook(task(5))
    with pytest.raises(UnknownArm, match="from 0 to 4"):
        codebook.encode_down(range(5), Elimination(arms))
    for arm in set(arms) - set(range(5)):
        with pytest.raises(UnknownArm, match="from 0 to 4"):
            codebook.encode(Vote(arm))


# ---- tallies, and the survivors that Tally announces

TALLIES = {
    "implied": task(5, protocol="tally"),
    "binary": task(5, protocol="tally", code="binary"),
    "truncated, two at least": task(5, protocol="tally", code="truncated", floor=2),
    "huffman, forty at least": task(4, protocol="tally", code="huffman", code_weights=(4, 2, 1, 1), floor=40),
}


def tallies(of: Task, player: str) -> list[Tally]:
    """Every tally that a player may send from the places of its first lap."""
    cycle = Cycle(of)
    return [
        Tally(cycle.arm(player, place), successes, size, place)
        for place in range(len(of.arms))
        for size in of.tally_sizes
        for successes in range(size + 1)
    ]


@pytest.mark.parametrize("name", TALLIES)
def test_decoding_is_the_inverse_of_encoding_for_every_tally(name: str) -> None:
    codebook = TallyCodebook(TALLIES[name])
    for tally in tallies(TALLIES[name], "site"):
        bits = codebook.encode(tally)
        assert codebook.decode_up(bits, player="site", sequence=tally.sequence) == tally


def test_the_bits_of_a_tally_are_its_arm_and_then_its_count() -> None:
    # 0 to 3 in two bits, 0 to 7 in three, 0 to 127 in seven
    implied, binary = TallyCodebook(TALLIES["implied"]), TallyCodebook(TALLIES["binary"])
    assert implied.encode(Tally(4, 2, 3, 9)) == "10"
    assert implied.encode(Tally(4, 2, 7, 9)) == "010"
    assert implied.encode(Tally(4, 2, 127, 9)) == "0000010"
    assert binary.encode(Tally(4, 2, 3, 9)) == "100" + "10"
    assert binary.encode(Tally(4, 127, 127, 9)) == "100" + "1111111"
    assert TallyCodebook(TALLIES["truncated, two at least"]).encode(Tally(4, 2, 2, 9)) == "111" + "10"
    assert TallyCodebook(TALLIES["huffman, forty at least"]).encode(Tally(0, 40, 40, 9)) == "0" + "101000"


def test_the_arm_that_is_not_sent_is_that_of_the_place_in_the_senders_cycle() -> None:
    codebook, cycle = TallyCodebook(TALLIES["implied"]), Cycle(TALLIES["implied"])
    for player in ("site", 0, 3):
        for sequence in (0, 1, 4, 5, 1_000, 10**16):
            expected = Tally(cycle.arm(player, sequence), 1, 3, sequence)
            assert codebook.decode_up("01", player=player, sequence=sequence) == expected


@pytest.mark.parametrize("name", TALLIES)
def test_every_bit_string_is_refused_or_the_encoding_of_the_tally_it_decodes_to(name: str) -> None:
    codebook, decoded = TallyCodebook(TALLIES[name]), 0
    for bits in ("".join(word) for length in range(10) for word in product("01", repeat=length)):
        try:
            tally = codebook.decode_up(bits, player="site", sequence=0)
        except MalformedMessage:
            continue
        assert codebook.encode(tally) == bits
        decoded += 1
    everything = [tally for tally in tallies(TALLIES[name], "site") if tally.sequence == 0]
    if TALLIES[name].code != "implied":  # then the place does not matter
        everything = tallies(TALLIES[name], "site")
    assert decoded == sum(len(codebook.encode(tally)) <= 9 for tally in everything)


@pytest.mark.parametrize(("bits", "shown"), [("", "''"), ("0", "'0'"), ("11", "'11'"), ("110", "'110'")])
def test_counts_of_no_width_and_beyond_their_size_are_refused(bits: str, shown: str) -> None:
    # A floor of 2: two bits for at most 2, three for at most 5
    codebook = TallyCodebook(task(5, protocol="tally", floor=2))
    with pytest.raises(MalformedMessage) as caught:
        codebook.decode_up(bits, player=0, sequence=0)
    assert "2 for at most 2, 3 for at most 5, 4 for at most 11" in str(caught.value)
    assert str(caught.value).endswith(f"got {shown}")


@pytest.mark.parametrize(
    ("successes", "trials"),
    [(4, 3), (-1, 3), (1, 4), (1, 2), (1, 255), (0, 0), (True, 3), (1.0, 3), (None, 3)],
    ids=repr,
)
def test_tallies_that_could_not_be_decoded_are_not_encoded(successes: Any, trials: int) -> None:
    for name in ("implied", "binary"):
        with pytest.raises(MalformedMessage) as caught:
            TallyCodebook(TALLIES[name]).encode(Tally(1, successes, trials, 0))
        assert str(caught.value).endswith(f"got {successes!r} of {trials!r}")


@pytest.mark.parametrize("name", ["implied", "binary"])
@pytest.mark.parametrize("arm", [5, -1])
def test_tallies_of_unknown_arms_are_not_encoded(name: str, arm: int) -> None:
    with pytest.raises(UnknownArm, match="from 0 to 4"):
        TallyCodebook(TALLIES[name]).encode(Tally(arm, 1, 3, 0))


SURVIVORS = {
    # announced before, eliminated now: one bit for each that was left, 1 for those that still are
    ((0, 1, 2, 3, 4), (0, 2, 3)): "01001",
    ((0, 1, 2, 3, 4), (4,)): "11110",
    ((1, 3, 4, 7), (3, 7)): "1010",
    # one is left: its place among the arms announced before, in ⌈log₂ m⌉ bits
    ((0, 1, 2, 3, 4), (0, 1, 2, 3)): "100",
    ((1, 3, 4, 7), (3, 4, 7)): "00",
    ((1, 3, 4), (1, 4)): "01",
    ((2, 6), (2,)): "1",
    ((2, 6), (6,)): "0",
}


@pytest.mark.parametrize(("announced", "gone"), SURVIVORS)
def test_survivors_are_a_mask_or_the_place_of_the_last(announced: tuple[int, ...], gone: tuple[int, ...]) -> None:
    codebook = TallyCodebook(task(8, protocol="tally"))
    bits = codebook.encode_down(announced, Elimination(gone))
    assert bits == SURVIVORS[announced, gone]
    assert codebook.decode_down(announced, bits) == Elimination(gone)


@pytest.mark.parametrize("announced", [(0, 1), (0, 1, 2), (1, 3, 4, 7), (0, 2, 3, 5, 6), (0, 1, 2, 3, 4, 5, 6, 7)])
def test_every_bit_string_is_refused_or_the_mask_of_the_survivors_it_decodes_to(announced: tuple[int, ...]) -> None:
    codebook, decoded = TallyCodebook(task(8, protocol="tally")), set()
    for bits in ("".join(word) for length in range(10) for word in product("01", repeat=length)):
        try:
            message = codebook.decode_down(announced, bits)
        except MalformedMessage:
            continue
        assert codebook.encode_down(announced, message) == bits
        decoded.add(message)
    # all, but not none and not everybody, can be eliminated
    assert len(decoded) == 2 ** len(announced) - 2


@pytest.mark.parametrize("bits", ["2", "0x", " 1", "1_0", "-1", "٠١", "0101\n"])
def test_survivors_of_other_characters_are_refused(bits: str) -> None:
    for announced in ((0, 1, 2), (0, 1, 2, 3), (0, 1, 2, 3, 4)):
        with pytest.raises(MalformedMessage) as caught:
            TallyCodebook(task(8, protocol="tally")).decode_down(announced, bits)
        assert str(caught.value) == f"survivors of {len(announced)} arms cannot be {bits!r}"


@pytest.mark.parametrize("gone", [(1, 3, 4, 7), (0,), (1, 2), (3, 1), (3, 3), (), (8,)])
def test_what_cannot_be_eliminated_is_not_encoded(gone: tuple[int, ...]) -> None:
    with pytest.raises(MalformedMessage):
        TallyCodebook(task(8, protocol="tally")).encode_down((1, 3, 4, 7), Elimination(gone))


def test_packing_marks_the_end_and_fills_the_last_byte() -> None:
    assert pack("") == b"\x80"  # 1 0000000
    assert pack("0") == b"\x40"  # 0 1 000000
    assert pack("1") == b"\xc0"  # 1 1 000000
    assert pack("1010101") == b"\xab"  # 1010101 1
    assert pack("00000000") == b"\x00\x80"  # 00000000 1 0000000


@pytest.mark.parametrize("bits", ["2", "0101a", " ", "0 1", "0b1", "_1", "+1", "\n", "١"])
def test_other_characters_are_not_packed(bits: str) -> None:
    with pytest.raises(MalformedMessage, match="'0' and '1' only"):
        pack(bits)


@pytest.mark.parametrize("bits", ["-1", "+1", " 1", "٠1", "xx", "0_1"])
def test_a_tally_is_made_of_bits_only(bits: str) -> None:
    task = Task(arms=2, players=2, epsilon=0, delta=0.05, protocol="tally", floor=2)
    with pytest.raises(MalformedMessage):
        TallyCodebook(task).decode_up(bits, player=0, sequence=0)
