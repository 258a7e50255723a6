"""The OpenAPI document of the server's API."""

from __future__ import annotations

from typing import Any, Final

from outvote.core.task import Task
from outvote.log.expectation import Expectation
from outvote.server.admin.fleet import EdgeList
from outvote.server.admin.requests import LARGEST_BODY, NewTask
from outvote.server.admin.views import Discounted, Health, TaskDescription, TaskList, TaskSummary
from outvote.web.openapi import DOCUMENT, TEXT, Operation, content, document
from outvote.web.problems import Problem

NO_BODY: Final = "No body is needed, and none is read."
KILL_SWITCH: Final = f"The kill switch: nothing is learnt while it is on. {NO_BODY}"
OPERATIONS: Final[dict[str, Operation]] = {
    "GET /v1/tasks": Operation("All tasks.", TaskList),
    "POST /v1/tasks": Operation(
        "A new task: edges begin at once. The body has the fields of a new task, or is a whole record as GET shows "
        "it under `task`. It is read as JSON whatever its Content-Type says, and also without one.",
        TaskSummary,
        body=(NewTask, Task),
        status="201",
    ),
    "GET /v1/tasks/{task}": Operation("One task: its arms, messages, bits and edges.", TaskDescription),
    "DELETE /v1/tasks/{task}": Operation("Edges forget the task; its name is free again.", status="204"),
    "POST /v1/tasks/{task}/stop": Operation(
        "Nothing more is decided: edges serve the winner or the fallback, and send nothing. What is stopped may be "
        f"stopped again. {NO_BODY}",
        TaskSummary,
    ),
    "POST /v1/tasks/{task}/kill": Operation(f"Edges serve the fallback at once. {KILL_SWITCH}", TaskSummary),
    "POST /v1/tasks/{task}/revive": Operation(f"The task goes on. {KILL_SWITCH}", TaskSummary),
    "PUT /v1/tasks/{task}/expectation": Operation(
        "What operators expect of a task, from now on: pages use it to say how long it will take.",
        Expectation,
        body=Expectation,
    ),
    "GET /v1/edges": Operation("All edges, and which are alive.", EdgeList),
    "POST /v1/edges/{edge}/discount": Operation(
        "What this edge has sent so far counts no more, in all tasks that run: for one whose credential was in "
        "wrong hands. What was eliminated stays so, and what the edge sends from now on counts. It may be said "
        f"again, and then tells of the tasks in which there was something new. {NO_BODY}",
        Discounted,
    ),
    "GET /v1/events": Operation(
        "What changes, as server-sent events for as long as the connection lasts. The data of each is a JSON list: "
        "the ids of tasks that have changed, and `fleet` if edges have. An empty list is sent at once, and now and "
        "then while nothing changes.",
        {"text/event-stream": {"schema": {"type": "string"}}},
    ),
    "GET /healthz": Operation(
        "Whether this server can do its work: 503 if the engine is away, its log is not read yet, or it takes no more.",
        Health,
    ),
    "GET /metrics": Operation("Figures in Prometheus' text format.", TEXT),
    "GET /openapi.json": Operation("This document.", DOCUMENT),
}
_NAME: Final = {"schema": {"type": "string", "minLength": 1}}
_PARAMETERS: Final = {
    "task": {"description": "The id of a task, or its name."} | _NAME,
    "edge": {"description": "The name of an edge."} | _NAME,
}
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
    found = document(
        "Outvote server",
        {where: each._replace(refusals=_refusals(where, each)) for where, each in OPERATIONS.items()},
        parameters=_PARAMETERS,
        refusals={Problem: _REFUSALS},
        tokens="An admin's; a viewer's for GET and HEAD.",
        without=("/healthz", "/openapi.json"),
    )
    found["info"]["description"] = (
        "For operators. A method that a path does not have is answered with 405, and `Allow` names those that it has. "
        "HEAD is answered wherever GET is."
    )
    paths = found["paths"]
    paths["/healthz"]["get"]["responses"]["503"] = {"description": "It cannot.", **content(Health)}
    paths["/v1/tasks"]["post"]["responses"]["201"]["headers"] = {
        "Location": {"description": "Where the task is shown.", "schema": {"type": "string"}}
    }
    return found


def _refusals(where: str, operation: Operation) -> tuple[str, ...]:
    changes = ("409", "503") if not where.startswith("GET") else ()
    return (*changes, "422") if operation.body or "{edge}" in where else changes
