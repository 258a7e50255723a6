"""Builds the OpenAPI 3.1 documents of both HTTP APIs. Schemas come from the types of requests and responses.

Responses that any path may give (refused or incomplete requests) are defined once.
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
"""The content of a request or a response: JSON of one of these types, an OpenAPI object, or nothing."""
TEXT: Final = {"text/plain": {"schema": {"type": "string"}}}
DOCUMENT: Final = {"application/json": {"schema": {"type": "object"}}}
SAID: Final = {
    "401": "The token is missing, unknown or expired: the type says which.",
    "403": "The role of the token is wrong, the request comes from a page of another origin, or its `Host` is not "
    "a name of this process.",
    "408": f"The request was not complete within {UNFINISHED} s.",
    "431": f"The head of the request has more than {MOST_FIELDS} fields, or more than {LARGEST_HEAD:,} bytes.",
}
"""Descriptions, by status, of responses that any path may give."""
BY_THE_LISTENER: Final = ("408", "431")
"""Statuses sent by the listener, before the path is known."""


class Operation(NamedTuple):
    """One method of one path. A path with a parameter may answer 404; a body may be answered with 400 or 413."""

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
    """Return the document of operations, by method and path as in "GET /healthz". `refusals` describes refusals, by
    type of response and status; `tokens` describes accepted tokens, and `without` lists the paths that need none."""
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
        "description": f"{tokens} Required if the process was started with tokens.",
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
    """Return the content as an OpenAPI object."""
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
    description: dict[str, Any] = {"summary": operation.summary, "responses": responses}
    if operation.body:
        description["requestBody"] = {"required": kind is Problem} | content(operation.body)
    return description | ({"security": []} if is_open else {})


def _name(status: str, kind: type) -> str:
    """The name of a shared response. The listener answers with a `Problem` only."""
    return f"{'Refused' if kind is Problem or status in BY_THE_LISTENER else 'Failed'}{status}"


def _response(status: str, kind: type) -> dict[str, Any]:
    response: dict[str, Any] = {"description": SAID[status]}
    response |= content(Problem if status in BY_THE_LISTENER else kind)
    if status == "401":
        response["headers"] = {"WWW-Authenticate": {"description": "`Bearer`", "schema": {"type": "string"}}}
    return response
