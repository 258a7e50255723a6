"""From messages to bits and back: binary, truncated binary and Huffman codes of arms, counts, and masks of survivors.

Bits are strings of '0' and '1'. Decoding accepts exactly what encoding produces and refuses everything else. What a
message costs in the ledger is the length of these bits; `pack` adds what a byte-oriented network needs on top.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from outvote.core.errors import MalformedMessage, UnknownArm
from outvote.core.events import is_index
from outvote.core.messages import Elimination, PlayerId, Tally, UpMessage, Vote
from outvote.core.tally.cycle import Cycle
from outvote.core.task import Task

LONGEST = 80
"""Characters of what was received that an error repeats: a payload may be long."""


def shown(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def fixed_width(symbols: int) -> int:
    """⌈log₂ symbols⌉: the bits of one symbol in a binary code."""
    return (symbols - 1).bit_length()


def binary_code(symbols: int) -> list[str]:
    """Assumption 2: each symbol costs ⌈log₂ symbols⌉ bits."""
    width = fixed_width(symbols)
    return [f"{symbol:0{width}b}" if width else "" for symbol in range(symbols)]


def truncated_code(symbols: int) -> list[str]:
    """Truncated binary: the first 2^⌈log₂ K⌉ − K symbols are one bit shorter, so no codeword is wasted."""
    width = fixed_width(symbols)
    short = 2**width - symbols
    return [f"{symbol:0{width - 1}b}" if symbol < short else f"{symbol + short:0{width}b}" for symbol in range(symbols)]


def huffman_code(weights: Sequence[float]) -> list[str]:
    """Canonical Huffman code: the same weights give the same code on every machine (ties go to the lower symbol)."""
    lengths = [0] * len(weights)
    heap: list[tuple[float, int, tuple[int, ...]]] = [
        (weight, symbol, (symbol,)) for symbol, weight in enumerate(weights)
    ]
    heapq.heapify(heap)
    while len(heap) > 1:
        weight_a, first_a, symbols_a = heapq.heappop(heap)
        weight_b, first_b, symbols_b = heapq.heappop(heap)
        for symbol in symbols_a + symbols_b:
            lengths[symbol] += 1
        heapq.heappush(heap, (weight_a + weight_b, min(first_a, first_b), symbols_a + symbols_b))
    words = [""] * len(weights)
    value, width = 0, 0
    for length, symbol in sorted((length, symbol) for symbol, length in enumerate(lengths)):
        value <<= length - width
        width = length
        words[symbol] = f"{value:0{width}b}"
        value += 1
    return words


class PrefixCode:
    """One codeword for each symbol, none the start of another."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self._steps: list[dict[str, int]] = [{}]
        """The tree of codewords: from a node, by the next bit, to a node or, below 0, to ~symbol."""
        self._root = 0 if any(words) else ~0  # the only symbol needs no bit
        for symbol, word in enumerate(words):
            node = 0
            for bit in word[:-1]:
                if bit not in self._steps[node]:
                    self._steps[node][bit] = len(self._steps)
                    self._steps.append({})
                node = self._steps[node][bit]
            self._steps[node][word[-1:]] = ~symbol

    def decode(self, bits: str, start: int) -> tuple[int, int]:
        """The symbol whose codeword stands at `start`, and where the next one begins."""
        node, at = self._root, start
        try:
            while node >= 0:
                node = self._steps[node][bits[at]]
                at += 1
        except (IndexError, KeyError):
            words = shown(" ".join(self.words[:LONGEST]))
            raise MalformedMessage(f"no codeword at bit {start} of {shown(bits)!r}: allowed are {words}") from None
        return ~node, at


class Codebook:
    """The bits of a task's messages: votes up, the names of eliminated arms down."""

    def __init__(self, task: Task) -> None:
        arms = len(task.arms)
        if task.code == "huffman":
            words = huffman_code(task.code_weights)
        else:
            words = truncated_code(arms) if task.code == "truncated" else binary_code(arms)
        self._arms = PrefixCode(words)
        self._instances = PrefixCode(binary_code(max(1, len(task.instances))))

    @property
    def arm_words(self) -> tuple[str, ...]:
        """The codeword of each arm."""
        return self._arms.words

    @property
    def instance_bits(self) -> int:
        """What a vote spends on saying its instance: Theorem 4 leaves these bits out."""
        return len(self._instances.words[0])

    def encode(self, message: Any) -> str:
        """The payload of an upward message; its length is the message's price in the ledger."""
        if not 0 <= message.instance < len(self._instances.words):
            raise MalformedMessage(
                f"unknown instance: got {message.instance!r}, allowed is 0 to {len(self._instances.words) - 1}"
            )
        instance: str = self._instances.words[message.instance]
        return instance + self._word(message.arm)

    def decode_up(self, bits: str, *, player: PlayerId, sequence: int) -> UpMessage:
        """The inverse of `encode`; the envelope gives the player and the sequence."""
        instance, after = self._instances.decode(bits, 0)
        arm, end = self._arms.decode(bits, after)
        if end != len(bits):
            raise MalformedMessage(f"a vote of {end} bits was expected, got {len(bits)} bits: {shown(bits)!r}")
        return Vote(arm, instance, sequence)

    def encode_down(self, announced: Sequence[int], message: Elimination) -> str:
        """The payload of an elimination from the arms that were announced last."""
        check_order(message.arms)
        return "".join(self._word(arm) for arm in message.arms)

    def decode_down(self, announced: Sequence[int], bits: str) -> Elimination:
        """The inverse of `encode_down`."""
        arms: list[int] = []
        at = 0
        while at < len(bits):
            arm, at = self._arms.decode(bits, at)
            if arms and arm <= arms[-1]:
                raise _out_of_order([*arms, arm], bits)
            arms.append(arm)
        if not arms:
            raise _out_of_order(arms, bits)
        if not set(arms) < set(announced):
            raise MalformedMessage(f"of the arms {list(announced)}, {arms} cannot be eliminated")
        return Elimination(tuple(arms))

    def _word(self, arm: int) -> str:
        if not 0 <= arm < len(self._arms.words):
            raise UnknownArm.of(arm, len(self._arms.words))
        return self._arms.words[arm]


class TallyCodebook(Codebook):
    """The bits of Tally's messages: tallies up, survivors down."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._sizes = {fixed_width(size + 1): size for size in task.tally_sizes}
        self._counts = {
            f"{successes:0{width}b}": (successes, size)
            for width, size in self._sizes.items()
            for successes in range(size + 1)
        }
        """By the bits of a tally's count: each size has a width of its own, so that the length of a tally tells it."""
        self._cycle = Cycle(task) if task.code == "implied" else None

    def encode(self, message: Any) -> str:
        arm, successes, trials = self._word(message.arm), message.successes, message.trials
        width = fixed_width(trials + 1)
        if self._sizes.get(width) != trials or not is_index(successes, trials + 1):
            raise MalformedMessage(
                f"a tally has {', '.join(map(str, self._sizes.values()))} trials and at most as many successes, "
                f"got {successes!r} of {trials!r}"
            )
        return ("" if self._cycle else arm) + f"{successes:0{width}b}"

    def decode_up(self, bits: str, *, player: PlayerId, sequence: int) -> UpMessage:
        """The envelope says who sent it, and from which place of its cycle."""
        arm, at = (self._cycle.arm(player, sequence), 0) if self._cycle else self._arms.decode(bits, 0)
        count = self._counts.get(bits[at:])
        if count is None:
            allowed = ", ".join(f"{width} for at most {each}" for width, each in self._sizes.items())
            raise MalformedMessage(f"a tally's count has so many bits: {allowed}; got {shown(bits[at:])!r}")
        return Tally(arm, *count, sequence)

    def encode_down(self, announced: Sequence[int], message: Elimination) -> str:
        """Who of the arms last announced is left: one bit each, or if one is left its place among them."""
        check_order(message.arms)
        gone = set(message.arms)
        kept = [place for place, arm in enumerate(announced) if arm not in gone]
        if not kept or len(kept) + len(gone) != len(announced):
            raise MalformedMessage(f"of the arms {list(announced)}, {list(message.arms)} cannot be eliminated")
        if len(kept) == 1:
            return f"{kept[0]:0{fixed_width(len(announced))}b}"
        return "".join("0" if arm in gone else "1" for arm in announced)

    def decode_down(self, announced: Sequence[int], bits: str) -> Elimination:
        whole = set(bits) <= {"0", "1"} and bits
        kept: set[int] = set()
        if whole and len(bits) == fixed_width(len(announced)) and int(bits, 2) < len(announced):
            kept = {announced[int(bits, 2)]}
        elif whole and len(bits) == len(announced) and 2 <= bits.count("1") < len(bits):
            kept = {arm for arm, bit in zip(announced, bits, strict=True) if bit == "1"}
        if not kept:
            raise MalformedMessage(f"survivors of {len(announced)} arms cannot be {shown(bits)!r}")
        return Elimination(tuple(arm for arm in announced if arm not in kept))


def check_order(arms: Sequence[int]) -> None:
    if not arms or list(arms) != sorted(set(arms)):
        raise _out_of_order(arms)


def _out_of_order(arms: Sequence[int], bits: str | None = None) -> MalformedMessage:
    got = shown(str(list(arms))) + ("" if bits is None else f" in {shown(bits)!r}")
    return MalformedMessage(f"an elimination names one or more arms in increasing order, got {got}")


def pack(bits: str) -> bytes:
    """Bytes for the wire: the bits, a 1 that marks their end, and zeros up to a whole byte."""
    if set(bits) - {"0", "1"}:
        raise MalformedMessage(f"bits must be '0' and '1' only, got {shown(bits)!r}")
    marked = bits + "1"
    marked += "0" * (-len(marked) % 8)
    return int(marked, 2).to_bytes(len(marked) // 8, "big")


def unpack(data: bytes) -> str:
    """The inverse of `pack`; bytes that `pack` cannot have made are refused."""
    if not data or data[-1] == 0:
        got = shown(data[:LONGEST].hex()) or "no bytes"
        raise MalformedMessage(f"a payload must end with the end mark in its last byte, got {got}")
    return f"{int.from_bytes(data, 'big'):0{8 * len(data)}b}".rstrip("0")[:-1]


def packed_bits(data: bytes) -> int:
    """How many bits `pack` was given."""
    number = int.from_bytes(data, "big")
    return 8 * len(data) - (number & -number).bit_length()
