"""When things happened, and who sent what: as the log tells it, so it is the same after every restart."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

import pytest

from helpers.operating import VOTES, operated, vote
from helpers.processes import comes
from outvote.core.messages import Elimination, Vote
from outvote.engine.process import Engine
from outvote.log.history import EdgeHistory, Moment
from outvote.log.log import Record
from outvote.log.log_state import LogState
from outvote.log.records import Coder, DownSubject, UpSubject, task_record
from outvote.presenters.task_fields import task_of
from outvote.server.admin.views import description

TASK = task_of(VOTES)
CODER = Coder(TASK)
ALL = range(4)


class Story:
    """Records one after the other, each stored at a time of its own."""

    def __init__(self) -> None:
        self.state = LogState()
        self._sent: Counter[tuple[str, str, str]] = Counter()

    def down(self, kind: str, at: float, payload: bytes = b"{}", number: int | None = None, of: str = "a-1") -> None:
        self.state.apply(Record(str(DownSubject(of, kind, number)), payload, self.state.read + 1, at))

    def up(self, edge: str, at: float, payload: bytes | None = None, *, life: str = "life", of: str = "a-1") -> None:
        where = UpSubject(edge, of, life, self._sent[edge, of, life])
        self._sent[edge, of, life] += 1
        self.state.apply(Record(str(where), CODER.up(Vote(3)) if payload is None else payload, self.state.read + 1, at))


@pytest.fixture
def story() -> Story:
    """A task that was created at 10."""
    made = Story()
    made.down("task", 10.0, task_record(TASK))
    return made


def test_a_task_has_the_times_of_its_creation_eliminations_and_stop(story: Story) -> None:
    story.up("ams", 11.0)
    story.up("fra", 12.5)
    story.down("elim", 13.25, CODER.down(ALL, Elimination((3,))), 0)
    story.up("lis", 14.0)
    story.down("elim", 15.0, CODER.down(ALL, Elimination((1,))), 1)
    story.down("stop", 16.0)
    history = story.state.tasks["a-1"].history
    assert (history.created, history.stopped) == (10.0, 16.0)
    assert history.eliminations == [Moment(record=4, messages=2, at=13.25), Moment(record=6, messages=3, at=15.0)]
    told = description(story.state.tasks["a-1"])
    assert (told.created, told.stopped_at) == (10.0, 16.0)
    assert [None if arm.eliminated is None else arm.eliminated.at for arm in told.variants] == [None, 15.0, None, 13.25]


def test_what_changes_nothing_leaves_no_time(story: Story) -> None:
    story.down("task", 11.0, task_record(TASK))
    story.down("task", 12.0, task_record(TASK), of="a-2")  # the name is taken
    story.down("elim", 13.0, CODER.down(ALL, Elimination((3,))), 5)
    story.down("elim", 14.0, b"", 0)
    story.down("stop", 15.0, of="none")
    story.up("ams", 16.0, of="none")
    assert list(story.state.tasks) == ["a-1"]
    history = story.state.tasks["a-1"].history
    assert (history.created, history.stopped, history.eliminations) == (10.0, None, [])
    assert story.state.edges == {}
    assert story.state.unknown == 6


def test_an_edge_has_the_sums_of_all_that_it_sent(story: Story) -> None:
    story.down("task", 10.5, task_record(task_of({**VOTES, "name": "b"})), of="b-1")
    story.up("ams", 11.0)
    story.up("ams", 12.0, of="b-1")
    story.up("fra", 13.0, life="one")
    story.up("fra", 14.0, life="two")
    story.up("fra", 15.0, b"", life="two")  # no message: it is in the log, and has no bits
    assert story.state.edges == {
        "ams": EdgeHistory(last_message=12.0, messages=2, bits=4, tasks={"a-1", "b-1"}, incarnations={"life"}),
        "fra": EdgeHistory(last_message=15.0, messages=3, bits=4, tasks={"a-1"}, incarnations={"one", "two"}),
    }
    assert story.state.tasks["a-1"].refused == 1


def test_a_deleted_task_is_forgotten_and_its_edges_keep_their_sums(story: Story) -> None:
    story.up("ams", 11.0)
    story.down("delete", 12.0)
    assert story.state.tasks == {}
    assert story.state.edges == {"ams": EdgeHistory(11.0, messages=1, bits=2, tasks=set(), incarnations={"life"})}
    story.up("ams", 13.0)  # it was under way
    assert (story.state.edges["ams"].messages, story.state.edges["ams"].last_message) == (1, 11.0)
    story.down("task", 14.0, task_record(TASK), of="a-2")
    assert story.state.tasks["a-2"].history.created == 14.0


# ---- on a real engine


def test_times_are_those_of_the_engine_and_the_same_after_a_restart(engine: Engine) -> None:
    began = time.time()
    shown: list[dict[str, Any]] = []

    async def run() -> None:
        async with operated(engine) as (server, client):
            task_id = (await client.post("/v1/tasks", json=VOTES)).json()["id"]
            for edge in ("ams", "fra"):
                await vote(server, task_id, edge, 3)
            await comes(lambda: len(server.state.tasks[task_id].eliminations) == 1)
            await client.post("/v1/tasks/votes/stop")
            shown.append((await client.get("/v1/tasks/votes")).json())
            before = server.state
        await asyncio.to_thread(engine.stop)
        engine.start()
        async with operated(engine) as (server, client):
            shown.append((await client.get("/v1/tasks/votes")).json())
            assert server.state.tasks[task_id].history == before.tasks[task_id].history
            assert server.state.edges == before.edges

    asyncio.run(run())
    first, second = shown
    assert first == second
    times = [began, first["created"], first["variants"][3]["eliminated"]["at"], first["stopped_at"], time.time()]
    assert times == sorted(times)
