"""What people fill in: from the fields of a form to a task, an expectation, and a question to the planner. Pure.

A field that is left empty is not there. What a field means is checked where a program's request is checked, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from outvote.core.errors import InvalidInput, InvalidTask
from outvote.core.task import DEFAULT_DELTA, DEFAULT_PROTOCOL, Task
from outvote.log.expectation import Expectation
from outvote.presenters import task_fields
from outvote.quantities import number
from outvote.server.admin.requests import Refused, make_task, read_expectation

DEFAULTS: Final = {
    "protocol": DEFAULT_PROTOCOL,
    "delta": str(DEFAULT_DELTA),
    "variants": "classic\nbold\ngreen",
    "sites": "8",
}
EXPECTED: Final = ("traffic", "baseline", "difference")
PLANNED: Final = ("delta", "epsilon", "active_sites", "floor", "privacy_budget", "tolerate", *EXPECTED)
"""Numbers that the planner is asked with."""


def fields(body: bytes) -> dict[str, str]:
    """The fields of a form as a browser sends them, without those that are empty."""
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=False, max_num_fields=50)
    except ValueError as error:
        raise Refused(400, "not-a-form", f"a form must be application/x-www-form-urlencoded: {error}") from None
    return {key: value.strip() for key, value in pairs if value.strip()}


def task_of(form: Mapping[str, str]) -> Task:
    """The task that a form describes; what cannot be is refused."""
    try:
        asked = {
            field.name: task_fields.read(field, form[field.name]) for field in task_fields.FIELDS if field.name in form
        }
    except InvalidTask as error:
        raise Refused(422, "invalid-task", error) from None
    return make_task(asked)


def expectation_of(form: Mapping[str, str]) -> Expectation:
    """What is expected; of nothing, nothing."""
    return read_expectation(json.dumps(_numbers(form, EXPECTED)).encode())


def question_of(form: Mapping[str, str]) -> dict[str, Any]:
    """What the planner is asked for this form."""
    asked = _numbers(form, PLANNED)
    if not asked.get("epsilon"):
        asked.pop("epsilon", None)  # it looks for the very best arm
    for key in ("variants", "sites"):
        if key in form:
            value = task_fields.count_or_names(form[key])
            asked[key] = value if isinstance(value, int) else len(value)
    return asked


def _numbers(form: Mapping[str, str], names: tuple[str, ...]) -> dict[str, float]:
    found = {}
    for name in names:
        if name in form:
            try:
                found[name] = number(form[name])
            except InvalidInput as error:
                raise Refused(422, "invalid-task", error.named(name)) from None
    return found
