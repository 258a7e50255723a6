"""Whatever comes as bytes is a message, as somebody wrote it, or is refused with an error of our own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from amounts import examples
from outvote.core.codes import packed_bits, unpack
from outvote.core.errors import InvalidTask, MalformedMessage, OutvoteError
from outvote.core.task import Task
from outvote.log.expectation import Expectation, read_expectation
from outvote.log.records import (
    Coder,
    DownSubject,
    UpSubject,
    parse,
    read_switch,
    read_task,
    switch_record,
    task_record,
)

from .mutants import LONGEST_MESSAGE, SITES, eliminations, json_like, messages, mutated, subjects, tasks

SUBJECTS = ("outvote.up.ams.shop-1.life.0", "outvote.up.ams.shop-1.life.17", "outvote.down.shop-1.task") + (
    "outvote.live.shop-1.stop",
    "outvote.down.shop-1.delete",
    "outvote.down.shop-1.elim.0",
    "outvote.live.shop-1.kill.3",
    "outvote.down.shop-1.expect.9007199254740992",
)


def brief(error: Exception) -> None:
    """What is refused may be long; what is said of it is not."""
    length = len(str(error))
    assert length <= LONGEST_MESSAGE


@examples(60)
@given(task=tasks(), data=st.data())
def test_a_payload_is_the_one_writing_of_a_message_or_is_refused(task: Task, data: st.DataObject) -> None:
    coder, edge = Coder(task), data.draw(st.sampled_from(SITES))
    sound = data.draw(messages(task, edge))
    payload = data.draw(mutated(coder.up(sound), coder.up(data.draw(messages(task, edge)))))
    try:
        found = coder.read_up(UpSubject(edge, "shop-1", "life", sound.sequence), payload)
    except OutvoteError as error:
        event("refused")
        brief(error)
    else:
        event("read")
        assert coder.up(found) == payload
        assert packed_bits(payload) == len(unpack(payload))


@examples(60)
@given(task=tasks(), data=st.data())
def test_a_payload_is_the_one_writing_of_an_elimination_or_is_refused(task: Task, data: st.DataObject) -> None:
    coder, announced = Coder(task), tuple(range(len(task.arms)))
    while len(announced) > 1:
        sound = coder.down(announced, data.draw(eliminations(announced)))
        payload = data.draw(mutated(sound, coder.down(announced, data.draw(eliminations(announced)))))
        try:
            found = coder.read_down(announced, payload)
        except OutvoteError as error:
            event("refused")
            brief(error)
            return
        event("read")
        assert coder.down(announced, found) == payload
        assert set(found.arms) < set(announced)
        announced = tuple(arm for arm in announced if arm not in found.arms)


@examples(120)
@given(subject=subjects(*SUBJECTS) | st.text(max_size=40))
def test_a_subject_is_the_one_writing_of_a_place_or_is_refused(subject: str) -> None:
    try:
        found = parse(subject)
    except MalformedMessage as error:
        event("refused")
        brief(error)
    else:
        event("read")
        assert str(found) in (subject, subject.replace("outvote.live", "outvote.down", 1))
        tokens = [found.task_id, *((found.edge, found.incarnation) if isinstance(found, UpSubject) else ())]
        for token in tokens:  # any other would be a wildcard to the engine, or nothing
            assert token
            assert not set(token) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
        assert isinstance(found, UpSubject) or found.number is None or found.number < 10**16


@examples(120)
@given(task=tasks(), data=st.data())
def test_a_record_is_a_task_or_is_refused(task: Task, data: st.DataObject) -> None:
    payload = data.draw(json_like(task.to_json()))
    try:
        found = read_task(payload)
    except (InvalidTask, MalformedMessage) as error:
        event("refused")
        brief(error)
    else:
        event("read")
        assert read_task(task_record(found)) == found
        Coder(found)


@examples(60)
@given(payload=mutated(b"true", b"false", b"null", b"1", b"{}", b"true\n"))
def test_a_switch_is_on_or_off_or_is_refused(payload: bytes) -> None:
    try:
        found = read_switch(payload)
    except MalformedMessage as error:
        brief(error)
    else:
        assert switch_record(found) == payload


@examples(60)
@given(payload=json_like({"traffic": 50000, "baseline": 0.1, "difference": 0.02}))
def test_an_expectation_can_be_or_is_refused(payload: bytes) -> None:
    try:
        found = read_expectation(payload)
    except (InvalidTask, MalformedMessage) as error:
        event("refused")
        brief(error)
    else:
        event("read")
        assert read_expectation(found.record()) == found
        assert isinstance(found, Expectation)


LARGE: dict[str, Any] = {"arms": 400, "players": 3, "epsilon": 0.9, "delta": 0.5, "code": "huffman"}


@pytest.mark.parametrize("fault", [b"\xff", b"\x01", b"\x80", b"\xaa\x55", b"\0\x80"])
@pytest.mark.parametrize("protocol", ["dme", "tally"])
def test_the_largest_record_is_refused_in_few_words(protocol: str, fault: bytes) -> None:
    """Of a code whose longest word has hundreds of bits: what is refused at once costs next to nothing to refuse."""
    epsilon = 0 if protocol == "tally" else 0.9
    weights = [1.5**each for each in range(400)]
    task = Task(**{**LARGE, "epsilon": epsilon, "protocol": protocol, "code_weights": weights, "name": "large"})
    coder, payload = Coder(task), fault * (64 * 1024 // len(fault))
    for read in (
        lambda: coder.read_up(UpSubject("ams", "large-1", "life", 0), payload),
        lambda: coder.read_down(range(400), payload),
        lambda: read_task(payload),
        lambda: read_switch(payload),
        lambda: read_expectation(payload),
    ):
        with pytest.raises(OutvoteError) as refused:
            read()
        brief(refused.value)


def test_numbers_of_subjects_are_those_that_can_follow() -> None:
    assert parse("outvote.up.ams.shop-1.life.9999999999999999") == UpSubject("ams", "shop-1", "life", 9999999999999999)
    assert parse("outvote.live.shop-1.elim.0") == DownSubject("shop-1", "elim", 0)
