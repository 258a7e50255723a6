"""The OpenAPI document of an edge's API."""

from __future__ import annotations

from typing import Any, Final

from outvote.core.task import NAME
from outvote.edge.bodies import LARGEST_BODY, Decision, Exposure, Health, Reward, TaskList, TaskView
from outvote.edge.ofrep import FLAGS, Evaluation, EvaluationFailed, Evaluations
from outvote.web.openapi import DOCUMENT, TEXT, Operation, document
from outvote.web.problems import Problem

_REFUSALS: Final = {
    "400": "The body is not JSON.",
    "404": "The task, or the variant, is not known here.",
    "409": "No decision waits for this reward, or the ticket was not issued for this variant.",
    "413": f"The body is larger than {LARGEST_BODY} bytes.",
    "422": "A name, a field or a reward is invalid.",
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
        "Report the reward of one event. Each decision is rewarded once.",
        body=Reward,
        status="204",
        says="Accepted, even if it is too late to count.",
        refusals=("409", "422"),
    ),
    "POST /v1/tasks/{task}/exposed": Operation(
        "Declare an assignment of a bulk evaluation shown: it becomes a decision, with a ticket for its reward.",
        Decision,
        body=Exposure,
        says="The decision.",
        refusals=("422",),
    ),
    f"POST {FLAGS}": Operation(
        "OpenFeature: assign a variant of every task ahead; see `exposed`.",
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
