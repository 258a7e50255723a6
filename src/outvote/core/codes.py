"""From messages to bits and back: binary, truncated binary and Huffman codes of arms.

Bits are strings of '0' and '1'. Decoding accepts exactly what encoding produces and refuses everything else. What a
message costs in the ledger is the length of these bits; `pack` adds what a byte-oriented network needs on top.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from outvote.core.errors import MalformedMessage, UnknownArm
from outvote.core.messages import Elimination, Vote
from outvote.core.task import Task


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
        self._symbols = {word: symbol for symbol, word in enumerate(words)}
        self._longest = max(map(len, words))

    def decode(self, bits: str, start: int) -> tuple[int, int]:
        """The symbol whose codeword stands at `start`, and where the next one begins."""
        for end in range(start, min(start + self._longest, len(bits)) + 1):
            symbol = self._symbols.get(bits[start:end])
            if symbol is not None:
                return symbol, end
        raise MalformedMessage(f"no codeword at bit {start} of {bits!r}: allowed are {' '.join(self.words)}")


class Codebook:
    """The bits of a task's messages."""

    def __init__(self, task: Task) -> None:
        arms = len(task.arms)
        if task.code == "huffman":
            words = huffman_code(task.code_weights)
        else:
            words = truncated_code(arms) if task.code == "truncated" else binary_code(arms)
        self._arms = PrefixCode(words)
        self._instances = PrefixCode(binary_code(len(task.instances)))

    @property
    def arm_words(self) -> tuple[str, ...]:
        """The codeword of each arm."""
        return self._arms.words

    @property
    def instance_bits(self) -> int:
        """What a vote spends on saying its instance: Theorem 4 leaves these bits out."""
        return len(self._instances.words[0])

    def encode(self, message: Vote | Elimination) -> str:
        """The payload of a message."""
        if isinstance(message, Vote):
            if not 0 <= message.instance < len(self._instances.words):
                raise MalformedMessage(
                    f"unknown instance: got {message.instance!r}, allowed is 0 to {len(self._instances.words) - 1}"
                )
            return self._instances.words[message.instance] + self._word(message.arm)
        if not message.arms or list(message.arms) != sorted(set(message.arms)):
            raise MalformedMessage(f"an elimination names one or more arms in increasing order, got {message.arms!r}")
        return "".join(self._word(arm) for arm in message.arms)

    def bits(self, message: Vote | Elimination) -> int:
        """The price of a message in the ledger."""
        return len(self.encode(message))

    def decode_vote(self, bits: str, *, sequence: int) -> Vote:
        """The inverse of `encode` for a vote; the envelope gives its sequence."""
        instance, after = self._instances.decode(bits, 0)
        arm, end = self._arms.decode(bits, after)
        if end != len(bits):
            raise MalformedMessage(f"a vote of {end} bits was expected, got {len(bits)} bits: {bits!r}")
        return Vote(arm, instance, sequence)

    def decode_elimination(self, bits: str) -> Elimination:
        """The inverse of `encode` for an elimination."""
        arms: list[int] = []
        at = 0
        while at < len(bits):
            arm, at = self._arms.decode(bits, at)
            arms.append(arm)
        if not arms or arms != sorted(set(arms)):
            raise MalformedMessage(f"an elimination names one or more arms in increasing order, got {arms} in {bits!r}")
        return Elimination(tuple(arms))

    def _word(self, arm: int) -> str:
        if not 0 <= arm < len(self._arms.words):
            raise UnknownArm.of(arm, len(self._arms.words))
        return self._arms.words[arm]


def pack(bits: str) -> bytes:
    """Bytes for the wire: the bits, a 1 that marks their end, and zeros up to a whole byte."""
    if set(bits) - {"0", "1"}:
        raise MalformedMessage(f"bits must be '0' and '1' only, got {bits!r}")
    marked = bits + "1"
    marked += "0" * (-len(marked) % 8)
    return int(marked, 2).to_bytes(len(marked) // 8, "big")


def unpack(data: bytes) -> str:
    """The inverse of `pack`; bytes that `pack` cannot have made are refused."""
    if not data or data[-1] == 0:
        raise MalformedMessage(f"a payload must end with the end mark in its last byte, got {data.hex() or 'no bytes'}")
    return f"{int.from_bytes(data, 'big'):0{8 * len(data)}b}".rstrip("0")[:-1]
