"""Writes the OpenAPI 3.1 documents of both HTTP APIs. Schemas come from the very types that are read and answered.

What any path may answer is said once for all: who is turned away, and whose request is not whole.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from outvote import __version__
from outvote.web import problems
from outvote.web.connections import LARGEST_HEAD, MOST_FIELDS
from outvote.web.limits import UNFINISHED
from outvote.web.problems import Problem

Content: TypeAlias = type | tuple[type, ...] | dict[str, Any] | None
"""Of a request or an answer: JSON of one of these types, what OpenAPI says of it, or nothing."""
TEXT: Final = {"text/plain": {"schema": {"type": "string"}}}
DOCUMENT: Final = {"application/json": {"schema": {"type": "object"}}}
SAID: Final = {
    "401": "A token is needed and there is none, or it is not known, or has expired: the type tells which.",
    "403": "This token may not do that; or who asks is a page of another origin, or calls this process by a name that "
    "is not its own.",
    "408": f"The request was not whole within {UNFINISHED} s.",
    "431": f"The head of the request has more than {MOST_FIELDS} fields, or more than {LARGEST_HEAD:,} bytes.",
}
"""By status: what any path may answer."""
BY_THE_LISTENER: Final = ("408", "431")
"""Those that come before anybody looks at the path."""


class Operation(NamedTuple):
    """One method of one path. It refuses what is not there, if its path names something, and a body that is none."""

    summary: str
    answer: Content = None
    body: Content = None
    status: str = "200"
    says: str = "As asked."
    refusals: tuple[str, ...] = ()
    """Further statuses."""
    refuses_with: type = Problem


def document(
    title: str,
    operations: Mapping[str, Operation],
    *,
    parameters: Mapping[str, Mapping[str, Any]],
    refusals: Mapping[type, Mapping[str, str]],
    tokens: str,
    without: Collection[str],
) -> dict[str, Any]:
    """The document of operations, by method and path as in "GET /healthz". `refusals` says why, by type of answer and
    status; `tokens` says whose are good, and `without` are the paths that need none."""
    types: dict[type, None] = {}
    paths: dict[str, dict[str, Any]] = {}
    for where, operation in operations.items():
        method, path = where.split()
        types |= dict.fromkeys((*_types(operation.body), *_types(operation.answer), operation.refuses_with))
        item = paths.setdefault(path, {})
        item[method.lower()] = _operation(path, operation, refusals, is_open=path in without)
        for name in re.findall(r"{(\w+)}", path):
            item["parameters"] = [{"name": name, "in": "path", "required": True, **parameters[name]}]
    _, schemas = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    scheme = {
        "type": "http",
        "scheme": "bearer",
        "description": f"{tokens} Needed when the process was started with tokens, else by nobody.",
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__, "license": {"name": "Apache-2.0"}},
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": scheme},
            "responses": {_name(status, kind): _response(status, kind) for kind in refusals for status in SAID},
        },
    }


def content(what: Content) -> dict[str, Any]:
    """As OpenAPI has it."""
    if what is None:
        return {}
    if isinstance(what, dict):
        return {"content": what}
    references = [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in _types(what)]
    media = problems.CONTENT_TYPE.decode() if what is Problem else "application/json"
    return {"content": {media: {"schema": references[0] if len(references) == 1 else {"anyOf": references}}}}


def _types(what: Content) -> tuple[type, ...]:
    if isinstance(what, type):
        return (what,)
    return what if isinstance(what, tuple) else ()


def _operation(
    path: str, operation: Operation, reasons: Mapping[type, Mapping[str, str]], *, is_open: bool
) -> dict[str, Any]:
    kind = operation.refuses_with
    refused = {*operation.refusals, "500"}
    if "{" in path:
        refused.add("404")
    if operation.body:
        refused |= {"400", "413"}
    responses = {operation.status: {"description": operation.says} | content(operation.answer)}
    for status in sorted(refused):
        responses[status] = {"description": reasons[kind][status]} | content(kind)
    for status in SAID:
        if not (is_open and status == "401"):
            responses[status] = {"$ref": f"#/components/responses/{_name(status, kind)}"}
    found: dict[str, Any] = {"summary": operation.summary, "responses": responses}
    if operation.body:
        found["requestBody"] = {"required": kind is Problem} | content(operation.body)
    return found | ({"security": []} if is_open else {})


def _name(status: str, kind: type) -> str:
    """The listener knows one kind of refusal only."""
    return f"{'Refused' if kind is Problem or status in BY_THE_LISTENER else 'Failed'}{status}"


def _response(status: str, kind: type) -> dict[str, Any]:
    found: dict[str, Any] = {"description": SAID[status]}
    found |= content(Problem if status in BY_THE_LISTENER else kind)
    if status == "401":
        found["headers"] = {"WWW-Authenticate": {"description": "`Bearer`", "schema": {"type": "string"}}}
    return found
