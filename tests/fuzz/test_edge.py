"""Whatever a server says, live or when it is asked, an edge goes on deciding and learning, and can be started again."""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
from hypothesis import event, given
from hypothesis import strategies as st

from amounts import examples
from helpers.edge_http import CLOSED, ask, wait
from outvote.core.errors import OutvoteError
from outvote.core.task import Task
from outvote.edge.bodies import TaskList
from outvote.edge.site import Edge
from outvote.edge.store import EdgeStore, Save
from outvote.log.catch_up import Answer, Question, encode, read_answer, read_question
from outvote.log.log import Log
from outvote.log.records import Coder, task_record

from .mutants import eliminations, json_like, mutated, subjects, tasks

PLACES = ("outvote.live.shop-1.elim.0", "outvote.live.shop-1.elim.1", "outvote.live.shop-1.stop") + (
    "outvote.live.shop-1.delete",
    "outvote.live.shop-1.kill.0",
    "outvote.live.shop-1.expect.0",
    "outvote.live.shop-1.discount.0",
    "outvote.live.shop-2.task",
    "outvote.live.shop-2.stop",
    "outvote.up.ams.shop-1.life.0",
)


@contextmanager
def an_edge(task: Task, folder: str) -> Iterator[Edge]:
    """One that hosts a task, and has events of it behind it."""
    with EdgeStore(Path(folder) / "edge.db") as store:
        edge = Edge("ams", store, clock=lambda: 0.0, wall_clock=lambda: 0.0, rng=random.Random(1))
        edge.on_record("outvote.live.shop-1.task", task_record(task))
        for _ in range(7):
            edge.reward(edge.find("shop"), edge.decide(edge.find("shop")), 1.0)
        wait(edge, CLOSED)
        edge.decide(edge.find("shop"))  # waits for its reward, or for others of its group
        edge.tick()
        yield edge


def state(edge: Edge) -> dict[str, Any]:
    return {
        name: (task.task_id, task.player.snapshot(), task.announced, task.eliminations, task.stopped, task.killed)
        for name, task in edge.tasks.items()
    } | {"store": edge.store.tasks()}


def goes_on(edge: Edge) -> None:
    """All of its tasks decide and learn, are shown as the API says they are, and are there after a new start."""
    for name in list(edge.tasks):
        edge.reward(edge.find(name), edge.decide(edge.find(name)), 0.0)
    wait(edge, CLOSED)
    edge.tick()
    msgspec.json.decode(ask(edge, "GET", "/v1/tasks").content, type=TaskList)
    again = Edge("ams", edge.store, clock=lambda: 0.0, wall_clock=lambda: edge.now() / 1000, rng=random.Random(1))
    assert state(again) == state(edge)


@examples(25)
@given(task=tasks(), data=st.data())
def test_an_edge_hears_what_is_news_and_refuses_the_rest(task: Task, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder, an_edge(task, folder) as edge:
        for _ in range(data.draw(st.integers(1, 4))):
            coder, hosted = Coder(task), edge.tasks.get("shop")
            sound = [b"true", b"false", b"{}"]
            if hosted is not None and len(hosted.announced) > 1:
                sound.append(coder.down(hosted.announced, data.draw(eliminations(hosted.announced))))
            news = mutated(*sound) | json_like({**task.to_json(), "name": "other"})
            subject, payload = data.draw(subjects(*PLACES)), data.draw(news)
            before = state(edge)
            try:
                edge.on_record(subject, payload)
            except OutvoteError:
                event("refused")
                assert state(edge) == before
            else:
                event("heard")
        goes_on(edge)


class Answering:
    """A server that says what it was told to say: in place of a log, of which an edge asks nothing else here."""

    def __init__(self, said: bytes) -> None:
        self.said = said
        self.asked = 0

    async def ask(self, edge: str, question: Question) -> Answer:
        self.asked += 1
        assert self.asked < 9, "it is asked again and again"
        assert read_question(encode(question)) == question
        return read_answer(self.said)


@examples(40)
@given(task=tasks(), data=st.data())
def test_an_edge_survives_whatever_a_server_answers(task: Task, data: st.DataObject) -> None:
    coder = Coder(task)
    announced = tuple(range(len(task.arms)))
    elimination = b64encode(coder.down(announced, data.draw(eliminations(announced)))).decode()
    other = {**task.to_json(), "name": "other"}
    known: dict[str, Any] = {"stopped": False, "highest": 3, "count": 2, "killed": True, "switches": 1}
    answer = {
        "read": 9,
        "tasks": {"shop-1": known | {"eliminations": [elimination]}, "shop-2": known | {"record": other}},
        "deleted": data.draw(st.sampled_from([[], ["shop-1"], ["shop-3"]])),
        "more": data.draw(st.booleans()),
    }
    said = data.draw(st.just(json.dumps(answer).encode()) | json_like(answer))  # most faults are refused as a whole
    with tempfile.TemporaryDirectory() as folder, an_edge(task, folder) as edge:
        edge.log = cast(Log, Answering(said))
        assert asyncio.run(asyncio.wait_for(edge.catch_up(), 20))
        event("deleted" if "shop" not in edge.tasks else "joined" if "other" in edge.tasks else "unchanged")
        goes_on(edge)


@examples(20)
@given(task=tasks(), data=st.data())
def test_a_store_that_holds_something_else_is_refused_with_an_error_of_ours(task: Task, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder, an_edge(task, folder) as edge:
        saved = edge.store.snapshot("shop-1")
        assert saved is not None
        if data.draw(st.booleans()):
            text = data.draw(json_like(json.loads(saved))).decode("utf-8", "replace")
            edge.store.save([Save("shop-1", text)])
        else:
            text = data.draw(json_like(task.to_json())).decode("utf-8", "replace")
            edge.store.drop_task("shop-1")
            edge.store.put_task("shop-1", text)
        try:
            again = Edge("ams", edge.store, clock=lambda: 0.0, rng=random.Random(1))
        except OutvoteError:
            event("refused")
        else:
            event("opened")
            goes_on(again)


def test_a_server_that_has_always_more_to_say_is_not_asked_for_ever() -> None:
    task = Task(arms=3, players=3, epsilon=0.5, delta=0.5, name="shop", protocol="dme", reward_window=60)
    with tempfile.TemporaryDirectory() as folder, an_edge(task, folder) as edge:
        log = Answering(encode(Answer(9, {}, more=True)))
        edge.log = cast(Log, log)
        assert asyncio.run(asyncio.wait_for(edge.catch_up(), 20))
        assert log.asked <= 2
