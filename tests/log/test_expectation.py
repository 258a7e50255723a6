"""What operators expect of a task: a record beside it, of which the last counts, and which no decision depends on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from helpers.edge_http import eliminate, host, task
from helpers.operating import VOTES, operated
from helpers.processes import comes
from outvote.core.messages import Elimination
from outvote.edge.site import Edge
from outvote.log.catch_up import Question
from outvote.log.expectation import Expectation, read_expectation
from outvote.log.log import Record
from outvote.log.log_state import LogState
from outvote.log.memory import MemoryEngine
from outvote.log.records import DownSubject, task_record

WHOLE = {"traffic": 50_000.0, "baseline": 0.1, "difference": 0.02}
NOTHING = dict.fromkeys(WHOLE)
EXPECTATION = "/v1/tasks/votes/expectation"


@pytest.mark.parametrize(
    "said", [WHOLE, {"traffic": 1}, {"baseline": 0}, {"baseline": 0.7, "difference": 0.3}, {"traffic": 1e15}, {}]
)
def test_what_can_be_expected_is_read_as_it_was_said(said: dict[str, float]) -> None:
    found = read_expectation(json.dumps(said).encode())
    assert found == Expectation(**said)
    assert read_expectation(found.record()) == found


NOT_JSON = 'an expectation must be JSON, like {"traffic": 50000, "baseline": 0.1, "difference": 0.02}'
REFUSED = [
    (400, b"", NOT_JSON),
    (400, b"{", NOT_JSON),
    (400, b"\xff", NOT_JSON),
    (400, b"[" * 60_000, NOT_JSON),
    (422, b"[1]", "an expectation must be an object, like {"),
    (422, b'{"colour": 1}', "colour is no field of an expectation"),
    (422, b'{"traffic": "much"}', "traffic must be a number above 0 and at most 10^15, got 'much'"),
    (422, b'{"traffic": true}', "traffic must be a number above 0 and at most 10^15, got True"),
    (422, b'{"traffic": 0}', "traffic must be a number above 0 and at most 10^15, got 0"),
    (422, b'{"traffic": NaN}', "traffic must be a number above 0 and at most 10^15, got nan"),
    (422, b'{"traffic": 1e16}', "traffic must be a number above 0 and at most 10^15, got 1e+16"),
    (422, b'{"traffic": 1e999}', "traffic must be a number above 0 and at most 10^15, got inf"),
    (422, b'{"baseline": -0.1}', "baseline must be a number from 0 to 1, got -0.1"),
    (422, b'{"baseline": 1.1}', "baseline must be a number from 0 to 1, got 1.1"),
    (422, b'{"difference": 0}', "difference must be a number above 0 and below 1, got 0"),
    (422, b'{"difference": 1}', "difference must be a number above 0 and below 1, got 1"),
    (422, b'{"baseline": 0.9, "difference": 0.2}', "difference must be at most 1 together with baseline, got 0.2 and"),
]


# ---- the fold


@pytest.fixture
def fold() -> LogState:
    made = LogState()
    made.apply(Record("outvote.down.shop-1.task", task_record(task()), 1, 0.0))
    return made


def test_expectations_and_eliminations_are_numbered_apart(fold: LogState) -> None:
    found = fold.tasks["shop-1"]
    for number in range(3):
        fold.apply(
            Record(
                str(DownSubject("shop-1", "expect", number)), Expectation(traffic=number + 1).record(), 2 + number, 0.0
            )
        )
    first = found.coder.down(found.announced, Elimination((2,)))
    fold.apply(Record(str(DownSubject("shop-1", "elim", 0)), first, 5, 0.0))
    assert found.announced == (0, 1)
    assert (fold.unknown, found.expectation) == (0, Expectation(traffic=3))
    assert fold.catch_up("ams", Question("life", {"shop-1": 0})).tasks["shop-1"].eliminations == (first,)


def test_a_stopped_task_keeps_what_was_expected_and_a_deleted_one_takes_no_more(fold: LogState) -> None:
    fold.apply(Record("outvote.down.shop-1.expect.0", Expectation(traffic=5).record(), 2, 0.0))
    fold.apply(Record("outvote.down.shop-1.stop", b"{}", 3, 0.0))
    assert fold.tasks["shop-1"].expectation == Expectation(traffic=5)
    fold.apply(Record("outvote.down.shop-1.expect.1", Expectation(traffic=6).record(), 4, 0.0))
    assert fold.tasks["shop-1"].expectation == Expectation(traffic=6)
    assert fold.unknown == 0
    fold.apply(Record("outvote.down.shop-1.delete", b"{}", 5, 0.0))
    fold.apply(Record("outvote.down.shop-1.expect.2", Expectation(traffic=7).record(), 6, 0.0))
    assert (fold.unknown, fold.tasks) == (1, {})


# ---- edges


def test_an_edge_takes_no_expectation_for_an_elimination(edge: Edge) -> None:
    hosted = host(edge, task())
    first = hosted.coder.down(hosted.announced, Elimination((2,)))
    for number, payload in enumerate((b"{}", b"no", first)):
        edge.on_record(f"outvote.live.shop-1.expect.{number}", payload)
    assert (hosted.announced, hosted.eliminations, hosted.dirty) == ((0, 1, 2), 0, False)
    assert not edge.missed.is_set()
    edge.on_record("outvote.live.shop-1.elim.0", first)
    edge.on_record("outvote.live.shop-1.expect.1", b"{}")
    assert (hosted.announced, hosted.eliminations) == ((0, 1), 1)
    eliminate(hosted, 1)
    assert hosted.announced == (0,)
    assert not edge.missed.is_set()


# ---- the API


async def shown(client: httpx.AsyncClient) -> dict[str, Any] | None:
    found: dict[str, Any] | None = (await client.get("/v1/tasks/votes")).json()["expectation"]
    return found


def test_an_expectation_is_said_shown_and_said_again(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with operated(memory) as (server, client):
            await client.post("/v1/tasks", json=VOTES)
            assert await shown(client) is None
            said = await client.put(EXPECTATION, json=WHOLE)
            assert (said.status_code, said.json()) == (200, WHOLE)
            assert await shown(client) == WHOLE
            again = await client.put(EXPECTATION, json={"traffic": 7})
            assert again.json() == {**NOTHING, "traffic": 7.0}  # in place of all that was said before
            assert await shown(client) == again.json()
            await client.post("/v1/tasks/votes/stop")
            assert await shown(client) == again.json()
            assert server.state.read == 4
        async with operated(memory) as (_, client):
            assert await shown(client) == again.json()

    asyncio.run(run())


def test_what_cannot_be_expected_is_a_problem_and_nothing_is_stored(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with operated(memory) as (server, client):
            await client.post("/v1/tasks", json=VOTES)
            for status, payload, error in REFUSED:
                refused = await client.put(EXPECTATION, content=payload)
                assert refused.status_code == status
                kind = "not-json" if status == 400 else "invalid-expectation"
                assert refused.json()["type"] == f"urn:outvote:problem:{kind}"
                assert refused.json()["detail"].startswith(error)
            assert (await client.put(EXPECTATION, content=b" " * 65_537)).status_code == 413
            unknown = await client.put("/v1/tasks/none/expectation", json=WHOLE)
            assert unknown.status_code == 404
            assert (server.state.read, await shown(client)) == (1, None)

    asyncio.run(run())


def test_what_others_have_put_in_the_log_does_not_keep_operators_from_saying_more(memory: MemoryEngine) -> None:
    """Neither what is no expectation, nor a number that leaves a gap."""

    async def run() -> None:
        async with operated(memory) as (server, client):
            task_id = (await client.post("/v1/tasks", json=VOTES)).json()["id"]
            await server.log.append(str(DownSubject(task_id, "expect", 0)), b"no")
            await server.log.append(str(DownSubject(task_id, "expect", 2)), Expectation(baseline=0.5).record())
            await comes(lambda: server.state.read == 3)
            assert server.state.unknown == 1
            assert await shown(client) == {**NOTHING, "baseline": 0.5}
            for traffic in range(1, 4):
                assert (await client.put(EXPECTATION, json={"traffic": traffic})).status_code == 200
                assert await shown(client) == {**NOTHING, "traffic": traffic}

    asyncio.run(run())
