"""The OpenAPI 3.1 document of the server's API. Its schemas come from the very types that are answered."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from outvote import __version__
from outvote.core.task import Task
from outvote.network import problems
from outvote.network.admin_fleet import EdgeList
from outvote.network.admin_request import LARGEST_BODY, NewTask
from outvote.network.admin_views import Created, Discounted, Health, Stopped, Switched, TaskDescription, TaskList
from outvote.network.expectation import Expectation
from outvote.network.openapi_doors import with_doors
from outvote.network.problems import Problem

TYPES: Final = (
    Created,
    Stopped,
    Switched,
    Discounted,
    TaskList,
    TaskDescription,
    EdgeList,
    Health,
    NewTask,
    Expectation,
    Task,
    Problem,
)
"""What has a schema of its own; the types of their fields come along."""
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def openapi() -> dict[str, Any]:
    """The document, with the version of this package."""
    _, components = msgspec.json.schema_components(TYPES, ref_template="#/components/schemas/{name}")
    task = {
        "name": "task",
        "in": "path",
        "required": True,
        "description": "The id of a task, or its name.",
        "schema": {"type": "string", "minLength": 1},
    }
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Outvote server",
            "version": __version__,
            "license": {"name": "Apache-2.0"},
            "description": "For operators. A method that a path does not have is answered with 405, and `Allow` names "
            "those that it has. HEAD is answered wherever GET is.",
        },
        "paths": {
            "/v1/tasks": {
                "get": _operation("All tasks.", _as_json("TaskList")),
                "post": _CREATE,
            },
            "/v1/tasks/{task}": {
                "parameters": [task],
                "get": _operation("One task: its arms, messages, bits and edges.", _as_json("TaskDescription"), "404"),
                "delete": {
                    "summary": "Edges forget the task; its name is free again.",
                    "responses": {"204": {"description": "It is deleted."}} | _refusals("404", "409", "503"),
                },
            },
            "/v1/tasks/{task}/stop": {
                "parameters": [task],
                "post": _operation(
                    "Nothing more is decided: edges serve the winner or the fallback, and send nothing. No body is "
                    "needed, and none is read. What is stopped may be stopped again.",
                    _as_json("Stopped"),
                    "404",
                    "409",
                    "503",
                ),
            },
            "/v1/tasks/{task}/kill": {"parameters": [task], "post": _switch("Edges serve the fallback at once")},
            "/v1/tasks/{task}/revive": {"parameters": [task], "post": _switch("The task goes on")},
            "/v1/tasks/{task}/expectation": {"parameters": [task], "put": _EXPECT},
            "/v1/edges": {"get": _operation("All edges, and which are alive.", _as_json("EdgeList"))},
            "/v1/edges/{edge}/discount": {"parameters": [_EDGE], "post": _DISCOUNT},
            "/v1/events": {
                "get": _operation(
                    "What changes, as server-sent events for as long as the connection lasts. The data of each is a "
                    "JSON list: the ids of tasks that have changed, and `fleet` if edges have. An empty list is sent "
                    "at once, and now and then while nothing changes.",
                    {"text/event-stream": {"schema": {"type": "string"}}},
                )
            },
            "/healthz": {
                "get": {
                    "summary": "Whether this server can do its work.",
                    "responses": {
                        "200": {"description": "It can.", "content": _as_json("Health")},
                        "503": {
                            "description": "The engine is away, its log is not read yet, or it takes no more.",
                            "content": _as_json("Health"),
                        },
                    }
                    | _refusals("500"),
                }
            },
            "/metrics": {
                "get": _operation("Figures in Prometheus' text format.", {"text/plain": {"schema": {"type": "string"}}})
            },
            "/openapi.json": {
                "get": _operation("This document.", {"application/json": {"schema": {"type": "object"}}})
            },
        },
        "components": {"schemas": components},
    }
    return with_doors(
        document,
        tokens="An admin's; a viewer's for GET and HEAD.",
        without=("/healthz", "/openapi.json"),
    )


def _as_json(kind: str, media: str = "application/json") -> dict[str, Any]:
    return {media: {"schema": _reference(kind)}}


def _reference(kind: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{kind}"}


def _operation(summary: str, content: dict[str, Any], *refused: str) -> dict[str, Any]:
    """One that is answered with 200."""
    return {
        "summary": summary,
        "responses": {"200": {"description": "As asked.", "content": content}} | _refusals(*refused),
    }


def _switch(what: str) -> dict[str, Any]:
    more = "The kill switch: nothing is learnt while it is on. No body is needed, and none is read."
    return _operation(f"{what}. {more}", _as_json("Switched"), "404", "409", "503")


def _refusals(*statuses: str, said: Mapping[str, str] = _NOTHING) -> dict[str, Any]:
    """`said` describes those that mean something else here than elsewhere."""
    media = problems.CONTENT_TYPE.decode()
    return {
        status: {"description": said.get(status, _REFUSALS[status]), "content": _as_json("Problem", media)}
        for status in sorted({*statuses, "500"})
    }


_REFUSALS: Final = {
    "400": "The body is no JSON object.",
    "404": "There is no such task.",
    "409": "The name is taken, or the tasks have changed meanwhile.",
    "413": f"The body is larger than {LARGEST_BODY} bytes.",
    "422": "A task that cannot be.",
    "500": "The server failed.",
    "503": "The engine has not confirmed the change in time: it may be stored or not.",
}
_EXPECT: Final = {
    "summary": "What operators expect of a task, from now on: pages use it to say how long it will take.",
    "requestBody": {"required": True, "content": _as_json("Expectation")},
    "responses": {"200": {"description": "It is in the log.", "content": _as_json("Expectation")}}
    | _refusals("400", "404", "409", "413", "422", "503"),
}
_EDGE: Final = {
    "name": "edge",
    "in": "path",
    "required": True,
    "description": "The name of an edge.",
    "schema": {"type": "string", "minLength": 1},
}
_DISCOUNT: Final = {
    "summary": "What this edge has sent so far counts no more, in all tasks that run: for one whose credential was in "
    "wrong hands. What was eliminated stays so, and what the edge sends from now on counts. No body is needed, and "
    "none is read. It may be said again, and then tells of the tasks in which there was something new.",
    "responses": {"200": {"description": "It is in the log.", "content": _as_json("Discounted")}}
    | _refusals(
        *("404", "409", "422", "503"),
        said={
            "404": "There is no such edge.",
            "409": "The tasks have changed meanwhile: ask again.",
            "422": "A name that no edge can have.",
        },
    ),
}
_CREATE: Final = {
    "summary": "A new task: edges begin at once.",
    "requestBody": {
        "required": True,
        "description": "The fields of a new task, or a whole record as GET shows it under `task`. It is read as JSON "
        "whatever its Content-Type says, and also without one.",
        "content": {"application/json": {"schema": {"anyOf": [_reference("NewTask"), _reference("Task")]}}},
    },
    "responses": {
        "201": {
            "description": "It is in the log.",
            "headers": {"Location": {"description": "Where the task is shown.", "schema": {"type": "string"}}},
            "content": _as_json("Created"),
        }
    }
    | _refusals("400", "409", "413", "422", "503"),
}
