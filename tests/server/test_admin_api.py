"""The API for operators on a log in memory: what it creates, shows, refuses and counts."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from helpers.operating import TALLY, VOTES, operated
from helpers.processes import comes
from outvote.core.messages import Vote
from outvote.engine.process import Engine
from outvote.log.log import Record
from outvote.log.log_state import LogState
from outvote.log.memory import MemoryEngine
from outvote.log.records import Coder, UpSubject, task_record
from outvote.presenters.task_fields import task_of
from outvote.server.admin import api as admin_api
from outvote.server.admin.views import description

VOTES_BOUND = 2 * 3 * 3 * 2  # 2·N·(K−1)·⌈log₂K⌉
PROBLEM = "application/problem+json"


def refusal(response: httpx.Response, status: int) -> str:
    """The detail of a refusal."""
    assert response.status_code == status
    assert response.headers["content-type"] == PROBLEM
    body: dict[str, Any] = response.json()
    assert set(body) - {"field", "code"} == {"type", "title", "status", "detail"}
    assert "field" not in body or body["detail"].startswith(f"{body['field']} ")
    assert body["status"] == status
    return str(body["detail"])


def test_a_task_is_created_listed_shown_stopped_and_deleted(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with operated(memory) as (server, client):
            made = await client.post("/v1/tasks", json=TALLY)
            assert made.status_code == 201
            task_id = made.json()["id"]
            assert (made.json()["name"], made.json()["status"]) == ("shop", "running")
            assert made.headers["location"] == f"/v1/tasks/{task_id}"
            assert server.state.tasks[task_id].task == task_of(TALLY)
            listed = (await client.get("/v1/tasks")).json()
            assert [each["name"] for each in listed["tasks"]] == ["shop"]
            by_name, by_id = await client.get("/v1/tasks/shop"), await client.get(f"/v1/tasks/{task_id}")
            assert by_name.json() == by_id.json()
            assert by_name.json()["status"] == "running"
            stopped = await client.post("/v1/tasks/shop/stop")
            assert (stopped.json()["id"], stopped.json()["status"]) == (task_id, "stopped")
            assert (await client.get("/v1/tasks/shop")).json()["status"] == "stopped"
            assert (await client.delete("/v1/tasks/shop")).status_code == 204
            assert refusal(await client.get("/v1/tasks/shop"), 404) == "unknown task: got 'shop', there are none"

    asyncio.run(run())


def test_a_name_that_is_taken_is_refused_with_what_differs(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with operated(memory) as (_, client):
            task_id = (await client.post("/v1/tasks", json=TALLY)).json()["id"]
            again = refusal(await client.post("/v1/tasks", json={**TALLY, "delta": 0.1}), 409)
            assert again == f"name must be a new one, got 'shop', which {task_id} has: delta is 0.05, asked is 0.1"
            same = refusal(await client.post("/v1/tasks", json=TALLY), 409)
            assert same.endswith("it is the same in every field")
            both = await asyncio.gather(*(client.post("/v1/tasks", json=VOTES) for _ in range(2)))
            assert sorted(each.status_code for each in both) == [201, 409]

    asyncio.run(run())


REFUSED = [
    (400, b"", "a task must be a JSON object"),
    (400, b"{", "a task must be a JSON object"),
    (400, b"\xff", "a task must be a JSON object"),
    (400, b"[" * 60_000, "a task must be a JSON object"),
    (400, b"[1]", "a task must be a JSON object, got a list"),
    (413, b" " * 65_537, "a request may have 65,536 bytes"),
    (422, b"{}", "variants must be given: how many, or their names"),
    (422, {**TALLY, "colour": "red"}, "colour is no field of a task: use name, variants, sites"),
    (422, {**TALLY, "variants": 10**12}, "variants must be at most 10,000 in a network"),
    (422, {**VOTES, "protocol": "edme", "instances": 10**12}, "instances must be at most 10,000 in a network"),
    (422, {**TALLY, "variants": 10_000}, "a task's record may have 65,536 bytes, this has 79,"),
    (422, json.dumps({**TALLY, "delta": float("nan")}).encode(), "delta must be a number above 0 and below 1, got nan"),
    (422, {**TALLY, "active_sites": 1}, "active_sites is for 'dme', got 1 for 'tally'"),
]


def test_what_is_no_task_is_refused_and_nothing_is_stored(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with operated(memory) as (server, client):
            for status, body, detail in REFUSED:
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                assert detail in refusal(await client.post("/v1/tasks", content=content), status)
            assert server.state.read == 0

    asyncio.run(run())


GIVEN = "must be given: how long after a decision may its reward come"
BOUNDS = "must be from 1 second to 7 days (1 to 604800, in seconds), got"


@pytest.mark.parametrize(
    ("window", "code", "says"),
    [
        (None, "missing", GIVEN),
        (..., "missing", GIVEN),
        (0, "range", f"{BOUNDS} 0"),
        (0.5, "range", f"{BOUNDS} 0.5"),
        (-60, "range", f"{BOUNDS} -60"),
        (365 * 86_400, "range", f"{BOUNDS} 31536000"),
        (float("nan"), "range", f"{BOUNDS} nan"),
        ("20s", "type", f"{BOUNDS} '20s'"),
        (True, "type", f"{BOUNDS} True"),
        ([60], "type", f"{BOUNDS} [60]"),
    ],
)
def test_a_task_without_a_window_from_a_second_to_seven_days_is_refused_with_that_field(
    memory: MemoryEngine, window: object, code: str, says: str
) -> None:
    asked = {name: value for name, value in {**TALLY, "reward_window": window}.items() if value is not ...}

    async def run() -> None:
        async with operated(memory) as (server, client):
            refused = await client.post("/v1/tasks", content=json.dumps(asked).encode())
            assert refusal(refused, 422).startswith(f"reward_window {says}")
            assert (refused.json()["field"], refused.json()["code"]) == ("reward_window", code)
            assert (server.state.read, (await client.get("/v1/tasks")).json()["tasks"]) == (0, [])

    asyncio.run(run())


def test_a_shown_task_can_be_created_again_from_its_record(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with operated(memory) as (_, client):
            await client.post("/v1/tasks", json={**VOTES, "protocol": "edme", "instances": 2})
            record = (await client.get("/v1/tasks/votes")).json()["task"]
            await client.delete("/v1/tasks/votes")
            assert (await client.post("/v1/tasks", json=record)).status_code == 201
            assert (await client.get("/v1/tasks/votes")).json()["task"] == record

    asyncio.run(run())


def test_unknown_paths_methods_and_tasks_are_problems_too(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with operated(memory) as (_, client):
            for path in ("/v2", "/v1/tasks/", "/v1/tasks/shop/", "/"):
                assert "see /openapi.json for what there is" in refusal(await client.get(path), 404)
            for method, path, allowed in (
                ("PUT", "/v1/tasks", "GET, HEAD, POST"),
                ("DELETE", "/v1/tasks", "GET, HEAD, POST"),
                ("PUT", "/v1/tasks/shop", "DELETE, GET, HEAD"),
                ("OPTIONS", "/v1/tasks/shop", "DELETE, GET, HEAD"),
                ("GET", "/v1/tasks/shop/stop", "POST"),
                ("POST", "/metrics", "GET, HEAD"),
            ):
                refused = await client.request(method, path)
                assert refusal(refused, 405) == f"{method} {path!r} is not possible: allowed is {allowed}"
                assert refused.headers["allow"] == allowed
            for response in (await client.post("/v1/tasks/no/stop"), await client.delete("/v1/tasks/no")):
                assert refusal(response, 404) == "unknown task: got 'no', there are none"

    asyncio.run(run())


def test_votes_and_eliminations_are_shown_with_their_place_in_the_log(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with operated(memory) as (server, client):
            task_id = (await client.post("/v1/tasks", json=VOTES)).json()["id"]
            coder = Coder(task_of(VOTES))
            for record, edge in enumerate(("ams", "fra")):  # two of three are a quorum
                where = UpSubject(edge, task_id, "life", 0)
                await server.log.append(str(where), coder.up(Vote(3)))
                await comes(lambda record=record: server.state.read >= 2 + record)  # type: ignore[misc]
            await server.log.append(str(UpSubject("lis", task_id, "life", 0)), b"no message")
            await comes(lambda: server.state.read == 5)
            found = (await client.get("/v1/tasks/votes")).json()
            assert found["remaining"] == ["0", "1", "2"]
            last = found["variants"][3]
            assert (last["state"], last["votes"], found["votes_needed"]) == ("eliminated", [2], [2])
            gone = last["eliminated"]
            assert gone["number"] == 0
            assert gone["record"] in (4, 5)  # the elimination and the third edge's record are stored at once
            assert gone["after_messages"] == 2
            assert found["variants"][0]["eliminated"] is None
            assert found["messages"] == {"up": 2, "down": 3}
            bits = {"up": 4, "down": 6, "total": 10, "bound": VOTES_BOUND, "most": VOTES_BOUND, "instance": 0}
            assert found["bits"] == bits
            assert found["refused"] == 1
            assert found["site_count"] == 3
            assert found["sites"][0] == {
                "site": "ams",
                "incarnations": ["life"],
                "last_sequence": 0,
                "several_lives": False,
            }

    asyncio.run(run())


def test_votes_needed_are_the_quorum_also_with_liars() -> None:
    """Of 8 sites half, and two more that may be lies: never a half vote, and never fewer than the server waits for."""
    fold = LogState()
    task = task_of({**VOTES, "sites": 8, "tolerate": 2})
    fold.apply(Record("outvote.down.votes-1.task", task_record(task), 1, 0.0))
    assert description(fold.tasks["votes-1"]).votes_needed == task.quorums == (6,)


def test_tasks_are_listed_by_name_and_status_and_a_killed_one_is_said_to_be(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with operated(memory) as (_, client):
            for task in (TALLY, VOTES):
                await client.post("/v1/tasks", json=task)

            async def names(query: str) -> list[str]:
                return [each["name"] for each in (await client.get(f"/v1/tasks?{query}")).json()["tasks"]]

            assert (await client.post("/v1/tasks/shop/kill")).json()["status"] == "killed"
            assert (await client.get("/v1/tasks/shop")).json()["status"] == "killed"
            assert await names("") == ["shop", "votes"]
            assert await names("status=killed") == await names("name=shop") == ["shop"]
            assert await names("status=running") == ["votes"]
            assert await names("status=running&name=shop") == []
            wrong = await client.get("/v1/tasks?status=ended")
            assert refusal(wrong, 422).startswith("status must be one of 'running', 'held', 'killed'")
            assert refusal(await client.get("/v1/tasks?state=held"), 422) == "state is no filter: use name or status"
            assert (await client.post("/v1/tasks/shop/revive")).json()["status"] == "running"

    asyncio.run(run())


def test_an_edge_that_has_lived_more_than_once_is_seen() -> None:
    task = task_of(VOTES)
    fold, coder = LogState(), Coder(task)
    fold.apply(Record("outvote.down.votes-1.task", task_record(task), 1, 0.0))
    for record, (edge, life, sequence) in enumerate(
        [("fra", "a", 0), ("ams", "zz", 0), ("ams", "zz", 1), ("ams", "bb", 0)], 2
    ):
        fold.apply(Record(str(UpSubject(edge, "votes-1", life, sequence)), coder.up(Vote(sequence)), record, 0.0))
    ams, fra = description(fold.tasks["votes-1"]).sites
    assert (ams.site, ams.several_lives, ams.incarnations, ams.last_sequence) == ("ams", True, ("zz", "bb"), 0)
    assert (fra.site, fra.several_lives, fra.incarnations, fra.last_sequence) == ("fra", False, ("a",), 0)


def test_a_task_is_read_as_json_whatever_its_content_type_says(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with operated(memory) as (_, client):
            body = json.dumps(TALLY).encode()
            for told in ({"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"}, {}):
                assert (await client.post("/v1/tasks", content=body, headers=told)).status_code == 201
                assert (await client.delete("/v1/tasks/shop")).status_code == 204

    asyncio.run(run())


def test_requests_are_counted_by_what_is_fixed_and_never_by_what_was_sent(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with operated(memory) as (_, client):
            for method, path in (
                ("GET", "/v1/tasks/secret"),
                ("SECRET", "/secret"),
                ("PUT", "/v1/tasks"),
                ("HEAD", "/healthz"),
            ):
                await client.request(method, path)
            page = await client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=no-number"})
            assert page.headers["content-type"].startswith("application/openmetrics-text")
            assert "secret" not in page.text.lower()
            counted = {
                (sample.labels["route"], sample.labels["method"], sample.labels["status"]): sample.value
                for family in text_string_to_metric_families((await client.get("/metrics")).text)
                for sample in family.samples
                if sample.name == "outvote_http_requests_total"
            }
            assert counted == {
                ("/v1/tasks/{task}", "GET", "404"): 1,
                ("other", "other", "404"): 1,
                ("/v1/tasks", "PUT", "405"): 1,
                ("/healthz", "HEAD", "200"): 1,
                ("/metrics", "GET", "200"): 1,
            }

    asyncio.run(run())


def test_without_its_engine_the_server_says_that_it_is_not_well(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_api, "PATIENCE", 0.3)

    async def run() -> None:
        async with operated(engine) as (server, client):
            healthy = await client.get("/healthz")
            assert (healthy.status_code, healthy.json()["status"]) == (200, "ok")
            await client.post("/v1/tasks", json=TALLY)
            await asyncio.to_thread(engine.stop)
            await comes(lambda: not server.log.connected)
            ill = await client.get("/healthz")
            assert (ill.status_code, ill.json()["engine_connected"]) == (503, False)
            assert "it may be stored or not" in refusal(await client.post("/v1/tasks", json=VOTES), 503)
            assert (await client.get("/v1/tasks/shop")).status_code == 200  # what is known is still shown
            engine.start()
            await comes(lambda: server.ready)
            assert (await client.get("/healthz")).status_code == 200

    asyncio.run(run())


def test_an_unforeseen_error_is_a_problem_without_internals(
    memory: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with operated(memory) as (server, _):
            transport = httpx.ASGITransport(admin_api.make_app(server), raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
                with monkeypatch.context() as during:
                    during.setattr(server, "state", None)
                    assert "NoneType" not in refusal(await client.get("/v1/tasks"), 500)
                assert (await client.get("/v1/tasks")).status_code == 200

    asyncio.run(run())
