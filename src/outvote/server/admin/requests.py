"""Requests of operators: a task and an expectation in JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from outvote.core.errors import InvalidInput, InvalidTask, MalformedMessage, OutvoteError
from outvote.core.task import Task
from outvote.log import expectation
from outvote.log.expectation import Expectation
from outvote.log.records import task_record
from outvote.presenters import task_fields
from outvote.web.problems import problem

LARGEST_BODY: Final = 64 * 1024
"""Largest request and largest task record, in bytes; the engine stores no larger record."""
LONGEST_DETAIL: Final = 2_000
"""Longest problem detail, in characters: the differences between two tasks may be long."""

NewTask: Final = msgspec.defstruct(
    "NewTask",
    [
        (
            field.name,
            Annotated[Any, msgspec.Meta(extra_json_schema=field.schema)],
            msgspec.NODEFAULT if field.is_needed else field.default,
        )
        for field in task_fields.FIELDS
    ],
    namespace={"__doc__": "A task. Only variants and sites have to be given."},
    forbid_unknown_fields=True,
    kw_only=True,
)
"""For the document of the API: `task_fields` has the fields, and `Task` validates their values."""


class Refused(OutvoteError):
    """The request is refused; `kind` is a code for programs. The detail is a text or the error that is the reason."""

    def __init__(self, status: int, kind: str, detail: object) -> None:
        super().__init__(str(detail))
        self.problem = problem(kind, status, detail, LONGEST_DETAIL)


def read_task(body: bytes) -> Task:
    """Read a task from a request."""
    try:
        asked: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(400, "not-json", f"a task must be a JSON object: {error}") from None
    if not isinstance(asked, Mapping):
        raise Refused(400, "not-json", f"a task must be a JSON object, got a {type(asked).__name__}")
    return make_task(asked)


def make_task(asked: Mapping[str, object]) -> Task:
    """Make the task that an operator describes; what cannot be is refused."""
    try:
        task = task_fields.task_of(asked)
        size = len(task_record(task))
        if size > LARGEST_BODY:
            raise InvalidTask(f"a task's record may have {LARGEST_BODY:,} bytes, this has {size:,}: use shorter names")
    except InvalidTask as error:
        raise Refused(422, "invalid-task", error) from None
    return task


def read_expectation(body: bytes) -> Expectation:
    """Read an expectation from a request."""
    try:
        return expectation.read_expectation(body)
    except MalformedMessage as error:
        raise Refused(400, "not-json", error) from None
    except InvalidInput as error:
        raise Refused(422, "invalid-expectation", error) from None
