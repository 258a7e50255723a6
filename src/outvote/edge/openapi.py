"""The OpenAPI 3.1 document of an edge's API. Bodies come from the very types that read and write them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from outvote import __version__
from outvote.core.task import NAME
from outvote.edge.bodies import LARGEST_BODY, Decision, Exposure, Health, Reward, TaskList, TaskView
from outvote.edge.ofrep import FLAGS, Evaluation, EvaluationFailed, Evaluations
from outvote.web import problems
from outvote.web.openapi_security import add_security
from outvote.web.problems import Problem


def openapi() -> dict[str, Any]:
    types = (
        Decision, Exposure, Reward, TaskView, TaskList, Health, Evaluation, Evaluations, EvaluationFailed, Problem,
    )  # fmt: skip
    _, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")

    def content(kind: str, media: str = "application/json") -> dict[str, Any]:
        return {media: {"schema": {"$ref": f"#/components/schemas/{kind}"}}}

    def refusals(*statuses: str) -> dict[str, Any]:
        media = problems.CONTENT_TYPE.decode()
        return {status: {"description": _REFUSALS[status], "content": content("Problem", media)} for status in statuses}

    def page(summary: str, body: dict[str, Any], *statuses: str) -> dict[str, Any]:
        answers = {"200": {"description": "As asked.", "content": body}} | refusals(*statuses, "500")
        return {"get": {"summary": summary, "responses": answers}}

    text = {"text/plain": {"schema": {"type": "string"}}}
    task = {
        "name": "task",
        "in": "path",
        "required": True,
        "description": "The name of a task.",
        "schema": {"type": "string", "pattern": f"^{NAME.pattern}$"},
    }
    decide = {
        "summary": "An arm for one event. No body is needed, and none is read.",
        "responses": {"200": {"description": "The decision.", "content": content("Decision")}}
        | refusals("404", "422", "500"),
    }
    reward = {
        "summary": "What one event earned. Each decision is rewarded once.",
        "requestBody": {"required": True, "content": content("Reward")},
        "responses": {"204": {"description": "Taken; also where it comes too late to count."}}
        | refusals("400", "404", "409", "413", "422", "500"),
    }
    exposed = {
        "summary": "An assignment of a bulk evaluation was shown: now it is a decision, with a ticket for its reward.",
        "requestBody": {"required": True, "content": content("Exposure")},
        "responses": {"200": {"description": "The decision.", "content": content("Decision")}}
        | refusals("400", "404", "413", "422", "500"),
    }

    def evaluated(summary: str, kind: str, *statuses: str) -> dict[str, Any]:
        """Refusals of OpenFeature's paths are its own."""
        said = {
            each: {"description": _FAILURES[each], "content": content("EvaluationFailed")}
            for each in (*statuses, "400", "413", "500")
        }
        context = {"type": "object", "properties": {"context": {"type": "object"}}}
        answers = {"200": {"description": "As asked.", "content": content(kind)}} | said
        return {
            "summary": summary,
            "requestBody": {"required": False, "content": {"application/json": {"schema": context}}},
            "responses": answers,
        }

    one = evaluated("OpenFeature: evaluate one flag, which is one decision of a task.", "Evaluation", "404")
    every = evaluated("OpenFeature: assign an arm of every task ahead; see `exposed`.", "Evaluations")
    every["responses"]["304"] = {"description": "The assignment of `If-None-Match` still holds."}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Outvote edge", "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": {
            "/v1/tasks": page("All tasks of this edge.", content("TaskList")),
            "/v1/tasks/{task}": {"parameters": [task]} | page("One task.", content("TaskView"), "404", "422"),
            "/v1/tasks/{task}/decide": {"parameters": [task], "post": decide},
            "/v1/tasks/{task}/reward": {"parameters": [task], "post": reward},
            "/v1/tasks/{task}/exposed": {"parameters": [task], "post": exposed},
            FLAGS: {"post": every},
            f"{FLAGS}/{{task}}": {"parameters": [task], "post": one},
            "/healthz": page("Whether this edge works, and whether it is connected.", content("Health")),
            "/metrics": page("Figures in Prometheus' text format, or as OpenMetrics where that is accepted.", text),
            "/openapi.json": page("This document.", {"application/json": {"schema": {"type": "object"}}}),
        },
        "components": {"schemas": components},
    }
    return add_security(document, tokens="An application's, or an admin's.", without=("/healthz",), failures="/ofrep/")


_REFUSALS: Final = {
    "400": "The body is not JSON.",
    "404": "The task, or the arm, is not known here.",
    "409": "No decision waits for this reward, or the ticket was not issued for this arm.",
    "413": f"The body is larger than {LARGEST_BODY} bytes.",
    "422": "A name, a field or a reward that cannot be.",
    "500": "The edge failed.",
}
_FAILURES: Final = _REFUSALS | {
    "400": "The body is not JSON, or its context is no object.",
    "404": "The flag is not known here.",
}
