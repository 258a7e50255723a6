"""Reading snapshots strictly: a field that is missing, unknown, of another type or out of range is refused.

A snapshot is a dictionary of plain JSON types, so it can be cut or edited on its way through a disk. Nothing is
restored from one that is not whole.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from outvote.core.errors import MalformedSnapshot
from outvote.core.messages import PlayerId
from outvote.core.task import Task

VERSION = 1


def header(kind: str, task: Task) -> dict[str, Any]:
    """The fields with which every snapshot says what it is of."""
    return {
        "kind": kind,
        "version": VERSION,
        "protocol": task.protocol,
        "arms": len(task.arms),
        "instances": len(task.instances),
    }


def check_header(data: object, kind: str, task: Task, fields: Iterable[str]) -> Mapping[str, Any]:
    """The snapshot itself, if it is of this kind and task and has exactly these fields."""
    expected = header(kind, task)
    record = check_fields(data, f"a {kind}'s snapshot", {*expected, *fields})
    for field, value in expected.items():
        if record[field] != value:
            raise MalformedSnapshot(f"{field} of this task is {value!r}, got a snapshot with {record[field]!r}")
    return record


def check_fields(data: object, what: str, fields: set[str]) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise MalformedSnapshot(f"{what} must be an object with fields, got {type(data).__name__}")
    if set(data) != fields:
        missing, unknown = sorted(fields - set(data)), sorted(set(map(str, data)) - fields)
        raise MalformedSnapshot(f"{what} must have the fields {sorted(fields)}: missing {missing}, unknown {unknown}")
    return data


def whole(value: object, what: str, least: float, most: float = math.inf) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise MalformedSnapshot(f"{what} must be a whole number from {least} to {most}, got {value!r}")
    return value


def real(value: object, what: str, least: float, most: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most or value == math.inf:
        raise MalformedSnapshot(f"{what} must be a number from {least} to {most}, got {value!r}")
    return float(value)


def flag(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise MalformedSnapshot(f"{what} must be true or false, got {value!r}")
    return value


def items(value: object, what: str, length: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        size = "" if length is None else f" of {length} items"
        raise MalformedSnapshot(f"{what} must be a list{size}, got {value!r}")
    return value


def arm_set(value: object, what: str, arms: int, *, within: Collection[int] | None = None, least: int = 0) -> list[int]:
    """Different arms, in increasing order, at least so many, all of them among those of `within`."""
    found = [whole(arm, what, 0, arms - 1) for arm in items(value, what)]
    if found != sorted(set(found)) or len(found) < least:
        raise MalformedSnapshot(f"{what} must be {least} or more different arms in increasing order, got {value!r}")
    if within is not None and not set(found) <= set(within):
        raise MalformedSnapshot(f"{what} must be among {sorted(within)}, got {value!r}")
    return found


def player_id(value: object) -> PlayerId:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise MalformedSnapshot(f"a player must be a name or a number, got {value!r}")
    return value
