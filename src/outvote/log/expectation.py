"""What operators expect of a task: its traffic and its rewards. Shown to people; no decision uses it. Pure.

It is a log record separate from the task, so operators can add or replace it later.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

import msgspec

from outvote.core.errors import InvalidTask, MalformedMessage

MOST_TRAFFIC: Final = 1e15
EXAMPLE: Final = '{"traffic": 50000, "baseline": 0.1, "difference": 0.02}'


class Expectation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Decisions a day in the whole fleet; the mean reward of all variants but the best, and the lead of the best."""

    traffic: Annotated[float, msgspec.Meta(gt=0, le=MOST_TRAFFIC)] | None = None
    baseline: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    difference: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None

    def __post_init__(self) -> None:
        _check("traffic", self.traffic, "above 0 and at most 10^15", lambda value: 0 < value <= MOST_TRAFFIC)
        _check("baseline", self.baseline, "from 0 to 1", lambda value: 0 <= value <= 1)
        _check("difference", self.difference, "above 0 and below 1", lambda value: 0 < value < 1)
        if self.baseline is not None and self.difference is not None and self.baseline + self.difference > 1:
            raise InvalidTask(
                f"must be at most 1 together with baseline, got {self.difference:g} and {self.baseline:g}",
                field="difference",
                code="conflict",
            )

    def record(self) -> bytes:
        return msgspec.json.encode(self)


def _check(field: str, value: Any, allowed: str, is_allowed: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidTask(f"must be a number {allowed}, got {repr(value)[:80]}", field=field, code="type")
    if not is_allowed(value):
        raise InvalidTask(f"must be a number {allowed}, got {repr(value)[:80]}", field=field, code="range")


def read_expectation(payload: bytes) -> Expectation:
    try:
        record = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise MalformedMessage(f"an expectation must be JSON, like {EXAMPLE}: {error}") from None
    if not isinstance(record, dict):
        raise InvalidTask(f"an expectation must be an object, like {EXAMPLE}, got a {type(record).__name__}")
    for name in record:
        if name not in Expectation.__struct_fields__:
            raise InvalidTask(
                f"is no field of an expectation, which is like {EXAMPLE}", field=str(name)[:80], code="unknown"
            )
    return Expectation(**record)
