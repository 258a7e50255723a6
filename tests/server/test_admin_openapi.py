"""The document of the server's API is whole, and of the routes that there are: tests/fuzz/test_http.py asks them."""

from __future__ import annotations

import re
from typing import Any

import jsonschema
import msgspec
import pytest

from helpers.operating import TALLY, VOTES
from outvote import __version__
from outvote.core.errors import InvalidTask
from outvote.core.task import ARGUMENTS, DEFAULTS
from outvote.presenters.task_fields import FIELDS, task_of, to_json
from outvote.server.admin.api import Admin
from outvote.server.admin.openapi import openapi


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


def test_the_document_is_whole() -> None:
    encoded = msgspec.json.encode(openapi())
    document = msgspec.json.decode(encoded)
    assert document["openapi"] == "3.1.0"
    assert document["info"]["version"] == __version__
    parts = document["components"]
    named = {f"#/components/{kind}/{name}" for kind in ("schemas", "responses") for name in parts[kind]}
    assert set(re.findall(r'"\$ref":"([^"]+)"', encoded.decode())) <= named


def test_the_document_has_the_routes_of_the_application_and_no_others() -> None:
    routes = {
        (path, method.lower())
        for path, methods in Admin(None).routes.items()  # type: ignore[arg-type]  # nothing is asked of it
        for method in methods
    }
    assert {(path, method) for path, method, _ in documented()} == routes


def test_a_new_task_has_the_fields_of_the_table_and_the_defaults_of_a_task() -> None:
    assert {field.core for field in FIELDS} == set(ARGUMENTS) - {"parameters"}
    schema = openapi()["components"]["schemas"]["NewTask"]
    assert schema["required"] == ["variants", "sites", "reward_window"]
    for field in FIELDS:
        if not field.is_needed:
            assert schema["properties"][field.name]["default"] == DEFAULTS[field.core]
    assert "default" not in schema["properties"]["reward_window"], "0 is a default of simulations alone"


@pytest.mark.parametrize(
    "asked",
    [
        {**TALLY, "reward_window": 1},
        {**TALLY, "reward_window": 7 * 24 * 3600},
        VOTES,
        {**VOTES, "protocol": "edme", "instances": 2},
        {**VOTES, "code": "huffman", "code_weights": [1] * 4},
    ],
)
def test_what_is_a_task_is_valid_in_the_document(asked: dict[str, Any]) -> None:
    assert not wrong_in_the_document(asked)
    assert not wrong_in_the_document(to_json(task_of(asked)))


@pytest.mark.parametrize(
    "changed",
    [
        *({"sites": sites} for sites in (0, -1, 2.5, [], ["a", "a"], ["a b"], None, True)),
        *({"variants": variants} for variants in (1, 0, ["red"], ["a", "a"], ["a", ""], "red")),
        *({"delta": delta} for delta in (0, 1, "5%", None)),
        {"floor": 1},
        {"privacy_budget": 21},
        {"tolerate": -1},
        {"protocol": "tali"},
        {"quorum": "half"},
        {"code": "morse"},
        {"name": "a b"},
        {"arms": 2},
        *({"reward_window": window} for window in (None, 0, 0.999, -1, 604_801, 365 * 86_400, "20s", True)),
    ],
)
def test_what_no_task_can_have_is_not_valid_in_the_document_and_refused(changed: dict[str, Any]) -> None:
    assert wrong_in_the_document({**TALLY, **changed})
    with pytest.raises(InvalidTask):
        task_of({**TALLY, **changed})


def wrong_in_the_document(asked: object) -> list[object]:
    """What a validator of JSON Schema finds wrong with a new task."""
    document = openapi()
    schema = {**document["components"]["schemas"]["NewTask"], "components": document["components"]}
    return list(jsonschema.Draft202012Validator(schema).iter_errors(asked))
