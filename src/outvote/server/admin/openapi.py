"""The OpenAPI document of the server's API."""

from __future__ import annotations

from typing import Any, Final, get_args

from outvote.log.expectation import Expectation
from outvote.server.admin.fleet import SiteList
from outvote.server.admin.requests import LARGEST_BODY, NewTask
from outvote.server.admin.views import Discounted, Health, Status, TaskDescription, TaskList, TaskSummary
from outvote.web.openapi import DOCUMENT, TEXT, Operation, content, document
from outvote.web.problems import Problem

NO_BODY: Final = "A body is ignored."
KILL_SWITCH: Final = f"This is the kill switch: sites learn nothing while it is on. {NO_BODY}"
OPERATIONS: Final[dict[str, Operation]] = {
    "GET /v1/tasks": Operation("All tasks, or those with a name or a status.", TaskList),
    "POST /v1/tasks": Operation(
        "Create a task; sites begin at once. The body is a new task, as GET returns it under `task`. It is parsed as "
        "JSON; the Content-Type is ignored.",
        TaskSummary,
        body=NewTask,
        status="201",
    ),
    "GET /v1/tasks/{task}": Operation("One task: its variants, messages, bits and sites.", TaskDescription),
    "DELETE /v1/tasks/{task}": Operation("Delete a task: sites forget it, and its name is free again.", status="204"),
    "POST /v1/tasks/{task}/stop": Operation(
        "Stop a task: no more variants are eliminated; sites serve the winner or the fallback, and send nothing. "
        f"Stopping again does no harm. {NO_BODY}",
        TaskSummary,
    ),
    "POST /v1/tasks/{task}/kill": Operation(f"Sites serve the fallback at once. {KILL_SWITCH}", TaskSummary),
    "POST /v1/tasks/{task}/revive": Operation(f"The task goes on. {KILL_SWITCH}", TaskSummary),
    "PUT /v1/tasks/{task}/expectation": Operation(
        "State what operators expect of a task: pages use it to estimate how long it will take.",
        Expectation,
        body=Expectation,
    ),
    "GET /v1/sites": Operation("All sites, and which are alive.", SiteList),
    "POST /v1/sites/{site}/discount": Operation(
        "Discount a site whose credential was stolen: its messages so far no longer count in running tasks. "
        "Eliminations stay, and later messages of the site count. A repetition discounts the messages since the last "
        f"one, and returns the tasks that had any. {NO_BODY}",
        Discounted,
    ),
    "GET /v1/events": Operation(
        "Stream changes as server-sent events. The data of each is a JSON list: the ids of changed tasks, and `fleet` "
        "if sites have changed. An empty list is sent at once, and regularly while nothing changes.",
        {"text/event-stream": {"schema": {"type": "string"}}},
    ),
    "GET /healthz": Operation(
        "Health of this server: 503 if the engine is disconnected, its log is not fully read, or it stores no records.",
        Health,
    ),
    "GET /metrics": Operation("Metrics in the Prometheus text format.", TEXT),
    "GET /openapi.json": Operation("This document.", DOCUMENT),
}
_NAME: Final = {"schema": {"type": "string", "minLength": 1}}
_PARAMETERS: Final = {
    "task": {"description": "The id of a task, or its name."} | _NAME,
    "site": {"description": "The name of a site."} | _NAME,
}
_REFUSALS: Final = {
    "400": "The body is not a JSON object.",
    "404": "There is no such task or site.",
    "409": "The name is taken, or another change came first.",
    "413": f"The body is larger than {LARGEST_BODY} bytes.",
    "422": "The task, the expectation, the name or the query is invalid: `field` names what is.",
    "500": "The server failed.",
    "503": "The engine did not confirm the change in time: it may or may not be stored.",
}


def openapi() -> dict[str, Any]:
    openapi_document = document(
        "Outvote server",
        {where: operation._replace(refusals=_refusals(where, operation)) for where, operation in OPERATIONS.items()},
        parameters=_PARAMETERS,
        refusals={Problem: _REFUSALS},
        tokens="An admin token; a viewer token suffices for GET and HEAD.",
        without=("/healthz", "/openapi.json"),
    )
    openapi_document["info"]["description"] = (
        "For operators. An unsupported method is answered with 405, and `Allow` lists the supported ones. HEAD is "
        "supported wherever GET is."
    )
    paths = openapi_document["paths"]
    paths["/v1/tasks"]["get"]["parameters"] = [
        {"name": "name", "in": "query", "description": "Only the task with this name.", "schema": {"type": "string"}},
        {
            "name": "status",
            "in": "query",
            "description": "Only tasks with this status.",
            "schema": {"type": "string", "enum": list(get_args(Status))},
        },
    ]
    paths["/v1/tasks"]["get"]["responses"]["422"] = {"description": _REFUSALS["422"], **content(Problem)}
    described = openapi_document["components"]["schemas"]["TaskDescription"]
    described["properties"]["task"] = {"$ref": "#/components/schemas/NewTask"}
    del openapi_document["components"]["schemas"]["Task"]
    paths["/healthz"]["get"]["responses"]["503"] = {"description": "The server is unavailable.", **content(Health)}
    paths["/v1/tasks"]["post"]["responses"]["201"]["headers"] = {
        "Location": {"description": "Path of the task.", "schema": {"type": "string"}}
    }
    return openapi_document


def _refusals(where: str, operation: Operation) -> tuple[str, ...]:
    changes = ("409", "503") if not where.startswith("GET") else ()
    return (*changes, "422") if operation.body or "{site}" in where else changes
