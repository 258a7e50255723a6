"""The document of the server's API: every path, method and status in it is answered as it says."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Never

import httpx
import msgspec
import pytest

from outvote import __version__
from outvote.core.errors import InvalidTask
from outvote.core.task import Task
from outvote.network import admin_api
from outvote.network.admin_api import Admin, make_app
from outvote.network.admin_openapi import TYPES, openapi
from outvote.network.admin_request import ALLOWED, NewTask
from outvote.network.engine import Engine
from outvote.network.link import Link
from outvote.network.operated import OperatedServer

TALLY: dict[str, Any] = {
    "name": "shop",
    "protocol": "tally",
    "arms": ["red", "green"],
    "players": ["ams", "fra"],
    "epsilon": 0,
    "delta": 0.05,
    "reward_window": 60,
}
VOTES: dict[str, Any] = {"name": "votes", "protocol": "dme", "arms": 4, "players": 3, "epsilon": 0.5, "delta": 0.05}
TYPE_OF = {each.__name__: each for each in TYPES}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(tmp_path / "engine", port=0) as running:
        yield running


def documented() -> set[tuple[str, str, int]]:
    """Every path, method and status, but for those that any may answer: `test_guard` is about these."""
    return {
        (path, method, int(status))
        for path, item in openapi()["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
        for status, answer in operation["responses"].items()
        if "$ref" not in answer
    }


def references(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(part, list):
        for value in part:
            yield from references(value)


def test_the_document_is_whole() -> None:
    document = msgspec.json.decode(msgspec.json.encode(openapi()))
    assert document["openapi"] == "3.1.0"
    assert document["info"]["version"] == __version__
    parts = document["components"]
    named = {f"#/components/{kind}/{name}" for kind in ("schemas", "responses") for name in parts[kind]}
    assert set(references(document)) <= named


def test_the_document_has_the_routes_of_the_application_and_no_others() -> None:
    routes = {
        (path, method.lower())
        for path, methods in Admin(None).routes.items()  # type: ignore[arg-type]  # nothing is asked of it
        for method in methods
    }
    assert {(path, method) for path, method, _ in documented()} == routes


def test_a_new_task_has_the_arguments_of_a_task_with_their_defaults() -> None:
    arguments = {
        name: each.default
        for name, each in inspect.signature(Task.__init__).parameters.items()
        if each.kind is each.KEYWORD_ONLY
    }
    assert set(ALLOWED) == set(arguments)
    for each in msgspec.structs.fields(NewTask):
        if not each.required:
            assert each.default == arguments[each.name], each.name
        else:
            assert arguments[each.name] is inspect.Parameter.empty


@pytest.mark.parametrize(
    "asked",
    [
        TALLY,
        VOTES,
        {**VOTES, "protocol": "edme", "instances": 2},
        {**VOTES, "code": "huffman", "code_weights": [1] * 4},
    ],
)
def test_what_is_a_task_is_a_new_task_of_the_document(asked: dict[str, Any]) -> None:
    Task(**asked)
    msgspec.convert(asked, NewTask)


async def impossible(*_: object, **__: object) -> Never:
    raise InvalidTask("somebody else was faster")


async def endless(*_: object, **__: object) -> None:
    await asyncio.Event().wait()


class Checked:
    """Makes requests and holds the answers against the document."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._paths = openapi()["paths"]
        self.seen: set[tuple[str, str, int]] = set()

    async def __call__(self, method: str, path: str, status: int, **request: Any) -> httpx.Response:
        """`path` as in the document, with the name instead of `{task}` or `{edge}` after a colon."""
        path, _, name = path.partition(":")
        response = await self._client.request(method, path.replace("{task}", name).replace("{edge}", name), **request)
        assert response.status_code == status, response.text
        self.seen.add((path, method.lower(), status))
        described = self._paths[path][method.lower()]["responses"][str(status)]
        if "content" not in described:
            assert response.content == b""
            return response
        [(media, content)] = described["content"].items()
        assert response.headers["content-type"].partition(";")[0] == media
        schema = content["schema"]
        if "$ref" in schema:
            kind = TYPE_OF[schema["$ref"].rpartition("/")[2]]
            found = msgspec.convert(response.json(), kind)
            assert msgspec.json.decode(msgspec.json.encode(found)) == response.json()  # and no field besides
        elif schema["type"] == "object":
            assert isinstance(response.json(), dict)
        for header in described.get("headers", ()):
            assert header in response.headers
        return response


def test_every_path_method_and_status_is_answered_as_the_document_says(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        server = OperatedServer(await Link.connect(engine.url, name="server"))
        await server.start()
        transport = httpx.ASGITransport(make_app(server), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            ask = Checked(client)
            try:
                await what_works(ask)
                server.changes.close()  # else the next one would never end
                await ask("GET", "/v1/events", 200)
                await what_is_refused(ask, server, monkeypatch)
                await what_fails(ask, server, monkeypatch)
            finally:
                await server.stop()
        assert ask.seen == documented()

    asyncio.run(run())


async def what_works(ask: Checked) -> None:
    made = await ask("POST", "/v1/tasks", 201, json=TALLY)
    await ask("POST", "/v1/tasks", 201, json=VOTES)
    record = (await ask("GET", "/v1/tasks/{task}:votes", 200)).json()["task"]
    await ask("DELETE", "/v1/tasks/{task}:votes", 204)
    await ask("POST", "/v1/tasks", 201, json=record)
    await ask("GET", f"/v1/tasks/{{task}}:{made.json()['id']}", 200)
    await ask("GET", "/v1/tasks", 200)
    for verb in ("kill", "revive", "stop"):
        await ask("POST", f"/v1/tasks/{{task}}/{verb}:shop", 200)
    told = await ask("PUT", "/v1/tasks/{task}/expectation:votes", 200, json={"traffic": 500, "difference": 0.1})
    assert (await ask("GET", "/v1/tasks/{task}:votes", 200)).json()["expectation"] == told.json()
    await ask("GET", "/v1/edges", 200)
    assert (await ask("POST", "/v1/edges/{edge}/discount:ams", 200)).json() == {"edge": "ams", "tasks": []}
    await ask("GET", "/healthz", 200)
    await ask("GET", "/metrics", 200)
    described = await ask("GET", "/openapi.json", 200)
    assert described.content == msgspec.json.encode(openapi())


async def what_is_refused(ask: Checked, server: OperatedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for method, path in (
        ("GET", "/v1/tasks/{task}:no"),
        ("DELETE", "/v1/tasks/{task}:no"),
        ("POST", "/v1/tasks/{task}/stop:no"),
        ("POST", "/v1/tasks/{task}/kill:no"),
        ("POST", "/v1/tasks/{task}/revive:no"),
        ("PUT", "/v1/tasks/{task}/expectation:no"),
        ("POST", "/v1/edges/{edge}/discount:no"),
    ):
        await ask(method, path, 404)
    await ask("POST", "/v1/edges/{edge}/discount:a.b", 422)
    expectation = "/v1/tasks/{task}/expectation:shop"
    await ask("PUT", expectation, 400, content=b"{")
    await ask("PUT", expectation, 413, content=b" " * 65_537)
    await ask("PUT", expectation, 422, json={"traffic": -1})
    await ask("POST", "/v1/tasks", 400, content=b"{")
    await ask("POST", "/v1/tasks", 409, json=TALLY)
    await ask("POST", "/v1/tasks", 413, content=b" " * 65_537)
    await ask("POST", "/v1/tasks", 422, json={})
    changes = (
        ("POST", "/v1/tasks", "create"),
        ("DELETE", "/v1/tasks/{task}:shop", "delete_task"),
        ("POST", "/v1/tasks/{task}/stop:shop", "stop_task"),
        ("POST", "/v1/tasks/{task}/kill:shop", "switch"),
        ("POST", "/v1/tasks/{task}/revive:shop", "switch"),
        ("PUT", "/v1/tasks/{task}/expectation:shop", "expect"),
        ("POST", "/v1/edges/{edge}/discount:ams", "discount"),
    )
    for method, path, name in changes:
        with monkeypatch.context() as during:
            body = {"traffic": 9} if name == "expect" else {**TALLY, "name": "new"}
            during.setattr(server, name, impossible)
            await ask(method, path, 409, json=body)
            during.setattr(server, name, endless)
            during.setattr(admin_api, "PATIENCE", 0.01)
            await ask(method, path, 503, json=body)
    with monkeypatch.context() as during:
        during.setattr(server, "_follower", None)
        await ask("GET", "/healthz", 503)


async def what_fails(ask: Checked, server: OperatedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody foresaw, whichever it is."""
    with monkeypatch.context() as during:
        for part in ("fold", "dated", "changes"):
            during.setattr(server, part, None)
        during.setattr(admin_api, "_document", None)  # it is kept once it was asked for
        for path, method, status in documented():
            if status == 500:
                await ask(method.upper(), f"{path}:shop", 500, json={**TALLY, "name": "new"})
