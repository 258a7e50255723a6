"""The log folded: the first stored elimination wins, and what is no record changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from outvote.core.errors import InvalidConfiguration
from outvote.core.messages import Elimination, Tally, Vote
from outvote.core.task import Task
from outvote.log.catch_up import Answer, Question, TaskUpdate, encode, read_answer
from outvote.log.events import EliminationDue
from outvote.log.log import Record
from outvote.log.log_state import LogState
from outvote.log.records import Coder, DownSubject, UpSubject, check_name, parse, task_record

EDGES = ("ams", "fra", "lis", "oslo")


def task(protocol: str, **options: Any) -> Task:
    epsilon = 0 if protocol == "tally" else 0.95
    chosen = {"arms": 4, "players": EDGES, "epsilon": epsilon, "delta": 0.1, "protocol": protocol, "name": "shop"}
    return Task(**{**chosen, "reward_window": 60, **options})


def test_what_is_stored_wins_over_what_a_server_thinks() -> None:
    described = task("dme", active_players=1)
    fold = LogState()
    fold.apply(Record(str(DownSubject("shop-1", "task")), task_record(described), 1, 0.0))
    found = fold.tasks["shop-1"]
    coder = Coder(described)
    fold.apply(Record(str(UpSubject("ams", "shop-1", "life", 0)), coder.up(Vote(3, 0, 0)), 2, 0.0))
    proposal = found.proposal()
    assert proposal is not None
    assert parse(proposal.subject) == DownSubject("shop-1", "elim", 0)
    assert coder.read_down(found.announced, proposal.payload) == Elimination((3,))
    fold.apply(Record(proposal.subject, coder.down(found.announced, Elimination((2,))), 3, 0.0))  # another was first
    assert found.eliminations == [Elimination((2,))]
    assert set(found.announced) == {0, 1, 3}
    proposal = found.proposal()
    assert proposal is not None
    assert parse(proposal.subject) == DownSubject("shop-1", "elim", 1)
    fold.apply(Record(proposal.subject, proposal.payload, 4, 0.0))
    assert set(found.announced) == {0, 1}
    assert set(found.server.remaining) == {0, 1}
    assert found.proposal() is None


def test_what_is_stored_wins_for_tallies_too() -> None:
    described = task("tally")
    fold = LogState()
    fold.apply(Record(str(DownSubject("shop-1", "task")), task_record(described), 1, 0.0))
    found = fold.tasks["shop-1"]
    payload = Coder(described).down(found.announced, Elimination((1, 2)))
    fold.apply(Record(str(DownSubject("shop-1", "elim", 0)), payload, 2, 0.0))
    assert found.server.remaining == (0, 3)
    assert found.server.snapshot()["evidence"]["contenders"] == [0, 3]


def test_what_is_no_message_is_counted_and_changes_nothing_else() -> None:
    fold = LogState()
    described = task("tally")
    fold.apply(Record(str(DownSubject("shop-1", "task")), task_record(described), 1, 0.0))
    before = fold.tasks["shop-1"].server.snapshot()
    for number, (subject, payload) in enumerate(
        [
            ("outvote.up.ams.shop-1.life.0", b""),
            ("outvote.up.ams.shop-1.life.1", b"\xff\xff\xff"),
            ("outvote.up.nobody.shop-1.life.2", Coder(described).up(Tally(0, 1, 3, 2))),
        ]
    ):
        fold.apply(Record(subject, payload, number + 2, 0.0))
    found = fold.tasks["shop-1"]
    assert found.refused == 3
    assert {**found.server.snapshot(), "refused": 0, "checksum": ""} == {**before, "checksum": ""}
    for subject in (
        "outvote.up.ams.gone-2.life.0",
        "outvote.down.shop-1.elim.7",
        "outvote.down.x",
        "other",
        "outvote.up.a.b.c.01",
    ):
        fold.apply(Record(subject, b"\x80", 9, 0.0))
    assert fold.unknown == 5
    assert list(fold.tasks) == ["shop-1"]


def test_a_task_stops_and_is_deleted_and_does_not_come_back() -> None:
    fold = LogState()
    described = task("dme", active_players=1)
    fold.apply(Record("outvote.down.shop-1.task", task_record(described), 1, 0.0))
    vote = Record(str(UpSubject("ams", "shop-1", "life", 0)), Coder(described).up(Vote(3, 0, 0)), 2, 0.0)
    assert EliminationDue("shop-1", Elimination((3,))) in fold.apply(vote)
    assert fold.tasks["shop-1"].proposal() is not None
    fold.apply(Record("outvote.down.shop-1.stop", b"{}", 3, 0.0))
    assert fold.tasks["shop-1"].proposal() is None
    assert not fold.tasks["shop-1"].running
    fold.apply(Record("outvote.down.shop-1.delete", b"{}", 4, 0.0))
    fold.apply(Record("outvote.down.shop-1.task", task_record(described), 5, 0.0))
    assert not fold.tasks
    answer = fold.catch_up("ams", Question("life", {"shop-1": 0, "heard-of-by-nobody": 0}))
    assert answer == Answer(read=5, tasks={}, deleted=("shop-1",))


def test_catching_up_tells_all_that_an_edge_must_know() -> None:
    described = task("dme", active_players=1)
    fold = LogState()
    fold.apply(Record("outvote.down.shop-1.task", task_record(described), 1, 0.0))
    coder = Coder(described)
    fold.apply(Record(str(UpSubject("ams", "shop-1", "life", 0)), coder.up(Vote(3, 0, 0)), 2, 0.0))
    fold.apply(Record(str(UpSubject("ams", "shop-1", "life", 1)), coder.up(Vote(2, 0, 1)), 3, 0.0))
    proposal = fold.tasks["shop-1"].proposal()
    assert proposal is not None
    fold.apply(Record(proposal.subject, proposal.payload, 4, 0.0))
    known = read_answer(encode(fold.catch_up("ams", Question("life", {})))).tasks["shop-1"]
    assert Task.from_json(known.record or {}) == described
    assert known.eliminations == (proposal.payload,)
    assert (known.highest, known.stopped) == (1, False)
    assert fold.catch_up("ams", Question("another life", {})).tasks["shop-1"].highest == -1
    again = fold.catch_up("ams", Question("life", {"shop-1": 1}))
    assert again.tasks == {"shop-1": TaskUpdate(stopped=False, highest=1, count=2)}


def test_an_answer_that_would_be_too_large_comes_in_parts() -> None:
    fold = LogState()
    for number in range(400):
        described = task("tally", name=f"task-{number}", arms=[f"{number}-{arm}-{'x' * 40}" for arm in range(20)])
        fold.apply(Record(f"outvote.down.task-{number}-1.task", task_record(described), number + 1, 0.0))
    known: dict[str, int] = {}
    sizes = []
    while True:
        answer = fold.catch_up("ams", Question("life", known))
        known |= dict.fromkeys(answer.tasks, 0)
        sizes.append(len(encode(answer)))
        if not answer.more:
            break
    assert len(known) == 400
    assert 2 <= len(sizes) <= 4
    assert max(sizes) < 300 * 1024


def test_of_two_tasks_with_one_name_the_first_in_the_log_has_it() -> None:
    fold = LogState()
    fold.apply(Record("outvote.down.shop-1.task", task_record(task("dme")), 1, 0.0))
    fold.apply(Record("outvote.down.shop-2.task", task_record(task("tally")), 2, 0.0))
    assert list(fold.tasks) == ["shop-1"]
    assert fold.catch_up("ams", Question("life", {"shop-2": 0})).deleted == ("shop-2",)
    fold.apply(Record("outvote.down.shop-1.delete", b"{}", 3, 0.0))
    fold.apply(Record("outvote.down.shop-3.task", task_record(task("tally")), 4, 0.0))
    assert list(fold.tasks) == ["shop-3"]


@pytest.mark.parametrize("name", ["", "a.b", "a b", "x" * 65, "ä", ">", "*", 7, None])
def test_a_name_that_cannot_stand_in_a_subject_is_refused(name: object) -> None:
    with pytest.raises(InvalidConfiguration, match="1 to 64 letters"):
        check_name("an edge's name", name)
