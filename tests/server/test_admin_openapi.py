"""The document of the server's API is whole, and of the routes that there are: tests/fuzz/test_http.py asks them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from helpers.operating import TALLY, VOTES
from outvote import __version__
from outvote.core.task import Task
from outvote.server.admin.api import Admin
from outvote.server.admin.openapi import openapi
from outvote.server.admin.requests import ALLOWED, NewTask


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
        {**TALLY, "reward_window": 60},
        VOTES,
        {**VOTES, "protocol": "edme", "instances": 2},
        {**VOTES, "code": "huffman", "code_weights": [1] * 4},
    ],
)
def test_what_is_a_task_is_a_new_task_of_the_document(asked: dict[str, Any]) -> None:
    Task(**asked)
    msgspec.convert(asked, NewTask)
