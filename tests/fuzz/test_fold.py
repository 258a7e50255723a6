"""Whatever is in the log, a server reads on: what is no record of ours changes nothing, and the next one counts."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from amounts import examples
from outvote.core.errors import MalformedMessage
from outvote.core.task import Task
from outvote.log.catch_up import encode, read_answer, read_question
from outvote.log.events import MessageStored, TaskUnreadable
from outvote.log.log import Record
from outvote.log.log_state import LARGEST_ANSWER, LogState, TaskState
from outvote.log.records import UpSubject, switch_record, task_record

from .mutants import SITES, TOKENS, WEIRD, eliminations, json_like, messages, mutated, subjects, tasks

EXPECTATION = b'{"traffic": 50000, "baseline": 0.1, "difference": 0.02}'
PLACES = ("outvote.up.ams.shop-1.life.0", "outvote.up.fra.shop-1.life.2", "outvote.up.x.shop-1.life.1") + (
    "outvote.down.shop-1.elim.0",
    "outvote.down.shop-1.elim.1",
    "outvote.down.shop-1.stop",
    "outvote.down.shop-1.kill.0",
    "outvote.down.shop-1.expect.1",
    "outvote.down.shop-1.discount.0",
    "outvote.down.shop-2.task",
    "outvote.down.shop-2.delete",
)


def state(task: TaskState) -> dict[str, Any]:
    """All that a record may change, but what counts refusals."""
    server = {key: value for key, value in task.server.snapshot().items() if key not in ("refused", "checksum")}
    ledger = {key: value for key, value in vars(task.ledger).items() if key != "_codebook"}
    return {
        "server": server,
        "ledger": json.loads(json.dumps(ledger)),
        "announced": task.announced,
        "eliminations": list(task.eliminations),
        "due": list(task.due),
        "payloads": list(task.payloads),
        "said": (task.stopped, task.killed, task.expectation, list(task.discounted)),
        "highest": dict(task.highest),
        "counts": dict(task.counts),
    }


def whole(fold: LogState) -> dict[str, Any]:
    return {task_id: state(task) for task_id, task in fold.tasks.items()}


@st.composite
def folds(draw: st.DrawFn, task: Task) -> LogState:
    """A server that has read of a task, some messages of it, and perhaps an elimination."""
    fold = LogState()
    fold.apply(Record("outvote.down.shop-1.task", task_record(task), 1, 0.0))
    folded = fold.tasks["shop-1"]
    for _ in range(draw(st.integers(0, 6))):
        edge = draw(st.sampled_from(SITES))
        message = draw(messages(task, edge))
        where = UpSubject(edge, "shop-1", "life", message.sequence)
        fold.apply(Record(str(where), folded.coder.up(message), fold.read + 1, 0.0))
    if len(folded.announced) > 1 and draw(st.booleans()):
        payload = folded.coder.down(folded.announced, draw(eliminations(folded.announced)))
        fold.apply(Record("outvote.down.shop-1.elim.0", payload, fold.read + 1, 0.0))
    return fold


@st.composite
def records(draw: st.DrawFn, fold: LogState, task: Task) -> tuple[str, bytes]:
    """A subject and a payload, each of which may be at fault, and which need not belong together."""
    subject = draw(subjects(*PLACES))
    folded = fold.tasks.get("shop-1")
    sound = [task_record(task), switch_record(True), EXPECTATION, b'{"edge": "ams"}', b"{}"]
    if folded is not None:
        sound.append(folded.coder.up(draw(messages(task, draw(st.sampled_from(SITES))))))
        if len(folded.announced) > 1:
            sound.append(folded.coder.down(folded.announced, draw(eliminations(folded.announced))))
    payload = draw(mutated(*sound) | st.sampled_from(sound) | json_like({**task.to_json(), "name": "other"}))
    return subject, payload


@examples(60)
@given(task=tasks(), data=st.data())
def test_what_is_no_record_of_ours_changes_nothing(task: Task, data: st.DataObject) -> None:
    fold = data.draw(folds(task))
    for _ in range(data.draw(st.integers(1, 6))):
        subject, payload = data.draw(records(fold, task))
        before, unknown = whole(fold), fold.unknown
        sequence = fold.read + 1
        events = fold.apply(Record(subject, payload, sequence, 0.0))
        assert fold.read == sequence
        after = whole(fold)
        match events:
            case [] if fold.unknown > unknown:
                event("unknown")
                assert fold.unknown == unknown + 1
                assert after == before
            case [MessageStored(task_id, counted=False)]:  # a message of an edge that is none: it is counted
                event("refused")
                assert ".up." in subject
                known, told = before.pop(task_id), after.pop(task_id)
                assert {key for key in known if known[key] != told[key]} <= {"highest", "counts"}
                assert after == before
            case _:
                event("read")
                assert fold.unknown == unknown
        for each in fold.tasks.values():
            if (proposal := each.proposal()) is not None:
                assert set(each.coder.read_down(each.announced, proposal.payload).arms) < set(each.announced)
    folded = fold.tasks.get("shop-1")
    if folded is not None:  # it goes on: the next message counts
        message = data.draw(messages(task, "ams"))
        count = folded.counts.get(("ams", "new-life"), 0)
        where = UpSubject("ams", "shop-1", "new-life", message.sequence)
        stored, *_ = fold.apply(Record(str(where), folded.coder.up(message), fold.read + 1, 0.0))
        assert isinstance(stored, MessageStored)
        assert folded.counts["ams", "new-life"] == count + 1


@examples(40)
@given(task=tasks(), data=st.data())
def test_a_task_that_can_be_told_of_can_be_run(task: Task, data: st.DataObject) -> None:
    """However odd its figures are: it counts messages, and can be described."""
    from outvote.server.admin.views import description

    fold = LogState()
    odd = data.draw(st.sampled_from(["epsilon", "delta", "privacy_budget", "reward_window", "instances", "floor"]))
    record = {**task.to_json(), odd: data.draw(st.sampled_from(WEIRD) | st.floats(0, 1) | st.floats(0, 20))}
    payload = json.dumps(record).encode()
    (made,) = fold.apply(Record("outvote.down.shop-1.task", payload, 1, 0.0))
    if isinstance(made, TaskUnreadable):
        event("refused")
        return
    event("read")
    folded = fold.tasks["shop-1"]
    for edge in (*SITES, *SITES, *SITES):
        message = data.draw(messages(folded.task, edge))
        where = UpSubject(edge, "shop-1", "life", message.sequence)
        fold.apply(Record(str(where), folded.coder.up(message), fold.read + 1, 0.0))
    description(folded)


QUESTIONS: Any = st.dictionaries(
    st.sampled_from(["shop-1", "shop-2", "", "\ud800", "*"]) | TOKENS,
    st.integers(0, 10**16) | st.sampled_from([-1, 2**70]),
    max_size=4,
)


@examples(30)
@given(task=tasks(), known=QUESTIONS, edge=TOKENS, data=st.data())
def test_whatever_an_edge_says_it_knows_it_is_answered_or_refused(
    task: Task, known: dict[str, int], edge: str, data: st.DataObject
) -> None:
    fold = data.draw(folds(task))
    before = whole(fold)
    reports = {"shop-1": {"decisions": 1000, "notices": ["late_rewards"]}}
    sound = {"incarnation": data.draw(TOKENS), "tasks": known, "reports": reports}
    try:
        question = read_question(data.draw(st.just(json.dumps(sound).encode()) | json_like(sound)))
    except MalformedMessage:
        event("refused")
        return
    event("answered")
    answer = fold.catch_up(edge, question)
    sent = encode(answer)
    assert len(sent) <= 2 * LARGEST_ANSWER
    assert encode(read_answer(sent)) == sent
    assert whole(fold) == before
    assert set(answer.deleted) <= set(question.tasks)
