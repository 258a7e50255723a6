"""The OpenAPI document of an edge's API."""

from __future__ import annotations

from typing import Any, Final

from outvote.core.task import NAME
from outvote.edge.bodies import LARGEST_BODY, Decision, Health, Reward, TaskList, TaskView
from outvote.edge.ofrep import FLAGS, Evaluation, EvaluationFailed, Evaluations
from outvote.web.openapi import DOCUMENT, TEXT, Operation, document
from outvote.web.problems import Problem

_REFUSALS: Final = {
    "400": "The body is not JSON.",
    "404": "The task, or the variant, is not known here.",
    "409": "This edge knows no decision with this ticket: another edge or another task decided, or a crash lost it.",
    "413": f"The body is larger than {LARGEST_BODY} bytes.",
    "422": "A name, a field, a ticket or a reward is invalid.",
    "500": "The edge failed.",
}
_FAILURES: Final = _REFUSALS | {
    "400": "The body is not JSON, or its context is not an object.",
    "404": "The flag is not known here.",
}
_TASK: Final = {"description": "The name of a task.", "schema": {"type": "string", "pattern": f"^{NAME.pattern}$"}}
_CONTEXT: Final = {
    "application/json": {"schema": {"type": "object", "properties": {"context": {"type": "object"}}}},
}
OPERATIONS: Final[dict[str, Operation]] = {
    "GET /v1/tasks": Operation("All tasks of this edge.", TaskList),
    "GET /v1/tasks/{task}": Operation("One task.", TaskView, refusals=("422",)),
    "POST /v1/tasks/{task}/decide": Operation(
        "Choose a variant for one event. No body is needed, and none is read.",
        Decision,
        says="The decision.",
        refusals=("422",),
    ),
    "POST /v1/tasks/{task}/reward": Operation(
        "Report the reward of one decision. Sending it again is safe: the largest within the reward window counts.",
        body=Reward,
        status="204",
        says="Accepted. A reward that is late, or of a decision that is not counted, is ignored.",
        refusals=("409", "422"),
    ),
    f"POST {FLAGS}": Operation(
        "OpenFeature: evaluate all flags at once. These decisions are not counted.",
        Evaluations,
        body=_CONTEXT,
        refuses_with=EvaluationFailed,
    ),
    f"POST {FLAGS}/{{task}}": Operation(
        "OpenFeature: evaluate one flag, which is one decision of a task.",
        Evaluation,
        body=_CONTEXT,
        refuses_with=EvaluationFailed,
    ),
    "GET /healthz": Operation("Whether this edge works, and whether it is connected.", Health),
    "GET /metrics": Operation("Metrics in Prometheus' text format, or as OpenMetrics if the request accepts it.", TEXT),
    "GET /openapi.json": Operation("This document.", DOCUMENT),
}


def openapi() -> dict[str, Any]:
    description = document(
        "Outvote edge",
        OPERATIONS,
        parameters={"task": _TASK},
        refusals={Problem: _REFUSALS, EvaluationFailed: _FAILURES},
        tokens="An application's, or an admin's.",
        without=("/healthz",),
    )
    description["paths"][FLAGS]["post"]["responses"]["304"] = {
        "description": "The assignment of `If-None-Match` still holds."
    }
    return description
