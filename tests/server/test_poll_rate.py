"""Very many edges: they ask more seldom, less where nobody answers, and are told little of the tasks of others."""

from __future__ import annotations

import asyncio
import gc
import json
from typing import Any

import pytest

from faults.simulated.clock import run as in_virtual_time
from helpers.edge_http import host, task
from helpers.operating import TALLY, operated
from helpers.processes import comes
from outvote.core.errors import MalformedMessage
from outvote.edge.api import EdgeApi
from outvote.edge.site import TICK, Edge
from outvote.log.catch_up import ASK_EVERY, LONGEST_PAUSE, SKIP_ELIMINATIONS, Answer, Question, encode, read_answer
from outvote.log.log import Record
from outvote.log.log_state import LogState
from outvote.log.memory import MemoryEngine
from outvote.log.records import task_record
from outvote.server.liveness import LEAST_HEARD, QUESTIONS, SILENT_AFTER, Liveness

MANY = 1_000_000
NAMED: dict[str, Any] = {**TALLY, "sites": ["ams", "fra"]}

# ---- what a server tells


@pytest.mark.parametrize("alive", [0, 1, 5_000, int(ASK_EVERY * QUESTIONS)])
def test_a_fleet_whose_questions_can_be_answered_asks_as_always(alive: int) -> None:
    pace = Liveness(0.0)
    pace.set_period(alive, 0.0)
    assert (pace.period, pace.silent_after) == (ASK_EVERY, SILENT_AFTER)


def test_a_million_edges_ask_no_more_often_than_can_be_answered() -> None:
    pace = Liveness(0.0)
    pace.set_period(MANY, 0.0)
    assert MANY / pace.period <= QUESTIONS
    assert pace.silent_after == 2.5 * pace.period


def test_servers_side_by_side_share_the_questions() -> None:
    pace = Liveness(0.0)
    pace.questions, pace.answers = LEAST_HEARD, LEAST_HEARD // 4
    pace.set_period(MANY, 0.0)
    assert pace.period == MANY / 4 / QUESTIONS


def test_nobody_is_told_to_wait_for_longer_than_edges_believe() -> None:
    pace = Liveness(0.0)
    pace.set_period(100 * MANY, 0.0)
    assert pace.period == LONGEST_PAUSE


def test_an_edge_that_was_told_to_wait_is_not_silent_when_others_need_not_any_more() -> None:
    pace = Liveness(0.0)
    pace.set_period(MANY, 0.0)
    long = pace.silent_after
    pace.set_period(10, 5.0)
    assert (pace.period, pace.silent_after) == (ASK_EVERY, long)
    pace.set_period(10, long + 1)
    assert (pace.period, pace.silent_after) == (ASK_EVERY, SILENT_AFTER)


# ---- what an edge makes of it


def answer_with(**said: object) -> Answer:
    """As an edge reads it."""
    return read_answer(json.dumps({"read": 0, "tasks": {}, **said}).encode())


@pytest.mark.parametrize(("told", "pause"), [(None, ASK_EVERY), (ASK_EVERY, ASK_EVERY), (60, 60), (3600, 3600)])
def test_an_edge_keeps_the_pause_that_a_server_wants(edge: Edge, told: float | None, pause: float) -> None:
    edge.apply_catch_up(answer_with(ask_again=told))
    assert edge._ask_again == pause


@pytest.mark.parametrize("told", [-1, 0, ASK_EVERY - 1, LONGEST_PAUSE + 1, 1e300, "60", True, [60]])
def test_an_answer_with_a_pause_that_is_out_of_bounds_or_no_number_is_refused(told: object) -> None:
    with pytest.raises(MalformedMessage, match="ask_again"):
        answer_with(ask_again=told)


def test_an_edge_waits_as_it_was_told_and_not_all_edges_ask_at_once(memory: MemoryEngine, edge: Edge) -> None:
    async def run() -> None:
        async with operated(memory) as (server, _):
            await edge.connect(memory.connect("ams"))
            assert await edge.catch_up()
            usual = [edge._pause(True, False) for _ in range(200)]
            assert 0.75 * ASK_EVERY <= min(usual) < max(usual) <= ASK_EVERY
            assert len(set(usual)) > 100
            assert edge._spread == 0
            server.monitor.liveness.period = 200.0
            assert await edge.catch_up()
            seldom = [edge._pause(True, False) for _ in range(200)]
            assert 150 <= min(seldom) < max(seldom) <= 200
            assert edge._spread == 200 - ASK_EVERY
            server.monitor.liveness.period = ASK_EVERY
            assert await edge.catch_up()
            assert edge._pause(True, False) <= ASK_EVERY
            await edge.stop()

    asyncio.run(run())


def test_where_nobody_listens_an_edge_asks_at_every_tick_and_where_nobody_answers_more_and_more_seldom(
    edge: Edge,
) -> None:
    assert edge._pause(False, False) == TICK
    longest = []
    for unanswered in range(1, 40):
        edge._unanswered = unanswered
        longest.append(max(edge._pause(False, False) for _ in range(200)))
    assert TICK < longest[0] <= 2 * TICK
    assert max(longest) <= ASK_EVERY
    assert min(longest[10:]) > ASK_EVERY / 2


def test_an_edge_counts_the_questions_that_were_let_lie(memory: MemoryEngine, edge: Edge) -> None:
    """Somebody listens and says nothing, as a server that has more questions than it can answer."""
    asked: list[str] = []

    async def run() -> None:
        await memory.connect("server").answer(lambda name, _: asked.append(name))
        await edge.start(memory.connect("ams"))
        await asyncio.sleep(60.0)
        await edge.stop()

    in_virtual_time(run())
    assert edge._unanswered == len(asked) >= 3


# ---- tasks of others


def fleet(named: int, *others: str) -> LogState:
    fold = LogState()
    for number in range(named):
        described = task("tally", name=f"task-{number}", players=[f"site-{each}" for each in range(50)])
        fold.apply(Record(f"outvote.down.task-{number}-1.task", task_record(described), number + 1, 0.0))
    for number, name in enumerate(others):
        described = task("tally", name=name, players=["ams", "fra"])
        fold.apply(Record(f"outvote.down.{name}-1.task", task_record(described), named + number + 1, 0.0))
    return fold


def test_of_tasks_of_others_an_edge_is_told_the_ids_once() -> None:
    fold = fleet(30, "shop", "page")
    answer = fold.catch_up("ams", Question("life", {}))
    assert set(answer.tasks) == {"shop-1", "page-1"}
    assert answer.others == tuple(f"task-{number}-1" for number in range(30))
    assert not answer.more
    assert len(encode(answer)) < sum(len(task_record(each.task)) for each in fold.tasks.values()) / 10
    again = fold.catch_up("ams", Question("life", dict.fromkeys(fold.tasks, 0)))
    assert set(again.tasks) == {"shop-1", "page-1"}
    assert (again.others, again.more) == ((), False)
    fold.apply(Record("outvote.down.task-7-1.delete", b"{}", 100, 0.0))
    assert fold.catch_up("ams", Question("life", {"task-7-1": SKIP_ELIMINATIONS})).deleted == ("task-7-1",)


def test_very_many_tasks_of_others_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outvote.log.log_state.LARGEST_ANSWER", 200)
    fold = fleet(100, "shop")
    known: dict[str, int] = {}
    answers: list[Answer] = []
    while not answers or answers[-1].more:
        answers.append(fold.catch_up("ams", Question("life", known)))
        known |= dict.fromkeys([*answers[-1].tasks, *answers[-1].others], 0)
        assert len(answers) < 50
    assert len(known) == 101
    assert len(answers) > 4


def test_an_edge_asks_nothing_for_news_of_others_and_forgets_them_when_they_are_deleted(
    memory: MemoryEngine, edge: Edge
) -> None:
    async def run() -> None:
        async with operated(memory) as (server, client):
            made = (await client.post("/v1/tasks", json={**NAMED, "name": "theirs", "sites": ["fra", "lis"]})).json()
            await client.post("/v1/tasks", json=NAMED)
            await edge.connect(memory.connect("ams"))
            assert await edge.catch_up()
            assert list(edge.tasks) == [NAMED["name"]]
            await client.post("/v1/tasks/theirs/stop")
            later = (await client.post("/v1/tasks", json={**NAMED, "name": "later", "sites": ["lis"]})).json()
            await comes(lambda: later["id"] in edge._not_ours)
            assert not edge.missed.is_set()
            assert edge._not_ours == {made["id"], later["id"]}
            for name in ("theirs", "later"):
                await client.delete(f"/v1/tasks/{name}")
            assert await edge.catch_up()
            assert edge._not_ours == set()
            assert server.state.unknown == 0
            await edge.stop()

    asyncio.run(run())


@pytest.mark.parametrize("others", ["task-1", {"task-1": 1}, [1], ["a.b"], ["*"], [None], 7])
def test_others_that_are_none_are_refused(edge: Edge, others: object) -> None:
    edge.apply_catch_up(answer_with(others=["task-1"]))
    with pytest.raises(MalformedMessage, match="others"):
        edge.apply_catch_up(answer_with(others=others))
    assert edge._not_ours == {"task-1"}


# ---- what is kept of tasks that are gone


def test_tasks_that_came_and_went_leave_no_objects_behind(edge: Edge) -> None:
    """One object left by each task would be as many as there were tasks. What is cached meanwhile is fewer: sqlite3
    alone keeps up to 200 dead references to cursors."""
    api, tasks = EdgeApi(edge), 300

    def play(number: int) -> None:
        protocol = ("tally", "dme", "edme")[number % 3]
        hosted = host(edge, task(protocol, name=f"task-{number}", players=["ams", f"site-{number}"]))
        for _ in range(20):
            api._decide(hosted.task.name)
            edge.reward(hosted, edge.decide(hosted), 1.0)
        edge.flush()
        edge.apply_catch_up(Answer(0, {}, deleted=(hosted.task_id,)))

    counts = []
    for number in range(3 * tasks):
        play(number)
        if number % tasks == tasks - 1:
            gc.collect()
            counts.append(len(gc.get_objects()))
    assert counts[2] - counts[0] < tasks, counts
