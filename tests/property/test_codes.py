"""Codes are exact: what was encoded is decoded, and what nobody could have encoded is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from amounts import examples
from outvote.core.codes import Codebook, pack, unpack
from outvote.core.errors import MalformedMessage
from outvote.core.messages import Elimination, Vote
from outvote.core.task import Task

BITS = st.text(alphabet="01", max_size=40)
CODES = ("binary", "truncated", "huffman")


@st.composite
def tasks_with_codes(draw: st.DrawFn, codes: Sequence[str] = CODES) -> Task:
    """Up to forty arms and nine instances: whole powers of two, and numbers beside them."""
    arms = draw(st.integers(2, 9) | st.integers(2, 40))
    code = draw(st.sampled_from(codes))
    fields: dict[str, Any] = {"arms": arms, "players": 9, "epsilon": 0.5, "delta": 0.5, "code": code, "protocol": "dme"}
    if code == "huffman":
        # Equal weights need ties to be broken the same way everywhere; very unequal ones make long words.
        weights = st.sampled_from([1.0, 2.0, 3.0]) | st.floats(1e-300, 1e300)
        fields["code_weights"] = draw(st.lists(weights, min_size=arms, max_size=arms))
    if draw(st.booleans()):
        fields.update(protocol="edme", instances=draw(st.integers(1, 9)))
    return Task(**fields)


@st.composite
def nearly_words(draw: st.DrawFn, book: Codebook, *, instance: bool) -> str:
    """Bits, or some codewords in a row, perhaps with a fault: pure chance would seldom come near a message."""
    if draw(st.booleans()):
        return draw(BITS | st.text(alphabet="01 2bx\n٠", max_size=12))
    words = draw(st.lists(st.sampled_from(book.arm_words), min_size=1, max_size=4))
    bits = draw(st.text(alphabet="01", min_size=book.instance_bits, max_size=book.instance_bits)) if instance else ""
    bits += "".join(words)
    cut = draw(st.sampled_from([0, 0, 1]))
    return bits[: len(bits) - cut] + draw(st.sampled_from(["", "", "0", "1"]))


@examples(300)
@given(task=tasks_with_codes(), data=st.data())
def test_every_message_survives_its_code_and_the_wire(task: Task, data: st.DataObject) -> None:
    book, announced, arms = Codebook(task), range(len(task.arms)), st.integers(0, len(task.arms) - 1)
    vote = Vote(data.draw(arms), data.draw(st.integers(0, len(task.instances) - 1)), data.draw(st.integers(0, 99)))
    elimination = Elimination(tuple(sorted(data.draw(st.sets(arms, min_size=1, max_size=len(task.arms) - 1)))))
    up, down = book.encode(vote), book.encode_down(announced, elimination)
    assert book.decode_up(unpack(pack(up)), player=0, sequence=vote.sequence) == vote
    assert book.decode_down(announced, unpack(pack(down))) == elimination
    assert len(up) == book.instance_bits + len(book.arm_words[vote.arm])
    assert len(down) == sum(len(book.arm_words[arm]) for arm in elimination.arms)


@examples(400)
@given(task=tasks_with_codes(), data=st.data())
def test_bits_are_a_vote_or_refused(task: Task, data: st.DataObject) -> None:
    book = Codebook(task)
    bits = data.draw(nearly_words(book, instance=True))
    try:
        vote = book.decode_up(bits, player=0, sequence=0)
    except MalformedMessage as error:
        event("refused")
        said = str(error)
        assert repr(bits[:20])[1:-1] in said
        arms, instances = range(len(task.arms)), range(len(task.instances))
        assert bits not in {book.encode(Vote(arm, instance)) for arm in arms for instance in instances}
    else:
        event("a vote")
        assert book.encode(vote) == bits


@examples(400)
@given(task=tasks_with_codes(), data=st.data())
def test_bits_are_an_elimination_or_refused(task: Task, data: st.DataObject) -> None:
    book = Codebook(task)
    bits = data.draw(nearly_words(book, instance=False))
    try:
        elimination = book.decode_down(range(len(task.arms)), bits)
    except MalformedMessage:
        event("refused")
        assert bits not in book.arm_words
    else:
        event("an elimination")
        assert book.encode_down((), elimination) == bits


@examples(200)
@given(task=tasks_with_codes(), data=st.data())
def test_an_elimination_names_its_arms_in_increasing_order_or_is_refused(task: Task, data: st.DataObject) -> None:
    book, announced = Codebook(task), range(len(task.arms) + 1)  # one more: all of the others may fall
    arms = data.draw(st.lists(st.integers(0, len(task.arms) - 1), max_size=5))
    bits = "".join(book.arm_words[arm] for arm in arms)
    if arms and arms == sorted(set(arms)):
        assert book.decode_down(announced, bits) == Elimination(tuple(arms))
    else:
        with pytest.raises(MalformedMessage):
            book.decode_down(announced, bits)
        with pytest.raises(MalformedMessage):
            book.encode_down(announced, Elimination(tuple(arms)))


@examples(300)
@given(bits=BITS)
def test_packing_keeps_every_bit_and_wastes_less_than_a_byte(bits: str) -> None:
    assert unpack(pack(bits)) == bits
    assert len(pack(bits)) == len(bits) // 8 + 1


@examples(300)
@given(task=tasks_with_codes())
def test_no_codeword_is_wasted_and_none_starts_another(task: Task) -> None:
    words = Codebook(task).arm_words
    assert len(words) == len(task.arms)
    for word in words:
        assert sum(other.startswith(word) for other in words) == 1
    if task.code != "binary":  # Kraft's sum is 1: no shorter code has the same words
        longest = max(map(len, words))
        assert sum(2 ** (longest - len(word)) for word in words) == 2**longest
    else:
        assert {len(word) for word in words} == {math.ceil(math.log2(len(words)))}


@examples(200)
@given(task=tasks_with_codes(["huffman"]))
def test_a_huffman_code_gives_the_heavier_arm_no_longer_word(task: Task) -> None:
    words = Codebook(task).arm_words
    for weight, word in zip(task.code_weights, words, strict=True):
        for other_weight, other in zip(task.code_weights, words, strict=True):
            assert weight <= other_weight or len(word) <= len(other)
