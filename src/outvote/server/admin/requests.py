"""Requests of operators: a task in JSON. `NewTask` defines the fields; `Task` validates their values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

from outvote.core.errors import InvalidTask, MalformedMessage, OutvoteError
from outvote.core.protocols import REGISTRY
from outvote.core.task import NAME, Task
from outvote.log import expectation
from outvote.log.expectation import Expectation
from outvote.log.records import task_record
from outvote.web.problems import problem

LARGEST_BODY: Final = 64 * 1024
"""Largest request and largest task record, in bytes; the engine stores no larger record."""
MOST_ARMS: Final = 10_000
"""Largest number of arms or instances; more would not fit in a record."""
LONGEST_DETAIL: Final = 2_000
"""Longest problem detail, in characters: the differences between two tasks may be long."""

Count = Annotated[int, msgspec.Meta(ge=1)]
Probability = Annotated[float, msgspec.Meta(extra_json_schema={"exclusiveMinimum": 0, "exclusiveMaximum": 1})]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Name = Annotated[str, msgspec.Meta(pattern=f"^{NAME.pattern}$")]


class NewTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A task to be created. Arms and players are a number, or a list of names."""

    arms: Annotated[int, msgspec.Meta(ge=2, le=MOST_ARMS)] | Annotated[list[str], msgspec.Meta(min_length=2)]
    players: Count | Annotated[list[Name], msgspec.Meta(min_length=1)]
    epsilon: Annotated[float, msgspec.Meta(extra_json_schema={"minimum": 0, "exclusiveMaximum": 1})]
    delta: Probability
    name: Name = "task"
    protocol: Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(REGISTRY)})] = "dme"
    active_players: Positive | None = None
    instances: Annotated[int, msgspec.Meta(ge=1, le=MOST_ARMS)] | list[float] | None = None
    quorum: Literal["paper", "certified"] | None = None
    code: str | None = None
    code_weights: tuple[float, ...] = ()
    floor: Count | None = None
    privacy_budget: Positive | None = None
    reward_window: Positive | None = None
    fallback: str | None = None
    tolerate: Annotated[int, msgspec.Meta(ge=0)] = 0


_FIELDS: Final = msgspec.structs.fields(NewTask)
ALLOWED: Final = tuple(field.name for field in _FIELDS)
REQUIRED: Final = tuple(field.name for field in _FIELDS if field.required)


class Refused(OutvoteError):
    """The request is refused; `kind` is a code for programs."""

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.problem = problem(kind, status, detail, LONGEST_DETAIL)


def read_task(body: bytes) -> Task:
    """Read a task from a request: the fields of `NewTask`, or a whole record as `GET` returns it."""
    try:
        asked: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(400, "not-json", f"a task must be a JSON object: {error}") from None
    if not isinstance(asked, Mapping):
        raise Refused(400, "not-json", f"a task must be a JSON object, got a {type(asked).__name__}")
    try:
        for name in ("arms", "instances"):
            if isinstance(asked.get(name), int) and asked[name] > MOST_ARMS:
                raise InvalidTask(f"{name} must be at most {MOST_ARMS:,} in a network")
        task = Task.from_json(asked) if "rules" in asked else Task(**_arguments(asked))
        size = len(task_record(task))
        if size > LARGEST_BODY:
            raise InvalidTask(f"a task's record may have {LARGEST_BODY:,} bytes, this has {size:,}: use shorter names")
    except InvalidTask as error:
        raise Refused(422, "invalid-task", str(error)) from None
    return task


def read_expectation(body: bytes) -> Expectation:
    """Read an expectation from a request."""
    try:
        return expectation.read_expectation(body)
    except MalformedMessage as error:
        raise Refused(400, "not-json", str(error)) from None
    except InvalidTask as error:
        raise Refused(422, "invalid-expectation", str(error)) from None


def _arguments(asked: Mapping[str, Any]) -> dict[str, Any]:
    unknown = [name for name in asked if name not in ALLOWED]
    if unknown:
        raise InvalidTask(f"unknown field {unknown[0]!r}: a task has {', '.join(ALLOWED)}")
    missing = [name for name in REQUIRED if name not in asked]
    if missing:
        raise InvalidTask(f"a task needs {', '.join(REQUIRED)}; missing: {', '.join(missing)}")
    return dict(asked)
