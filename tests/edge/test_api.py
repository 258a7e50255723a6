"""What the edge's HTTP API answers: decisions, rewards, refusals, and what people and programs ask."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from typing import Any

import msgspec
import pytest

from helpers.edge_http import (
    ARMS,
    CLOSED,
    DEADLINE,
    DECIDE,
    REWARD,
    ask,
    check_problem,
    client_of,
    decided,
    host,
    in_process,
    read_metrics,
    reward_of,
    task,
    wait,
    within_deadline,
)
from outvote.core.decisions import Ticket
from outvote.edge.api import make_app
from outvote.edge.bodies import LARGEST_BODY, Health, TaskList
from outvote.edge.hosted_task import HostedTask
from outvote.edge.openapi import openapi
from outvote.edge.site import Edge
from outvote.log.memory import MemoryEngine
from outvote.web.problems import LONGEST_DETAIL

# ---- what a reward may name


def test_a_reward_names_its_ticket_and_may_name_the_variant(edge: Edge) -> None:
    hosted = host(edge, task())
    for named in ({}, {"variant": "grün 🟢"}, {"variant": None}):
        assert ask(edge, "POST", REWARD, json=reward_of(decided(edge)) | named).status_code == 204
    assert hosted.player.decisions.seen.rewards == [1, 1, 1]


def test_a_string_of_digits_is_a_name_and_never_an_index(edge: Edge) -> None:
    host(edge, task(arms=["1", "0"]))
    decision = decided(edge)
    assert decision["variant"] == "1"
    assert ask(edge, "POST", REWARD, json=reward_of(decision) | {"variant": "1"}).status_code == 204


def test_a_task_created_anew_under_its_name_has_its_own_arms_and_decisions(edge: Edge) -> None:
    host(edge, task())
    before = decided(edge)
    assert before["variant"] == "green"
    edge.on_record("outvote.live.shop-1.delete", b"{}")
    edge._join("shop-2", task(arms=["left", "green"]).to_json())
    decisions = [decided(edge) for _ in range(2)]
    assert [decision["variant"] for decision in decisions] == ["left", "green"]
    check_problem(ask(edge, "POST", REWARD, json=reward_of(before)), 409, "unknown-decision", "for the same task")
    assert ask(edge, "POST", REWARD, json=reward_of(decisions[1])).status_code == 204
    assert edge.tasks["shop"].player.decisions.seen.rewards == [0, 1]


# ---- refusals

Refusal = tuple[Any, int, str, str, str]
"""A body; status, type and detail of the problem; the field at fault with its code."""


def bad_rewards(ticket: str, others: str) -> dict[str, Refusal]:
    """What is refused: `ticket` is that of the first decision, `others` that of a decision of another task."""
    good = {"ticket": ticket, "reward": 1}
    run, group, arm, place, at = ticket.split(".")

    def unknown(*parts: str) -> Refusal:
        return (
            {"ticket": ".".join(parts), "reward": 1},
            409,
            "unknown-decision",
            "to the edge that de",
            "ticket unknown",
        )

    def malformed(text: object) -> Refusal:
        return {"ticket": text, "reward": 1}, 422, "invalid-ticket", "^must be the ticket that", "ticket invalid"

    def mistaken(value: object) -> Refusal:
        return {"ticket": ticket, "reward": value}, 422, "invalid-reward", f"from 0 to 1, got {value}", "reward range"

    return {
        "a ticket of another task": unknown(others),
        "a ticket of another run": unknown("AAAAAAAA", group, arm, place, at),
        "a ticket of another group": unknown(run, "1", arm, place, at),
        "a ticket of another arm": unknown(run, group, "1", place, at),
        "a ticket of an arm that is none": unknown(run, group, "9", place, at),
        "a ticket of a decision to come": unknown(run, group, arm, "1", at),
        "a ticket that is cut": malformed(ticket[:-1]),
        "a ticket that is cut in front": malformed(ticket[1:]),
        "a ticket with something behind": malformed(f"{ticket} "),
        "a ticket 10 KB long": malformed(ticket + "0" * 10_000),
        "an empty ticket": malformed(""),
        "a ticket of digits": malformed("17"),
        "a ticket in Thai digits": malformed(".".join([run, "๐", arm, place, at])),
        "no ticket": ({"reward": 1}, 422, "invalid-body", "^ticket is missing.*such as", "ticket missing"),
        "no ticket but a variant": ({"variant": "green", "reward": 1}, 422, "invalid-body", "", "ticket missing"),
        "a ticket that is a number": (good | {"ticket": 0}, 422, "invalid-body", "got `int`", "ticket type"),
        "a ticket that is null": (good | {"ticket": None}, 422, "invalid-body", "got `null`", "ticket type"),
        "another variant": (
            good | {"variant": ARMS[1]}, 422, "invalid-ticket", "not of a decision for variant 'grün", "ticket invalid",
        ),
        "an unknown variant": (
            good | {"variant": "red"}, 404, "unknown-variant", r"'red', task 'shop' has \[", "variant unknown",
        ),
        "a very long variant": (
            good | {"variant": "r" * 9999}, 404, "unknown-variant", "got 'r{64}'", "variant unknown",
        ),
        "a variant that is an index": (good | {"variant": 0}, 422, "invalid-body", "^variant .*`int`", "variant type"),
        "a reward of 2": mistaken(2.0),
        "a reward above 1": mistaken(1.5),
        "a reward below 0": mistaken(-1.0),
        "a reward that is a word": (good | {"reward": "yes"}, 422, "invalid-body", "^reward .*`str`", "reward type"),
        "a reward that is null": (good | {"reward": None}, 422, "invalid-body", "^reward .*`null`", "reward type"),
        "a reward that is true": (good | {"reward": True}, 422, "invalid-body", "^reward .*`bool`", "reward type"),
        "a reward beyond floats": (
            b'{"ticket": "uncounted", "reward": 1e999}', 422, "invalid-body", "range", "reward range",
        ),
        "an uncounted reward of 2": (
            {"ticket": "uncounted", "reward": 2}, 422, "invalid-reward", "got 2.0", "reward range",
        ),
        "no reward": ({"ticket": ticket}, 422, "invalid-body", "^reward is missing.*such as", "reward missing"),
        "a misspelt field": (good | {"tickt": "0"}, 422, "invalid-body", "^tickt is unknown", "tickt unknown"),
        "a list": (b"[]", 422, "invalid-body", "^the body must be `object`, got `array`", ""),
        "no body": (None, 400, "not-json", "must be JSON in UTF-8, such as", ""),
        "half a body": (b'{"ticket": "gre', 400, "not-json", "must be JSON", ""),
        "not a number": (b'{"ticket": "%s", "reward": NaN}' % ticket.encode(), 400, "not-json", "must be JSON", ""),
        "not UTF-8": (b'{"ticket": "\xff", "reward": 1}', 400, "not-json", "must be JSON in UTF-8", ""),
        "half a surrogate": (b'{"ticket": "\\ud800", "reward": 1}', 400, "not-json", "must be JSON", ""),
    }  # fmt: skip


UNCOUNTED = {"ticket": "uncounted", "reward": 1}
REFUSALS = {
    "an unknown task, decide": ("POST", "/v1/tasks/none/decide", None, 404, "unknown-task", "got 'none'.*'shop'"),
    "an unknown task, reward": ("POST", "/v1/tasks/none/reward", UNCOUNTED, 404, "unknown-task", "got 'none'"),
    "an unknown task, shown": ("GET", "/v1/tasks/none", None, 404, "unknown-task", "got 'none'"),
    "a name with a dot": ("POST", "/v1/tasks/a.b/decide", None, 422, "invalid-name", "1 to 64 letters.*got 'a.b'"),
    "a name too long": ("POST", f"/v1/tasks/{'a' * 65}/reward", UNCOUNTED, 422, "invalid-name", "1 to 64 letters"),
    "a name with an escape": ("GET", "/v1/tasks/%C3%BC", None, 422, "invalid-name", "got 'ü'"),
    "an empty name": ("POST", "/v1/tasks//decide", None, 422, "invalid-name", "got ''"),
    "a body too large": ("POST", REWARD, b" " * (LARGEST_BODY + 1), 413, "body-too-large", "at most 65536 bytes"),
    "GET for decide": ("GET", DECIDE, None, 405, "", "method GET is not possible here, allowed is POST"),
    "PUT for reward": ("PUT", REWARD, UNCOUNTED, 405, "", "allowed is POST"),
    "POST for a task": ("POST", "/v1/tasks/shop", None, 405, "", "allowed is GET, HEAD"),
    "DELETE for all tasks": ("DELETE", "/v1/tasks", None, 405, "", "allowed is GET, HEAD"),
    "POST for health": ("POST", "/healthz", None, 405, "", "allowed is GET, HEAD"),
    "an unknown path": ("GET", "/v2/tasks", None, 404, "", "nothing is at '/v2/tasks': see /openapi.json"),
    "an unknown verb": ("POST", "/v1/tasks/shop/vote", None, 404, "", "nothing is at"),
    "a path below a verb": ("POST", "/v1/tasks/shop/decide/x", None, 404, "", "nothing is at"),
    "a path that ends in a slash": ("GET", "/v1/tasks/shop/", None, 404, "", "nothing is at"),
    "the root": ("GET", "/", None, 404, "", "nothing is at '/'"),
}


def test_every_refusal_has_its_status_and_its_problem_and_counts_nothing(edge: Edge) -> None:
    hosted = host(edge, task())
    host(edge, task(name="other"))

    def counted() -> dict[str, Any]:
        """All that is kept of the task, but how many rewards were refused."""
        snapshot = hosted.player.snapshot()
        snapshot["checksum"] = snapshot["decisions"]["seen"]["refused"] = None
        return snapshot

    async def scenario() -> None:
        async with client_of(edge) as client:
            first, second = [(await client.post(DECIDE)).json() for _ in range(2)]
            others = (await client.post("/v1/tasks/other/decide")).json()
            assert (await client.post(REWARD, json=reward_of(second))).status_code == 204
            before, by_status = counted(), Counter[int]()
            bad = bad_rewards(first["ticket"], others["ticket"])
            refusals = REFUSALS | {case: ("POST", REWARD, *refusal[:-1]) for case, refusal in bad.items()}
            for case, (method, path, body, status, kind, says) in refusals.items():
                content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
                answer = await client.request(method, path, content=content)
                check_problem(answer, status, kind, says)
                at = [answer.json()[name] for name in ("field", "code") if name in answer.json()]
                assert case not in bad or at == bad[case][-1].split(), case
                assert len(answer.json()["detail"]) <= LONGEST_DETAIL + 1
                if status == 405:
                    assert answer.headers["allow"] == ("POST" if path in (DECIDE, REWARD) else "GET, HEAD")
                by_status[status] += 1
                assert counted() == before, case
            metrics = read_metrics((await client.get("/metrics")).text)
            for status, count in by_status.items():
                assert metrics[f'outvote_edge_refused_requests_total{{status="{status}"}}'] == count
            assert metrics["outvote_edge_decisions_total"] == 3
            assert metrics["outvote_edge_rewards_total"] == 1
            assert hosted.player.decisions.seen.refused == [4, 1, 0]  # all but the one of an arm that is none
            assert (await client.post(REWARD, json=reward_of(first))).status_code == 204

    within_deadline(scenario())


def test_an_unforeseen_error_is_a_500_without_internals_and_its_log_holds_nothing_of_the_request(
    edge: Edge, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    host(edge, task())

    def fail(task: HostedTask, ticket: Ticket | None, reward: float) -> None:
        raise RuntimeError(f"secret {task.task_id} {reward}")

    monkeypatch.setattr(edge, "reward", fail)
    answer = ask(edge, "POST", REWARD, json=UNCOUNTED | {"reward": 0.625})
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
        "reward_window": 60.0,
        "seen": [{"variant": arm, "decisions": 0, "rewards": 0, "late": 0, "refused": 0, "out": 0} for arm in ARMS],
        "waiting": 0,
        "uncounted": 0,
        "notices": [],
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

    def figures() -> dict[str, float]:
        answer = asyncio.run(in_process(app, "GET", "/metrics"))
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        return read_metrics(answer.text)

    decisions = [asyncio.run(in_process(app, "POST", DECIDE)).json() for _ in range(3)]
    variant = decisions[0]["variant"]
    for decision in [decisions[0], *decisions[:2]]:
        asyncio.run(in_process(app, "POST", REWARD, json=reward_of(decision)))
    asyncio.run(in_process(app, "POST", REWARD, json=reward_of(decisions[2], 2)))
    asyncio.run(in_process(app, "POST", REWARD, json={"ticket": f"AAAAAAAA{decisions[2]['ticket'][8:]}", "reward": 1}))
    reasons = ("late", "out", "unknown")
    ignored = 'outvote_edge_task_ignored_rewards_total{{reason="{}",task="shop",variant="{}"}}'
    expected = {
        "outvote_edge_decisions_total": 3,
        "outvote_edge_rewards_total": 3,
        'outvote_edge_refused_requests_total{status="409"}': 1,
        'outvote_edge_refused_requests_total{status="422"}': 1,
        'outvote_edge_task_decisions_total{task="shop"}': 3,
        'outvote_edge_task_rewarded_decisions_total{task="shop"}': 2,
        **{ignored.format(reason, each): 0 for reason in reasons for each in ARMS},
        ignored.format("unknown", variant): 1,
        'outvote_edge_task_uncounted_decisions_total{task="shop"}': 0,
        "outvote_edge_unfinished_requests_total": 0,
        "outvote_edge_turned_away_connections_total": 0,
        'outvote_edge_info{site="ams"}': 1,
        "outvote_edge_tasks": 1,
        "outvote_edge_messages_kept": 0,
        "outvote_edge_messages_waiting": 0,
        "outvote_edge_save_seconds_count": 0,
        "outvote_edge_save_seconds_sum": 0,
        "outvote_edge_connected": 0,
        "outvote_edge_reconnections_total": 0,
        "outvote_edge_wire_bytes_total": 0,
    }
    assert figures() == expected
    wait(edge, CLOSED)
    asyncio.run(in_process(app, "POST", REWARD, json=reward_of(decisions[2])))
    edge.tick()
    found = figures()
    took = found["outvote_edge_save_seconds_sum"]
    assert 0 < took < DEADLINE
    assert found == expected | {
        "outvote_edge_rewards_total": 4,
        ignored.format("late", variant): 1,
        "outvote_edge_messages_kept": 1,
        "outvote_edge_messages_waiting": 1,
        "outvote_edge_save_seconds_count": 1,
        "outvote_edge_save_seconds_sum": took,
    }
    hosted.unsent.clear()
    assert figures()["outvote_edge_messages_waiting"] == 0


def test_metrics_are_openmetrics_for_who_accepts_them(edge: Edge) -> None:
    for accept in ("application/openmetrics-text", "application/openmetrics-text; version=no-number, text/plain"):
        answer = ask(edge, "GET", "/metrics", headers={"Accept": accept})
        assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
        assert answer.text.endswith("# EOF\n")
    answer = ask(edge, "GET", "/metrics", headers={"Accept": "text/plain; version=no-number"})
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")


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
        ("post", "/ofrep/v1/evaluate/flags"),
        ("post", "/ofrep/v1/evaluate/flags/{task}"),
        ("get", "/healthz"),
        ("get", "/metrics"),
        ("get", "/openapi.json"),
    }
    for reference in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)):
        assert reference in document["components"]["schemas"]
