"""Both HTTP APIs are as their documents say, whatever they are asked: of a real edge and a real server with its engine.

Schemathesis makes the requests from the documents, sound ones and ones with a fault, and looks at every answer. A name
drawn at random is no task's: so each document is also taken with the names of tasks that there are in it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import httpx
import pytest
import schemathesis
from hypothesis import given
from hypothesis import strategies as st
from schemathesis.checks import CHECKS, load_all_checks

from amounts import examples
from helpers.processes import DEADLINE, Running, an_edge, commands, request, until
from outvote.edge import openapi as edge_openapi
from outvote.server.admin import openapi as admin_openapi

from .mutants import json_like

TASKS: dict[str, dict[str, Any]] = {
    "shop": {"variants": ["red", "green"], "sites": ["ams"], "delta": 0.05, "reward_window": 1},
    "votes": {"protocol": "edme", "variants": 3, "sites": 2, "instances": 2, "epsilon": 0.9, "reward_window": 60},
    "private": {"variants": ["true", "false"], "sites": 2, "epsilon": 0.1, "reward_window": 1, "privacy_budget": 1},
    "stopped": {"variants": ["red", "green"], "sites": 1, "epsilon": 0.9, "reward_window": 1},
    "killed": {"variants": ["red", "green"], "sites": 1, "epsilon": 0.9, "reward_window": 1, "fallback": "green"},
}
Request: TypeAlias = schemathesis.Case[Any]
GONE = {"name": "gone", "variants": 2, "sites": 1, "epsilon": 0.5, "reward_window": 1}
"""A task that may be deleted: it is made again before it is."""


class Fleet(NamedTuple):
    """A server and an edge."""

    server: Running
    edge: Running

    def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """Of the server."""
        return httpx.request(method, self.server.url("server") + path, json=body, timeout=DEADLINE, trust_env=False)

    def alive(self) -> None:
        """Both processes are the ones that were started, and do all that they are for."""
        assert self.server.process.poll() is None
        assert self.edge.process.poll() is None
        assert request(self.server.url("server") + "/healthz")["status"] == "ok"
        self.ask("DELETE", "/v1/tasks/after")
        assert self.ask("POST", "/v1/tasks", {**TASKS["shop"], "name": "after"}).status_code == 201
        here = self.edge.url("edge") + "/v1/tasks/after"
        until(lambda: httpx.get(here, trust_env=False).status_code == 200, "the edge has the task")
        for _ in range(9):
            decision = request(here + "/decide", {})
            request(here + "/reward", {"variant": decision["variant"], "ticket": decision["ticket"], "reward": 1})
        until(lambda: self.ask("GET", "/v1/tasks/after").json()["messages"]["up"] > 0, "the server has read of it")
        assert self.ask("DELETE", "/v1/tasks/after").status_code == 204


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with commands(tmp_path_factory.mktemp("fleet")) as start:
        server = start("server", "--port", "0", "--engine-port", "0", "--store", "log")
        found = Fleet(server, an_edge(start, server, "ams"))
        for name, task in TASKS.items():
            assert found.ask("POST", "/v1/tasks", {"name": name, **task}).status_code == 201
        assert found.ask("POST", "/v1/tasks/stopped/stop").status_code == 200
        assert found.ask("POST", "/v1/tasks/killed/kill").status_code == 200
        here = found.edge.url("edge")
        until(lambda: request(here + "/healthz")["tasks"] == len(TASKS), "the edge has all tasks")
        until(lambda: bool(request(here + "/v1/tasks/stopped")["stopped"]), "it has heard of the stop")
        yield found
        found.alive()


# ---- the documents

load_all_checks()
NOT_CHECKED = (
    "positive_data_acceptance",  # what a schema cannot say is refused with 404, 409 or 422, as the documents say
    "ignored_auth",  # these processes have no credentials, so nothing is asked for any
    "max_response_time",  # speed is not asserted
)
ALL: Any = [check for check in CHECKS.get_all() if check.__name__ not in NOT_CHECKED]
ENDLESS = "/v1/events"
"""Its answer has no end, and a client that waits for it would wait for ever: tests/server/test_changes.py reads it."""


TICKETS = ["uncounted", "AAAAAAAA.0.0.0.1700000000000", "AAAAAAAA.0.0.0.9999999999999", "AAAAAAAA.0.9.0.9999999999999"]
"""Of a decision that is not counted, of one that is long ago, of one of another process, and of an unknown arm."""


def with_names(document: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The same document, in which only these tasks can be named, and a reward has a ticket that may be one."""
    known = copy.deepcopy(document)
    for path in known["paths"].values():
        for parameter in path.get("parameters", ()):
            if parameter["name"] == "task":
                parameter["schema"] = {"type": "string", "enum": names}
    fields = known["components"]["schemas"].get("Reward", {}).get("properties", {})
    if fields:
        fields["variant"] = {"enum": ["red", "green", "true", "0", "1", "2", None]}
        fields["ticket"] = {"enum": TICKETS}
    return known


CONFIG: dict[str, Any] = {"generation": {"database": "none"}}
EDGE = json.loads(json.dumps(edge_openapi.openapi()))
SERVER = json.loads(json.dumps(admin_openapi.openapi()))


def described(document: dict[str, Any]) -> Any:
    found = schemathesis.openapi.from_dict(document, config=schemathesis.Config.from_dict(CONFIG))
    return found.exclude(path=ENDLESS)


edge_api = described(EDGE)
edge_api_of_tasks = described(with_names(EDGE, list(TASKS))).include(path_regex=r"\{task\}")
server_api = described(SERVER)
server_api_of_tasks = described(with_names(SERVER, [*TASKS, "gone"])).include(path_regex=r"\{task\}")


def check(case: Request, url: str) -> None:
    case.call_and_validate(base_url=url, checks=ALL, timeout=DEADLINE)


@edge_api.parametrize()  # type: ignore[untyped-decorator]  # what it gives has no types
@examples(5)
def test_an_edge_is_as_its_document_says(case: Request, fleet: Fleet) -> None:
    check(case, fleet.edge.url("edge"))


@edge_api_of_tasks.parametrize()  # type: ignore[untyped-decorator]
@examples(8)
def test_an_edge_is_as_its_document_says_of_tasks_that_are_there(case: Request, fleet: Fleet) -> None:
    check(case, fleet.edge.url("edge"))


@server_api.parametrize()  # type: ignore[untyped-decorator]  # what it gives has no types
@examples(5)
def test_a_server_is_as_its_document_says(case: Request, fleet: Fleet) -> None:
    check(case, fleet.server.url("server"))


@server_api_of_tasks.parametrize()  # type: ignore[untyped-decorator]
@examples(5)
def test_a_server_is_as_its_document_says_of_tasks_that_are_there(case: Request, fleet: Fleet) -> None:
    if case.method == "DELETE":
        case.path_parameters["task"] = "gone"
        fleet.ask("POST", "/v1/tasks", GONE)
    check(case, fleet.server.url("server"))


# ---- bodies and headers that no document would make

HEADERS: Any = st.dictionaries(
    st.sampled_from(["Origin", "Host", "Accept", "Content-Type", "If-None-Match", "Sec-Fetch-Site", "Authorization"]),
    st.sampled_from(
        ["", "null", "http://[", "http://[::1", "http://a:b", "*", '"0P0"', 'W/"0P0.1", "x"', "Bearer", "Bearer \xe9"]
        + ["text/html", "application/openmetrics-text;version=x", "a/b;charset=\xfc", "a" * 4000, "same-site", "\xff"]
    ),
    max_size=2,
)


def post(url: str, body: bytes, headers: dict[str, str], method: str = "POST") -> httpx.Response:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return httpx.request(method, url, content=body, headers=raw, timeout=DEADLINE, trust_env=False)


def is_documented(answer: httpx.Response, document: dict[str, Any], path: str) -> None:
    """The status is one that the document has, and what is refused says why."""
    operation = document["paths"][path][answer.request.method.lower()]
    assert answer.status_code < 500, answer.text
    assert str(answer.status_code) in operation["responses"], answer.text
    if answer.status_code >= 400 and not path.startswith("/ofrep"):
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code
    elif answer.status_code not in (204, 304):
        assert answer.headers["content-type"] == "application/json"
        answer.json()


@examples(20)
@given(data=st.data())
def test_a_server_makes_the_task_that_it_is_asked_for_or_says_why_not(fleet: Fleet, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list(TASKS)))
    sound = {**TASKS[name], "name": "new"}
    if data.draw(st.booleans()):  # a whole record, as it shows one
        sound = {**fleet.ask("GET", f"/v1/tasks/{name}").json()["task"], "name": "new"}
    body, headers = data.draw(json_like(sound)), data.draw(HEADERS)
    expectation = data.draw(json_like({"traffic": 5, "baseline": 0.1, "difference": 0.2}))
    answer = post(fleet.server.url("server") + "/v1/tasks", body, headers)
    is_documented(answer, SERVER, "/v1/tasks")
    if answer.status_code == 201:
        task_id = answer.json()["id"]
        assert fleet.ask("GET", answer.headers["location"]).json()["id"] == task_id
        said = post(f"{fleet.server.url('server')}/v1/tasks/{task_id}/expectation", expectation, headers, method="PUT")
        is_documented(said, SERVER, "/v1/tasks/{task}/expectation")
        assert fleet.ask("DELETE", f"/v1/tasks/{task_id}").status_code == 204


BODIES: dict[str, Any] = {
    "/v1/tasks/{task}/reward": {"variant": "red", "ticket": "uncounted", "reward": 1},
    "/v1/tasks/{task}/decide": {},
    "/ofrep/v1/evaluate/flags": {"context": {"targetingKey": "x", "more": [1]}},
    "/ofrep/v1/evaluate/flags/{task}": {"context": {}},
}


@examples(60)
@given(data=st.data())
def test_an_edge_takes_a_body_or_says_why_not(fleet: Fleet, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(list(BODIES)))
    body = data.draw(json_like(BODIES[path]))
    url = fleet.edge.url("edge") + path.replace("{task}", data.draw(st.sampled_from([*TASKS, "none", "%00", "%ff"])))
    is_documented(post(url, body, data.draw(HEADERS)), EDGE, path)


@examples(15)
@given(data=st.data())
def test_what_is_there_is_shown_whatever_headers_say(fleet: Fleet, data: st.DataObject) -> None:
    name, document = data.draw(st.sampled_from([("edge", EDGE), ("server", SERVER)]))
    running = fleet.edge if name == "edge" else fleet.server
    paths = [path for path, item in document["paths"].items() if "get" in item and "{" not in path and path != ENDLESS]
    answer = post(running.url(name) + data.draw(st.sampled_from(paths)), b"", data.draw(HEADERS), method="GET")
    assert answer.status_code in (200, 403), answer.text  # a name that is not this host's may be somebody else's page
