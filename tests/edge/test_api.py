"""What the edge's HTTP API answers: decisions, rewards, refusals, and what people and programs ask."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import msgspec
import pytest

from helpers.edge_http import (
    ARMS,
    DEADLINE,
    DECIDE,
    GOOD,
    REWARD,
    ask,
    check_problem,
    client_of,
    host,
    in_process,
    read_metrics,
    task,
    within_deadline,
)
from outvote.edge.api import make_app
from outvote.edge.bodies import LARGEST_BODY, Health, TaskList
from outvote.edge.hosted_task import HostedTask
from outvote.edge.openapi import openapi
from outvote.edge.site import Edge
from outvote.log.memory import MemoryEngine
from outvote.web.problems import LONGEST_DETAIL

# ---- what a reward may name


@pytest.mark.parametrize("ticket", ["0", None])
def test_a_reward_names_its_ticket_or_none(ticket: str | None, edge: Edge) -> None:
    hosted = host(edge, task())
    ask(edge, "POST", DECIDE)
    assert ask(edge, "POST", REWARD, json={"variant": "green", "ticket": ticket, "reward": 1}).status_code == 204
    assert hosted.player.snapshot()["pulls"] == [1, 0, 0]


def test_a_string_of_digits_is_a_name_and_never_an_index(edge: Edge) -> None:
    hosted = host(edge, task(arms=["1", "0"]))
    ask(edge, "POST", DECIDE)
    assert ask(edge, "POST", REWARD, json={"variant": "1", "reward": 1}).status_code == 204
    assert hosted.player.snapshot()["pulls"] == [1, 0]


def test_a_task_created_anew_under_its_name_has_its_own_arms(edge: Edge) -> None:
    host(edge, task())
    app = make_app(edge)
    assert asyncio.run(in_process(app, "POST", DECIDE)).json()["variant"] == "green"
    assert asyncio.run(in_process(app, "POST", REWARD, json={"variant": "green", "reward": 1})).status_code == 204
    edge.on_record("outvote.live.shop-1.delete", b"{}")
    edge._join("shop-2", task(arms=["left", "green"]).to_json())
    decisions = [asyncio.run(in_process(app, "POST", DECIDE)).json() for _ in range(2)]
    assert [decision["variant"] for decision in decisions] == ["left", "green"]
    asyncio.run(in_process(app, "POST", REWARD, json={"variant": "green", "reward": 1}))
    assert edge.tasks["shop"].player.snapshot()["pulls"] == [0, 1]


# ---- refusals

SECOND = {"variant": ARMS[1], "ticket": "1", "reward": 1}
REWARDS: dict[str, tuple[Any, int, str, str, str]] = {
    "an unknown variant": (
        GOOD | {"variant": "red"},
        404,
        "unknown-variant",
        r"'red', task 'shop' has \[",
        "variant unknown",
    ),
    "a very long variant": (GOOD | {"variant": "r" * 9999}, 404, "unknown-variant", "got 'r{64}'", "variant unknown"),
    "a reward above 1": (GOOD | {"reward": 1.5}, 422, "invalid-reward", "from 0 to 1, got 1.5", "reward range"),
    "a reward below 0": (GOOD | {"reward": -1}, 422, "invalid-reward", "from 0 to 1, got -1", "reward range"),
    "a second reward": (SECOND, 409, "no-outstanding-decision", "'grün 🟢' waits for this reward: reward each", ""),
    "no decision waits": ({"variant": ARMS[1], "reward": 1}, 409, "no-outstanding-decision", "'grün 🟢' waits", ""),
    "a ticket never issued": (GOOD | {"ticket": "99"}, 409, "unknown-ticket", "99 was not issued", "ticket unknown"),
    "a ticket beyond all": (GOOD | {"ticket": "9" * 17}, 422, "invalid-body", "^ticket must be", "ticket invalid"),
    "another's ticket": (GOOD | {"ticket": "1"}, 409, "unknown-ticket", "for variant 'green'", "ticket unknown"),
    "a ticket of letters": (GOOD | {"ticket": "x"}, 422, "invalid-body", "such as '17'; got 'x'", "ticket invalid"),
    "a ticket with a sign": (GOOD | {"ticket": "+0"}, 422, "invalid-body", "'[+]0'", "ticket invalid"),
    "a ticket in Thai digits": (GOOD | {"ticket": "๐"}, 422, "invalid-body", "'๐'", "ticket invalid"),
    "a ticket that is a number": (GOOD | {"ticket": 0}, 422, "invalid-body", "got `int`", "ticket type"),
    "a variant that is an index": (GOOD | {"variant": 0}, 422, "invalid-body", "^variant .*`int`", "variant type"),
    "a reward that is a string": (GOOD | {"reward": "1"}, 422, "invalid-body", "^reward .*`str`", "reward type"),
    "a reward that is true": (GOOD | {"reward": True}, 422, "invalid-body", "^reward .*`bool`", "reward type"),
    "a reward beyond floats": (b'{"variant": "a", "reward": 1e999}', 422, "invalid-body", "range", "reward range"),
    "no reward": ({"variant": "green"}, 422, "invalid-body", "^reward is missing.*such as", "reward missing"),
    "a misspelt field": (GOOD | {"tickt": "0"}, 422, "invalid-body", "^tickt is unknown", "tickt unknown"),
    "a list": (b"[]", 422, "invalid-body", "^the body must be `object`, got `array`", ""),
    "no body": (None, 400, "not-json", "must be JSON in UTF-8, such as", ""),
    "half a body": (b'{"variant": "gre', 400, "not-json", "must be JSON", ""),
    "not a number": (b'{"variant": "green", "reward": NaN}', 400, "not-json", "must be JSON", ""),
    "not UTF-8": (b'{"variant": "\xff", "reward": 1}', 400, "not-json", "must be JSON in UTF-8", ""),
    "half a surrogate": (b'{"variant": "\\ud800", "reward": 1}', 400, "not-json", "must be JSON", ""),
}
"""Bodies of rewards; status, type and detail of the problem; the field at fault with its code."""
REFUSALS = {
    "an unknown task, decide": ("POST", "/v1/tasks/none/decide", None, 404, "unknown-task", "got 'none'.*'shop'"),
    "an unknown task, reward": ("POST", "/v1/tasks/none/reward", GOOD, 404, "unknown-task", "got 'none'"),
    "an unknown task, shown": ("GET", "/v1/tasks/none", None, 404, "unknown-task", "got 'none'"),
    "a name with a dot": ("POST", "/v1/tasks/a.b/decide", None, 422, "invalid-name", "1 to 64 letters.*got 'a.b'"),
    "a name too long": ("POST", f"/v1/tasks/{'a' * 65}/reward", GOOD, 422, "invalid-name", "1 to 64 letters"),
    "a name with an escape": ("GET", "/v1/tasks/%C3%BC", None, 422, "invalid-name", "got 'ü'"),
    "an empty name": ("POST", "/v1/tasks//decide", None, 422, "invalid-name", "got ''"),
    "a body too large": ("POST", REWARD, b" " * (LARGEST_BODY + 1), 413, "body-too-large", "at most 65536 bytes"),
    "GET for decide": ("GET", DECIDE, None, 405, "", "method GET is not possible here, allowed is POST"),
    "PUT for reward": ("PUT", REWARD, GOOD, 405, "", "allowed is POST"),
    "POST for a task": ("POST", "/v1/tasks/shop", None, 405, "", "allowed is GET, HEAD"),
    "DELETE for all tasks": ("DELETE", "/v1/tasks", None, 405, "", "allowed is GET, HEAD"),
    "POST for health": ("POST", "/healthz", None, 405, "", "allowed is GET, HEAD"),
    "an unknown path": ("GET", "/v2/tasks", None, 404, "", "nothing is at '/v2/tasks': see /openapi.json"),
    "an unknown verb": ("POST", "/v1/tasks/shop/vote", None, 404, "", "nothing is at"),
    "a path below a verb": ("POST", "/v1/tasks/shop/decide/x", None, 404, "", "nothing is at"),
    "a path that ends in a slash": ("GET", "/v1/tasks/shop/", None, 404, "", "nothing is at"),
    "the root": ("GET", "/", None, 404, "", "nothing is at '/'"),
    **{case: ("POST", REWARD, *refusal[:-1]) for case, refusal in REWARDS.items()},
}


def test_every_refusal_has_its_status_and_its_problem_and_changes_nothing(edge: Edge) -> None:
    hosted = host(edge, task())

    async def scenario() -> None:
        async with client_of(edge) as client:
            first = (await client.post(DECIDE)).json()
            await client.post(DECIDE)
            assert (await client.post(REWARD, json=SECOND)).status_code == 204
            edge.flush()
            before = hosted.player.snapshot()
            counted: dict[int, int] = {}
            for case, (method, path, body, status, kind, says) in REFUSALS.items():
                content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
                answer = await client.request(method, path, content=content)
                check_problem(answer, status, kind, says)
                at = [answer.json()[name] for name in ("field", "code") if name in answer.json()]
                assert case not in REWARDS or at == REWARDS[case][-1].split(), case
                assert len(answer.json()["detail"]) <= LONGEST_DETAIL + 1
                if status == 405:
                    assert answer.headers["allow"] == ("POST" if path in (DECIDE, REWARD) else "GET, HEAD")
                counted[status] = counted.get(status, 0) + 1
                assert hosted.player.snapshot() == before, case
                assert not hosted.dirty, case
            metrics = read_metrics((await client.get("/metrics")).text)
            for status, count in counted.items():
                assert metrics[f'outvote_edge_refused_requests_total{{status="{status}"}}'] == count
            assert metrics["outvote_edge_decisions_total"] == 2
            assert metrics["outvote_edge_rewards_total"] == 1
            answer = await client.post(REWARD, json=GOOD | {"variant": first["variant"]})
            assert answer.status_code == 204

    within_deadline(scenario())


def test_an_unforeseen_error_is_a_500_without_internals_and_its_log_holds_nothing_of_the_request(
    edge: Edge, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    host(edge, task())

    def fail(task: HostedTask, arm: int, reward: float, ticket: int | None) -> None:
        raise RuntimeError(f"secret {task.task_id} {reward}")

    monkeypatch.setattr(edge, "reward", fail)
    answer = ask(edge, "POST", REWARD, json=GOOD | {"reward": 0.625})
    check_problem(answer, 500, "", "its log says where")
    for leaked in ("secret", "RuntimeError", "Traceback", ".py"):
        assert leaked not in answer.text
    [record] = caplog.records
    assert "RuntimeError" in record.getMessage()
    assert "in fail" in record.getMessage()
    assert "0.625" not in caplog.text
    assert "secret shop" not in caplog.text


# ---- what people and programs ask


def test_tasks_are_listed_by_name_with_all_there_is_to_know(edge: Edge) -> None:
    assert ask(edge, "GET", "/v1/tasks").json() == {"tasks": []}
    edge._join("web-7", task("tally", name="web", arms=4).to_json())
    edge._join("shop-1", task().to_json())
    listed = msgspec.json.decode(ask(edge, "GET", "/v1/tasks").content, type=TaskList)
    assert [(each.id, each.name, each.protocol) for each in listed.tasks] == [
        ("shop-1", "shop", "dme"),
        ("web-7", "web", "tally"),
    ]
    assert ask(edge, "GET", "/v1/tasks/shop").json() == {
        "id": "shop-1",
        "name": "shop",
        "protocol": "dme",
        "variants": list(ARMS),
        "remaining": list(ARMS),
        "finished": False,
        "winner": None,
        "stopped": False,
        "killed": False,
        "late_rewards": 0,
        "dropped_rewards": 0,
        "messages_kept": 0,
        "messages_waiting": 0,
    }


def test_health_says_whether_the_edge_is_connected(edge: Edge) -> None:
    answer = ask(edge, "GET", "/healthz")
    assert answer.status_code == 200
    assert msgspec.json.decode(answer.content, type=Health) == Health("ok", "ams", False, 0)
    edge.log = MemoryEngine().connect("ams")
    assert ask(edge, "GET", "/healthz").json()["connected"] is True
    assert read_metrics(ask(edge, "GET", "/metrics").text)["outvote_edge_connected"] == 1


def test_head_is_answered_like_get_without_the_body(edge: Edge) -> None:
    async def scenario() -> None:
        async with client_of(edge) as client:
            for path in ("/healthz", "/v1/tasks", "/openapi.json"):
                with_body, without = await client.get(path), await client.head(path)
                assert (without.status_code, without.content) == (200, b"")
                assert without.headers["content-length"] == str(len(with_body.content))

    within_deadline(scenario())


def test_metrics_count_what_was_done(edge: Edge) -> None:
    hosted = host(edge, task("tally"))
    app = make_app(edge)

    async def scenario() -> None:
        for _ in range(3):
            decision = (await in_process(app, "POST", DECIDE)).json()
            await in_process(app, "POST", REWARD, json={"variant": decision["variant"], "reward": 1})
        await in_process(app, "POST", REWARD, json={"variant": "green", "reward": 2})
        answer = await in_process(app, "GET", "/metrics")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        expected = {
            "outvote_edge_decisions_total": 3,
            "outvote_edge_rewards_total": 3,
            "outvote_edge_late_rewards_total": 0,
            "outvote_edge_dropped_rewards_total": 0,
            'outvote_edge_refused_requests_total{status="422"}': 1,
            "outvote_edge_unfinished_requests_total": 0,
            "outvote_edge_turned_away_connections_total": 0,
            'outvote_edge_info{site="ams"}': 1,
            "outvote_edge_tasks": 1,
            "outvote_edge_messages_kept": 0,
            "outvote_edge_messages_waiting": 1,
            "outvote_edge_save_seconds_count": 0,
            "outvote_edge_save_seconds_sum": 0,
            "outvote_edge_connected": 0,
            "outvote_edge_reconnections_total": 0,
            "outvote_edge_wire_bytes_total": 0,
        }
        assert read_metrics(answer.text) == expected
        edge.flush()
        found = read_metrics((await in_process(app, "GET", "/metrics")).text)
        took = found["outvote_edge_save_seconds_sum"]
        assert 0 < took < DEADLINE
        saved = {"outvote_edge_save_seconds_count": 1, "outvote_edge_save_seconds_sum": took}
        assert found == expected | saved | {"outvote_edge_messages_kept": 1}
        hosted.unsent.clear()
        assert read_metrics((await in_process(app, "GET", "/metrics")).text)["outvote_edge_messages_waiting"] == 0

    asyncio.run(scenario())


def test_metrics_are_openmetrics_for_who_accepts_them(edge: Edge) -> None:
    for accept in ("application/openmetrics-text", "application/openmetrics-text; version=no-number, text/plain"):
        answer = ask(edge, "GET", "/metrics", headers={"Accept": accept})
        assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
        assert answer.text.endswith("# EOF\n")
    answer = ask(edge, "GET", "/metrics", headers={"Accept": "text/plain; version=no-number"})
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")


def test_rewards_that_did_not_count_are_counted_on_when_their_task_is_gone(edge: Edge) -> None:
    hosted = host(edge, task())
    hosted.player.late_rewards, hosted.player.dropped_rewards = 2, 3
    assert edge.rewards_not_counted == (2, 3)
    edge.on_record(f"outvote.live.{hosted.task_id}.delete", b"{}")
    assert edge.tasks == {}
    figures = read_metrics(ask(edge, "GET", "/metrics").text)
    assert figures["outvote_edge_late_rewards_total"] == 2
    assert figures["outvote_edge_dropped_rewards_total"] == 3


def test_the_openapi_document_lists_exactly_what_is_answered(edge: Edge) -> None:
    host(edge, task())
    document = ask(edge, "GET", "/openapi.json").json()
    assert document == json.loads(json.dumps(openapi()))
    assert document["openapi"] == "3.1.0"
    offered = {(method, path) for path, item in document["paths"].items() for method in item if method != "parameters"}
    assert offered == {
        ("get", "/v1/tasks"),
        ("get", "/v1/tasks/{task}"),
        ("post", "/v1/tasks/{task}/decide"),
        ("post", "/v1/tasks/{task}/reward"),
        ("post", "/v1/tasks/{task}/exposed"),
        ("post", "/ofrep/v1/evaluate/flags"),
        ("post", "/ofrep/v1/evaluate/flags/{task}"),
        ("get", "/healthz"),
        ("get", "/metrics"),
        ("get", "/openapi.json"),
    }
    for reference in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)):
        assert reference in document["components"]["schemas"]
