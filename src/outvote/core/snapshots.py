"""Snapshots: a participant's state in plain JSON types, sealed so that nothing is restored from one that is not whole.

A snapshot travels through a disk, where it can be cut, edited or mixed up with another's. Its seal is a checksum over
everything in it, so a snapshot that opens is one that this code wrote, for this task, and holds what it held.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outvote.core.errors import MalformedSnapshot
from outvote.core.task import Task

VERSION = 3
"""The number of this format. Others are refused."""


def seal(kind: str, task: Task, state: dict[str, Any]) -> dict[str, Any]:
    """A state with what says whose it is, and the checksum of it all."""
    record = {"kind": kind, "version": VERSION, "task": task.fingerprint(), **state}
    return {**record, "checksum": _checksum(record)}


def unseal(data: object, kind: str, task: Task) -> Mapping[str, Any]:
    """The record, if it is whole, of this kind, and of this task."""
    if not isinstance(data, Mapping) or "checksum" not in data:
        raise MalformedSnapshot(f"a snapshot must be an object with a checksum, got {_shown(data)}")
    record = {key: value for key, value in data.items() if key != "checksum"}
    expected = _checksum(record)
    if data["checksum"] != expected:
        raise MalformedSnapshot(
            f"the snapshot was cut or altered: its content has the checksum {expected}, it says {data['checksum']!r}"
        )
    if record.get("version") != VERSION:
        raise MalformedSnapshot(
            f"the snapshot has version {record.get('version')!r}, version {VERSION} is needed: "
            "use the version of Outvote that took it, or start the participant afresh"
        )
    for field, wanted in (("kind", kind), ("task", task.fingerprint())):
        if record.get(field) != wanted:
            raise MalformedSnapshot(f"a snapshot of {field} {wanted!r} is needed, got {record.get(field)!r}")
    return record


def _checksum(record: Mapping[str, Any]) -> str:
    import hashlib  # slow to import, and needed by those alone who take snapshots
    import json

    try:
        text = json.dumps(record, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise MalformedSnapshot(f"a snapshot must hold plain JSON types: {error}") from None
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _shown(data: object) -> str:
    return f"an object with {sorted(map(str, data))}"[:200] if isinstance(data, Mapping) else repr(data)[:80]
