"""The OpenFeature Remote Evaluation Protocol, to the letter: what an edge answers, and how it refuses.

In process, without a network; the stock clients have their own tests beside.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from helpers.edge_http import ARMS, ask, client_of, eliminate, host, read_metrics, task, within_deadline
from outvote.edge.bodies import LARGEST_BODY
from outvote.edge.hosted_task import HostedTask
from outvote.edge.ofrep import FLAGS, LONGEST_TAG, MOST_TAGS
from outvote.edge.site import Edge

ONE = f"{FLAGS}/shop"
TICKET = r"[A-Za-z0-9_-]{8}(\.\d+){3}\.\d{13}"
MARK = "zebra7531"


def flags(answer: httpx.Response) -> dict[str, dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    return {each["key"]: each for each in answer.json()["flags"]}


def bulk(edge: Edge, tag: str | None = None) -> httpx.Response:
    return ask(edge, "POST", FLAGS, json={"context": {}}, headers={} if tag is None else {"If-None-Match": tag})


# ---- one flag


def test_one_evaluation_is_one_decision_and_its_ticket_is_good_for_the_reward(edge: Edge) -> None:
    hosted = host(edge, task())
    for number, arm in enumerate(ARMS, 1):
        body = {"context": {"targetingKey": "visitor", "any": [1, {"thing": None}]}}
        found = ask(edge, "POST", ONE, json=body).json()
        ticket = found["metadata"]["ticket"]
        assert re.fullmatch(TICKET, ticket)
        told = {"key": "shop", "reason": "SPLIT", "variant": arm, "value": arm}
        assert found == told | {"metadata": {"ticket": ticket}}
        assert ask(edge, "POST", "/v1/tasks/shop/reward", json={"ticket": ticket, "reward": 1}).status_code == 204
        assert sum(hosted.player.decisions.seen.decisions) == number
    assert hosted.player.decisions.seen.rewards == [1, 1, 1]


def test_evaluations_of_one_flag_are_in_the_metrics_and_those_of_all_flags_are_not(edge: Edge) -> None:
    host(edge, task())

    async def scenario() -> None:
        async with client_of(edge) as client:
            for path in (ONE, FLAGS, FLAGS):
                assert (await client.post(path)).status_code == 200
            assert read_metrics((await client.get("/metrics")).text)["outvote_edge_decisions_total"] == 1

    within_deadline(scenario())


@pytest.mark.parametrize("body", [b"", b"{}", b'{"context": {}}', b'{"context": {"a": 1}, "more": [2]}'])
def test_a_context_may_be_anything_or_missing(body: bytes, edge: Edge) -> None:
    host(edge, task())
    for path in (ONE, FLAGS):
        assert ask(edge, "POST", path, content=body).status_code == 200


@pytest.mark.parametrize("arms", [["true", "false"], ["false", "true"]])
def test_a_task_of_true_and_false_is_a_boolean_flag_and_no_other_is(arms: list[str], edge: Edge) -> None:
    edge._join("on-1", task(name="on", arms=arms).to_json())
    edge._join("near-1", task(name="near", arms=["true", "false", "maybe"]).to_json())
    edge._join("large-1", task(name="large", arms=["True", "False"]).to_json())
    for arm in arms:
        found = ask(edge, "POST", f"{FLAGS}/on").json()
        assert (found["variant"], found["value"]) == (arm, arm == "true")
    for name in ("near", "large"):
        assert isinstance(ask(edge, "POST", f"{FLAGS}/{name}").json()["value"], str)
    assert isinstance(flags(bulk(edge))["on"]["value"], bool)


def test_reasons_say_whether_the_task_explores_has_ended_or_is_killed(edge: Edge) -> None:
    hosted = host(edge, task(fallback=ARMS[2]))
    seen: list[tuple[str, str]] = []

    def look() -> None:
        one, many = ask(edge, "POST", ONE).json(), flags(bulk(edge))["shop"]
        assert one["reason"] == many["reason"]
        assert many["metadata"] == {"ticket": "uncounted"}
        assert (one["metadata"] != {"ticket": "uncounted"}) == (one["reason"] == "SPLIT")
        if one["reason"] != "SPLIT":
            assert one["variant"] == many["variant"]
        seen.append((one["reason"], one["variant"] if one["reason"] != "SPLIT" else ""))

    look()
    edge.on_record("outvote.live.shop-1.kill.0", b"true")
    look()
    edge.on_record("outvote.live.shop-1.kill.1", b"false")
    look()
    eliminate(hosted, 1, 2)
    look()
    edge.on_record("outvote.live.shop-1.kill.2", b"true")
    look()
    edge.on_record("outvote.live.shop-1.stop", b"{}")
    look()
    assert seen == [
        ("SPLIT", ""), ("DISABLED", ARMS[2]), ("SPLIT", ""),
        ("STATIC", ARMS[0]), ("DISABLED", ARMS[2]), ("STATIC", ARMS[0]),
    ]  # fmt: skip


def test_what_is_served_while_nothing_is_learnt_has_a_ticket_that_counts_nothing(edge: Edge) -> None:
    hosted = host(edge, task())
    edge.on_record("outvote.live.shop-1.kill.0", b"true")
    before = hosted.player.snapshot()
    found = ask(edge, "POST", ONE).json()
    assert found["metadata"] == {"ticket": "uncounted"}
    body = {"variant": found["variant"], "ticket": "uncounted", "reward": 1}
    assert ask(edge, "POST", "/v1/tasks/shop/reward", json=body).status_code == 204
    assert hosted.player.snapshot() == before


# ---- refusals

DEEP = b'{"context": ' + b"[" * 30_000 + b"]" * 30_000 + b"}"
REFUSALS: dict[str, tuple[str, str, bytes, int, str, str]] = {
    "half a body": ("POST", ONE, b'{"context": {', 400, "PARSE_ERROR", "must be JSON in UTF-8"),
    "not UTF-8": ("POST", ONE, b'{"context": {"a": "\xff"}}', 400, "PARSE_ERROR", "must be JSON"),
    "plain text": ("POST", ONE, b"hello", 400, "PARSE_ERROR", "must be JSON"),
    "a context that is a list": ("POST", ONE, b'{"context": []}', 400, "INVALID_CONTEXT", "such as"),
    "a context that is null": ("POST", ONE, b'{"context": null}', 400, "INVALID_CONTEXT", "such as"),
    "a context that is text": ("POST", ONE, b'{"context": "a"}', 400, "INVALID_CONTEXT", "such as"),
    "a context of great depth": ("POST", ONE, DEEP, 400, "INVALID_CONTEXT", "such as"),
    "depth inside a context": ("POST", ONE, DEEP.replace(b": [", b': {"a": [') + b"}", 400, "PARSE_ERROR", "JSON"),
    "a body that is a list": ("POST", ONE, b"[]", 400, "INVALID_CONTEXT", "such as"),
    "a body that is null": ("POST", ONE, b"null", 400, "INVALID_CONTEXT", "such as"),
    "too large": ("POST", ONE, b" " * (LARGEST_BODY + 1), 413, "GENERAL", "at most 65536 bytes"),
    "an unknown flag": ("POST", f"{FLAGS}/nobody", b"", 404, "FLAG_NOT_FOUND", r"got 'nobody'.*'shop'"),
    "a flag with odd characters": ("POST", f"{FLAGS}/%C3%BC%20%00%22", b"", 404, "FLAG_NOT_FOUND", "unknown task"),
    "a very long flag": ("POST", f"{FLAGS}/{'x' * 5000}", b"", 404, "FLAG_NOT_FOUND", "got 'x{64}'"),
    "a flag that is a path": ("POST", f"{FLAGS}/shop/more", b"", 404, "FLAG_NOT_FOUND", "got 'shop/more'"),
    "a flag that hides a path": ("POST", f"{FLAGS}/shop%2Fmore", b"", 404, "FLAG_NOT_FOUND", "got 'shop/more'"),
    "no flag": ("POST", f"{FLAGS}/", b"", 404, "GENERAL", "nothing is at"),
    "another version": ("POST", "/ofrep/v2/evaluate/flags", b"", 404, "GENERAL", "nothing is at"),
    "what is not offered": ("GET", "/ofrep/v1/configuration", b"", 404, "GENERAL", "nothing is at"),
    "GET for one": ("GET", ONE, b"", 405, "GENERAL", "allowed is POST"),
    "PUT for all": ("PUT", FLAGS, b"", 405, "GENERAL", "allowed is POST"),
    "OPTIONS without an origin": ("OPTIONS", FLAGS, b"", 405, "GENERAL", "allowed is POST"),
}


def test_every_refusal_is_in_the_words_of_the_protocol_and_changes_nothing(edge: Edge) -> None:
    hosted = host(edge, task())
    before = hosted.player.snapshot()
    edge.flush()

    async def scenario() -> None:
        counted: dict[int, int] = {}
        async with client_of(edge) as client:
            for case, (method, path, body, status, code, says) in REFUSALS.items():
                answer = await client.request(method, path, content=body)
                assert answer.status_code == status, case
                assert answer.headers["content-type"] == "application/json"
                told = answer.json()
                assert told["errorCode"] == code, case
                assert re.search(says, told["errorDetails"]), told
                assert set(told) <= {"errorCode", "errorDetails", "key"}
                assert code != "FLAG_NOT_FOUND" or told["key"] == unquote(path.removeprefix(f"{FLAGS}/")), case
                assert (answer.headers.get("allow") == "POST") == (status == 405)
                counted[status] = counted.get(status, 0) + 1
                assert hosted.player.snapshot() == before, case
                assert not hosted.dirty, case
            figures = read_metrics((await client.get("/metrics")).text)
            for status, count in counted.items():
                assert figures[f'outvote_edge_refused_requests_total{{status="{status}"}}'] == count
            assert figures["outvote_edge_decisions_total"] == 0

    within_deadline(scenario())


def test_a_failure_is_in_the_words_of_the_protocol_too(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    host(edge, task())

    def fail(task: HostedTask) -> None:
        raise RuntimeError(MARK)

    monkeypatch.setattr(edge, "decide", fail)
    answer = ask(edge, "POST", ONE)
    assert (answer.status_code, answer.json()["errorCode"]) == (500, "GENERAL")
    assert MARK not in answer.text


# ---- all flags, and what is known of them already


def test_what_is_asked_in_bulk_decides_nothing(edge: Edge) -> None:
    hosted = host(edge, task())
    edge.flush()
    before = hosted.player.snapshot()
    assert {flags(bulk(edge))["shop"]["variant"] for _ in range(200)} == set(ARMS)  # misses one: 3·(2/3)^200 < 1e-34
    assert hosted.player.snapshot() == before
    assert not hosted.dirty
    found = flags(bulk(edge))["shop"]
    assert found == {
        "key": "shop", "reason": "SPLIT", "variant": found["variant"], "value": found["variant"],
        "metadata": {"ticket": "uncounted"},
    }  # fmt: skip


def test_an_edge_without_tasks_has_no_flags(edge: Edge) -> None:
    answer = bulk(edge)
    assert answer.json() == {"flags": []}
    assert bulk(edge, answer.headers["etag"]).status_code == 304


def test_an_assignment_is_kept_while_its_arms_remain(edge: Edge) -> None:
    hosted = host(edge, task(arms=20))
    edge._join("web-7", task(name="web", arms=20).to_json())
    answer = bulk(edge)
    first, tag = flags(answer), answer.headers["etag"]
    assert re.fullmatch(r'"[!#-~]+"', tag)  # as RFC 9110 has it
    for known in (tag, f"W/{tag}"):
        for _ in range(20):
            again = bulk(edge, known)
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    mine = hosted.indices[first["shop"]["variant"]]
    eliminate(hosted, *(arm for arm in range(20) if arm not in (mine, (mine + 1) % 20)))
    assert bulk(edge, tag).status_code == 304  # what others were shown is out
    eliminate(hosted, mine)
    answer = bulk(edge, tag)
    changed = flags(answer)
    assert changed["shop"]["variant"] == str((mine + 1) % 20)
    assert changed["shop"]["reason"] == "STATIC"
    assert changed["web"] == first["web"]  # that one is kept
    assert bulk(edge, answer.headers["etag"]).status_code == 304


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda edge: edge.on_record("outvote.live.shop-1.kill.0", b"true"), id="kill"),
        pytest.param(lambda edge: edge.on_record("outvote.live.shop-1.stop", b"{}"), id="stop"),
    ],
)
def test_what_changes_a_flag_changes_its_tag(change: Callable[[Edge], None], edge: Edge) -> None:
    host(edge, task(arms=["a", "b"]))
    tags = {answer.headers["etag"] for answer in (bulk(edge) for _ in range(60))}
    assert len(tags) == 2  # one for each arm; misses one with 2^-59
    change(edge)
    for tag in tags:
        assert bulk(edge, tag).status_code == 200


def test_a_finished_task_that_is_killed_says_so_also_where_its_fallback_has_won(edge: Edge) -> None:
    eliminate(host(edge, task(fallback=ARMS[0])), 1, 2)
    tag = bulk(edge).headers["etag"]
    edge.on_record("outvote.live.shop-1.kill.0", b"true")
    assert flags(bulk(edge, tag))["shop"]["reason"] == "DISABLED"


def test_a_tag_that_means_nothing_is_as_good_as_none(edge: Edge) -> None:
    host(edge, task())
    tag = bulk(edge).headers["etag"]
    key = tag[1:9]
    for known in (
        "", '"', "W/", '""', ".", '"."', tag[:-1], tag.upper() + "x", "x" * 20_000, '"' * 20_000, '"*"', "**",
        f'"{key}P9"', f'"{key}P-1"', f'"{key}P{"9" * 5000}"', f'"{key}P๐"', f'"{key}P1.{key}P1"', f'"{key}P"',
        f'"{key}P0x1"', f'"{key}I0"', f'"{key}0"', f'"{tag}"', f'"x", "{key}P9"',
    ):  # fmt: skip
        answer = ask(edge, "POST", FLAGS, headers=[(b"if-none-match", known.encode())])
        assert flags(answer)["shop"]["variant"] in ARMS, known
        assert re.fullmatch(rf'"{key}P[012]"', answer.headers["etag"])


def test_one_of_several_tags_is_enough_and_any_will_do_for_a_star(edge: Edge) -> None:
    host(edge, task(arms=20))
    first = bulk(edge)
    tag = first.headers["etag"]
    for known in (f'"x", {tag}', f'{tag},"y"', f'"x" ,W/{tag} , "y"'):
        again = bulk(edge, known)
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag), known
    lines = [(b"if-none-match", b'"x"'), (b"if-none-match", tag.encode())]
    assert ask(edge, "POST", FLAGS, headers=lines).status_code == 304
    assert bulk(edge, "*").status_code == 304
    host(edge, task(name="new"))
    for known in (f'"x", {tag}', f'{tag}, "{tag[1:10]}19"'):  # the first tag that names a task decides
        assert flags(bulk(edge, known))["shop"] == flags(first)["shop"], known
    edge.tasks.pop("new")
    eliminate(edge.tasks["shop"], int(tag[10:-1]))
    assert bulk(edge, f'"x", {tag}').status_code == 200


def test_a_browser_keeps_its_variants_when_other_tasks_come_and_go(edge: Edge) -> None:
    for name in ("a", "m", "z"):
        host(edge, task(name=name, arms=1000))
    answer = bulk(edge)
    first = flags(answer)
    host(edge, task(name="new", arms=1000))
    answer = bulk(edge, answer.headers["etag"])
    grown = flags(answer)
    assert {name: flag for name, flag in grown.items() if name != "new"} == first
    edge.on_record("outvote.live.a-1.delete", b"{}")
    edge._join("a-2", task(name="a", arms=["c", "d"]).to_json())
    answer = bulk(edge, answer.headers["etag"])
    anew = flags(answer)
    assert anew.pop("a")["variant"] in ("c", "d"), "created anew, with an assignment of its own"
    assert anew == {name: flag for name, flag in grown.items() if name != "a"}
    assert bulk(edge, answer.headers["etag"]).status_code == 304


def test_a_tag_too_long_for_a_head_is_not_sent_and_many_tags_are_not_all_compared(edge: Edge) -> None:
    names = [f"task-{number}" for number in range(LONGEST_TAG // len("12345678P0."))]
    for name in names:
        edge._join(f"{name}-1", task(name=name, arms=10).to_json())
    tag = bulk(edge).headers["etag"]
    assert bulk(edge, tag).status_code == 304
    assert bulk(edge, f"{chr(34) * 2 * MOST_TAGS}{tag}").status_code == 200
    edge._join("more-1", task(name="more", arms=10).to_json())
    answer = bulk(edge, tag)
    assert "etag" not in answer.headers
    assert len(flags(answer)) == len(names) + 1
