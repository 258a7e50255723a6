"""The OpenAPI 3.1 document of the server's API. Its schemas come from the very types that are answered."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import msgspec

from outvote import __version__
from outvote.core.task import Task
from outvote.log.expectation import Expectation
from outvote.server.admin.fleet import EdgeList
from outvote.server.admin.requests import LARGEST_BODY, NewTask
from outvote.server.admin.views import Discounted, Health, TaskDescription, TaskList, TaskSummary
from outvote.web import problems
from outvote.web.openapi_security import add_security
from outvote.web.problems import Problem

NO_BODY: Final = "No body is needed, and none is read."
KILL_SWITCH: Final = f"The kill switch: nothing is learnt while it is on. {NO_BODY}"
TYPES: Final = (
    Discounted, EdgeList, Expectation, Health, NewTask, Problem, Task, TaskDescription, TaskList, TaskSummary,
)  # fmt: skip
"""What has a schema of its own; the types of their fields come along."""


class Operation(NamedTuple):
    """One method of one path. What it refuses follows from its method, its path and its body."""

    summary: str
    content: dict[str, Any] | None = None
    """Of its answer, as OpenAPI has it; None is an answer without a body."""
    body: dict[str, Any] | None = None
    """The same of its request."""
    status: str = "200"


def _json(*kinds: type, media: str = "application/json") -> dict[str, Any]:
    """One of these types."""
    references = [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in kinds]
    return {media: {"schema": references[0] if len(references) == 1 else {"anyOf": references}}}


OPERATIONS: Final[dict[str, dict[str, Operation]]] = {
    "/v1/tasks": {
        "get": Operation("All tasks.", _json(TaskList)),
        "post": Operation(
            "A new task: edges begin at once. The body has the fields of a new task, or is a whole record as GET shows "
            "it under `task`. It is read as JSON whatever its Content-Type says, and also without one.",
            _json(TaskSummary),
            body=_json(NewTask, Task),
            status="201",
        ),
    },
    "/v1/tasks/{task}": {
        "get": Operation("One task: its arms, messages, bits and edges.", _json(TaskDescription)),
        "delete": Operation("Edges forget the task; its name is free again.", status="204"),
    },
    "/v1/tasks/{task}/stop": {
        "post": Operation(
            "Nothing more is decided: edges serve the winner or the fallback, and send nothing. What is stopped may be "
            f"stopped again. {NO_BODY}",
            _json(TaskSummary),
        ),
    },
    "/v1/tasks/{task}/kill": {
        "post": Operation(f"Edges serve the fallback at once. {KILL_SWITCH}", _json(TaskSummary))
    },
    "/v1/tasks/{task}/revive": {"post": Operation(f"The task goes on. {KILL_SWITCH}", _json(TaskSummary))},
    "/v1/tasks/{task}/expectation": {
        "put": Operation(
            "What operators expect of a task, from now on: pages use it to say how long it will take.",
            _json(Expectation),
            body=_json(Expectation),
        ),
    },
    "/v1/edges": {"get": Operation("All edges, and which are alive.", _json(EdgeList))},
    "/v1/edges/{edge}/discount": {
        "post": Operation(
            "What this edge has sent so far counts no more, in all tasks that run: for one whose credential was in "
            "wrong hands. What was eliminated stays so, and what the edge sends from now on counts. It may be said "
            f"again, and then tells of the tasks in which there was something new. {NO_BODY}",
            _json(Discounted),
        ),
    },
    "/v1/events": {
        "get": Operation(
            "What changes, as server-sent events for as long as the connection lasts. The data of each is a JSON list: "
            "the ids of tasks that have changed, and `fleet` if edges have. An empty list is sent at once, and now and "
            "then while nothing changes.",
            {"text/event-stream": {"schema": {"type": "string"}}},
        ),
    },
    "/healthz": {
        "get": Operation(
            "Whether this server can do its work: 503 if the engine is away, its log is not read yet, or it takes no "
            "more.",
            _json(Health),
        ),
    },
    "/metrics": {
        "get": Operation("Figures in Prometheus' text format.", {"text/plain": {"schema": {"type": "string"}}})
    },
    "/openapi.json": {"get": Operation("This document.", {"application/json": {"schema": {"type": "object"}}})},
}
_PARAMETERS: Final = {"task": "The id of a task, or its name.", "edge": "The name of an edge."}
_REFUSALS: Final = {
    "400": "The body is no JSON object.",
    "404": "There is no such task or edge.",
    "409": "The name is taken, or the tasks have changed meanwhile.",
    "413": f"The body is larger than {LARGEST_BODY} bytes.",
    "422": "A task, an expectation or a name that cannot be.",
    "500": "The server failed.",
    "503": "The engine has not confirmed the change in time: it may be stored or not.",
}


def openapi() -> dict[str, Any]:
    """The document, with the version of this package."""
    _, schemas = msgspec.json.schema_components(TYPES, ref_template="#/components/schemas/{name}")
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Outvote server",
            "version": __version__,
            "license": {"name": "Apache-2.0"},
            "description": "For operators. A method that a path does not have is answered with 405, and `Allow` names "
            "those that it has. HEAD is answered wherever GET is.",
        },
        "paths": {path: _path(path, by_method) for path, by_method in OPERATIONS.items()},
        "components": {"schemas": schemas},
    }
    paths = document["paths"]
    paths["/healthz"]["get"]["responses"]["503"] = {"description": "It cannot.", "content": _json(Health)}
    paths["/v1/tasks"]["post"]["responses"]["201"]["headers"] = {
        "Location": {"description": "Where the task is shown.", "schema": {"type": "string"}}
    }
    return add_security(
        document,
        tokens="An admin's; a viewer's for GET and HEAD.",
        without=("/healthz", "/openapi.json"),
    )


def _path(path: str, by_method: dict[str, Operation]) -> dict[str, Any]:
    parameters = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PARAMETERS[name],
            "schema": {"type": "string", "minLength": 1},
        }
        for name in re.findall(r"{(\w+)}", path)
    ]
    operations = {method: _operation(path, method, operation) for method, operation in by_method.items()}
    return {"parameters": parameters, **operations} if parameters else operations


def _operation(path: str, method: str, operation: Operation) -> dict[str, Any]:
    refused = {"500"}
    if "{" in path:
        refused.add("404")
    if method != "get":
        refused |= {"409", "503"}
    if operation.body:
        refused |= {"400", "413", "422"}
    if "{edge}" in path:
        refused.add("422")
    answer = {"description": "As asked."} | ({"content": operation.content} if operation.content else {})
    body = {"requestBody": {"required": True, "content": operation.body}} if operation.body else {}
    problem = _json(Problem, media=problems.CONTENT_TYPE.decode())
    refusals = {status: {"description": _REFUSALS[status], "content": problem} for status in sorted(refused)}
    return {"summary": operation.summary, **body, "responses": {operation.status: answer, **refusals}}
