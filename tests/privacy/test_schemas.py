"""The closed schemas: everything that is really stored, sent or logged is in them, and nothing is in them besides."""

from __future__ import annotations

import ast
import asyncio
import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

import outvote
from outvote.core import protocols
from outvote.core.decisions import Capacity, Ticket
from outvote.core.errors import MalformedMessage, UnknownDecision
from outvote.core.messages import Elimination, Tally, Vote
from outvote.core.task import Task
from outvote.edge.site import Edge
from outvote.edge.store import META_KEYS, EdgeStore
from outvote.log.catch_up import Question, encode
from outvote.log.expectation import Expectation
from outvote.log.log import Record
from outvote.log.log_state import LogState
from outvote.log.records import (
    Coder,
    DownSubject,
    UpSubject,
    discount_record,
    parse,
    read_switch,
    switch_record,
    task_record,
)
from outvote.log.site_report import Notice
from outvote.privacy import schemas

SOURCE = Path(outvote.__file__).parent


def a_task(protocol: str, **options: Any) -> Task:
    hard = {} if protocol == "tally" else {"epsilon": 0.99, "delta": 0.9}
    return Task(
        **{
            "arms": 3,
            "players": ["paris", "lima"],
            "epsilon": 0.0,
            "delta": 0.1,
            "protocol": protocol,
            "reward_window": 5.0,
            **hard,
            **options,
        }
    )


def snapshots_of(task: Task, seed: int, steps: int) -> Iterator[dict[str, Any]]:
    """What a player's state is in a run at random: delayed, missing, late and unknown rewards, little memory, news."""
    rng = random.Random(seed)
    player = protocols.player(task, "paris", rng=rng)
    player.decisions.share(Capacity(4_000))
    waiting: list[Ticket] = []
    now = 0
    for _ in range(steps):
        what = rng.random()
        if what < 0.5:
            waiting.append(player.decide(now))
        elif what < 0.95 and waiting:
            ticket = waiting.pop(rng.randrange(len(waiting)) if rng.random() < 0.5 else -1)
            with suppress(UnknownDecision):
                player.reward(ticket._replace(place=rng.choice((0, ticket.place, 9))), rng.random(), now)
        elif what < 0.99:
            now += rng.randrange(1000)
            player.tick(now)
        elif rng.random() < 0.15:
            player.receive(Elimination((rng.randrange(3),)))
        if rng.random() < 0.03:
            yield player.snapshot()


TASKS = {
    "votes": [a_task("dme"), a_task("edme", instances=2), a_task("edme", reward_window=1)],
    "tally": [a_task("tally"), a_task("tally", privacy_budget=1.0, floor=4)],
}
STATES = {"votes": schemas.VOTES_STATE, "tally": schemas.TALLY_STATE}


@pytest.mark.parametrize("kind", ["votes", "tally"])
def test_a_players_state_has_the_fields_of_its_schema_and_no_other(kind: str) -> None:
    schema = STATES[kind]
    taken = [each for task in TASKS[kind] for seed in range(3) for each in snapshots_of(task, seed, 1500)]
    for each in taken:
        assert schemas.unexplained(schema, each) == []
    assert schemas.seen(taken) == {each.path for each in schema.fields}


def test_a_field_too_many_and_a_value_of_another_kind_are_found() -> None:
    snapshot = protocols.player(a_task("dme"), "paris").snapshot()
    assert schemas.unexplained(schemas.VOTES_STATE, {**snapshot, "last_user": "anna"}) == [
        "last_user is no field of: State of a player of `dme` or `edme`"
    ]
    decisions = snapshot["decisions"] | {"groups": [["Ab12_-Zz", 0, None, [[0, 1, 2, 1.0, 1762.5]]]]}
    assert schemas.unexplained(schemas.VOTES_STATE, {**snapshot, "decisions": decisions}) == [
        "decisions.groups[].counts[].4 is no field of: State of a player of `dme` or `edme`"
    ]
    [found] = schemas.unexplained(schemas.VOTES_STATE, {**snapshot, "next_sequence": "anna"})
    assert found.startswith("next_sequence must be a whole number")
    assert schemas.unexplained_line({"time": "now", "level": "info", "event": "decided", "user": "anna"}) == [
        "user is no field of the log",
        "'decided' is no event of the log",
    ]


class ServerTarget:
    """In the place of the way to the engine: keeps what is asked."""

    connected = True

    def __init__(self) -> None:
        self.questions: list[Any] = []

    async def ask(self, edge: str, question: Question) -> None:
        self.questions.append(json.loads(encode(question)))


def test_a_store_has_the_tables_columns_and_fields_of_its_schema_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "paris.db"
    tasks = {
        "votes": a_task("edme", name="a"),
        "tally": a_task("tally", name="b", fallback="0"),
    }
    with EdgeStore(path) as store:
        edge = Edge("paris", store, clock=lambda: 0.0)
        for task in tasks.values():
            edge.on_record(f"outvote.live.{task.name}-1.task", task_record(task))
            for _ in range(100):
                edge.reward(edge.find(task.name), edge.decide(edge.find(task.name)), 1.0)
        edge.flush()
        asked = ServerTarget()
        edge.log = asked  # type: ignore[assignment]
        asyncio.run(edge.catch_up())
        with closing(sqlite3.connect(path)) as other:
            found = dict(other.execute("SELECT name, type FROM sqlite_master"))
            columns = {f"{table}.{row[1]}" for table in found for row in other.execute(f"PRAGMA table_info({table})")}
            keys = {key for (key,) in other.execute("SELECT key FROM meta")}
            records = [json.loads(text) for (text,) in other.execute("SELECT record FROM tasks")]
            bodies = [json.loads(text) for (text,) in other.execute("SELECT body FROM snapshots ORDER BY task_id")]
        lock = json.loads(path.with_name("paris.db.lock").read_text())
    assert set(found.values()) == {"table"}
    assert columns == {each.path for each in schemas.STORE.fields}
    assert keys == set(META_KEYS)
    field = schemas.STORE.by_path["meta.key"]
    assert all(f"`{key}`" in field.what for key in META_KEYS)
    for schema, state, body in zip((schemas.VOTES_STATE, schemas.TALLY_STATE), tasks, bodies, strict=True):
        assert schemas.unexplained(schema, body["player"]) == [], state
        assert schemas.unexplained(schemas.SAVED, {**body, "player": {}}) == []
        assert set(body) == {each.path.removesuffix("[]") for each in schemas.SAVED.fields}
    for record in records:
        assert schemas.unexplained(schemas.TASK_RECORD, record) == []
    assert schemas.unexplained(schemas.LOCK, lock) == []
    assert set(lock) == {each.path for each in schemas.LOCK.fields}
    [question] = asked.questions
    assert schemas.unexplained(schemas.QUESTION, question) == []
    assert schemas.seen([question]) == {each.path for each in schemas.QUESTION.fields}


def test_a_store_keeps_no_time_but_when_a_group_closes(tmp_path: Path) -> None:
    """The same events at other times leave the same rows but for that: a window and a random delay after the last
    decision of a group."""
    kept = []
    for clock, wall in ((5.0, 1e9), (86_400.123, 1.7e9)):
        with EdgeStore(tmp_path / f"{clock}.db") as store:
            edge = Edge("paris", store, clock=lambda at=clock: at, wall_clock=lambda at=wall: at, rng=random.Random(1))  # type: ignore[misc]
            for task in (a_task("tally", name="b", reward_window=60.0), a_task("dme", name="a", reward_window=60.0)):
                edge.on_record(f"outvote.live.{task.name}-1.task", task_record(task))
                for _ in range(40):
                    edge.reward(edge.find(task.name), edge.decide(edge.find(task.name)), 1.0)
            edge.flush()
            found = [json.loads(store.snapshot(task_id) or "") for task_id in ("a-1", "b-1")]
            for saved in found:
                for group in saved["player"]["decisions"]["groups"]:
                    delay = 0 if group[2] is None else group[2] - int(wall * 1000) - 60_000
                    group[2] = None if group[2] is None else 0 < delay <= 6_000
                saved["player"].pop("checksum")
            kept.append([found, store.messages("a-1"), store.messages("b-1")])
    assert kept[0] == kept[1]
    assert True in [group[2] for group in kept[0][0][1]["player"]["decisions"]["groups"]]


def test_an_upward_message_has_the_fields_of_its_schema_and_no_other() -> None:
    paths = {each.path for each in schemas.UPWARD.fields}
    assert {f"subject.{name}" for name in UpSubject._fields} <= paths
    payload = {each.name for kind in (Vote, Tally) for each in fields(kind)} - {"sequence"}  # that is in the subject
    assert {each for each in paths if each.startswith("payload.")} == {f"payload.{name}" for name in (*payload, "end")}
    assert len(paths) == len(UpSubject._fields) + len(payload) + 3  # the end mark, the header, the reply


def test_downward_records_have_the_fields_of_their_schemas_and_no_other() -> None:
    tasks = [task for those in TASKS.values() for task in those] + [a_task("dme", tolerate=0, fallback="0")]
    liars = Task(arms=["a", "b"], players=5, epsilon=0.1, delta=0.1, protocol="tally", tolerate=1)
    huffman = a_task("dme", code="huffman", code_weights=[1, 2, 3])
    records = [json.loads(task_record(task)) for task in (*tasks, liars, huffman)]
    for record in records:
        assert schemas.unexplained(schemas.TASK_RECORD, record) == []
    assert schemas.seen(records) == {each.path for each in schemas.TASK_RECORD.fields}
    expected = json.loads(Expectation(traffic=5.0, baseline=0.1, difference=0.1).record())
    discount = json.loads(discount_record("paris"))
    assert read_switch(switch_record(True))
    told = {f"expect.{name}" for name in expected} | {f"discount.{name}" for name in discount}
    assert {each.path for each in schemas.DOWNWARD.fields} == told | {"elim.payload", "kill", "stop", "delete"}
    kinds = {each.path.partition(".")[0] for each in schemas.DOWNWARD.fields} | {"task"}
    source = (SOURCE / "log" / "records.py").read_text(encoding="utf-8")
    words = {each.value for each in ast.walk(ast.parse(source)) if isinstance(each, ast.Constant)}
    for kind in {each for each in words if isinstance(each, str) and each.isalpha()}:
        accepted = False
        for text in (f"outvote.down.a-1.{kind}", f"outvote.down.a-1.{kind}.0"):
            try:
                accepted |= isinstance(parse(text), DownSubject)
            except MalformedMessage:
                continue
        assert accepted == (kind in kinds), kind


def test_an_answer_has_the_fields_of_its_schema_and_no_other() -> None:
    fold = LogState()
    mine, other = a_task("dme", name="a"), a_task("dme", name="b", players=["lima", "oslo"])
    coder = Coder(mine)
    log = [
        ("outvote.down.a-1.task", task_record(mine)),
        ("outvote.down.b-1.task", task_record(other)),
        ("outvote.down.c-1.task", task_record(a_task("tally", name="c"))),
        ("outvote.down.c-1.delete", b"{}"),
        ("outvote.up.paris.a-1.0123456789abcdef.0", coder.up(Vote(1, 0, 0))),
        ("outvote.down.a-1.elim.0", coder.down((0, 1, 2), Elimination((1,)))),
        ("outvote.down.a-1.kill.0", switch_record(True)),
    ]
    for number, (subject, payload) in enumerate(log, 1):
        fold.apply(Record(subject, payload, number, 0.0))
    answer = fold.catch_up("paris", Question("0123456789abcdef", {"c-1": 0}))
    told = json.loads(encode(msgspec.structs.replace(answer, more=True, ask_again=30.0)))
    assert json.loads(task_record(mine)) == told["tasks"]["a-1"].pop("record")
    assert schemas.unexplained(schemas.ANSWER, told) == []
    assert schemas.seen([told]) == {each.path for each in schemas.ANSWER.fields} - {"tasks.*.record"}


def test_the_log_has_the_events_and_fields_of_its_schema_and_no_other() -> None:
    """Of every call that logs something: its words and its keywords; and of what is passed on, the keys."""
    names = {"failed", "interrupted", "library", *get_args(Notice)}  # last words, of libraries, and warnings of rewards
    keys: set[str] = {"time", "level", "event", "text"}
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "observability.logs import" not in text:
            continue
        for call in ast.walk(ast.parse(text)):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
                continue
            if call.func.id != "event":
                continue
            inside = [part for each in call.args for part in ast.walk(each)]
            names |= {each.value for each in inside if isinstance(each, ast.Constant) and isinstance(each.value, str)}
            keys |= {each.arg for each in call.keywords if each.arg}
            for each in call.keywords:
                if each.arg is None:
                    keys |= {str(key.value) for key in getattr(each.value, "keys", ()) if isinstance(key, ast.Constant)}
    passed_on = {
        "version",
        "python",
        "nats",
        "engine",
        "task",
        "id",
        "variants",
        "number",
        "reason",
    }
    of_libraries = {"logger", "says", "error", "place"}
    assert names <= schemas.LOG_EVENTS, names - schemas.LOG_EVENTS
    indirect = {"task_killed", "task_revived", "sites_first_heard", "sites_silent", "sites_back"}
    assert names | indirect >= schemas.LOG_EVENTS, schemas.LOG_EVENTS - names
    assert keys | passed_on | of_libraries == set(schemas.LOG_FIELDS)


def test_every_field_says_what_it_is_and_why_it_may_be_there() -> None:
    for schema in schemas.SCHEMAS:
        paths = [each.path for each in schema.fields]
        assert len(paths) == len(set(paths))
        for each in schema.fields:
            assert each.kind in schemas.KINDS
            assert each.what
            assert each.why
