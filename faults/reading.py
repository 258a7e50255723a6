"""The log of a run, record by record, as those need it who judge a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from outvote.core.errors import OutvoteError
from outvote.core.task import Task
from outvote.log.log import Record
from outvote.log.log_state import LogState
from outvote.log.records import DownSubject, UpSubject, parse, read_task


class Finding(NamedTuple):
    """Something that must not be."""

    kind: str
    what: str


def where_of(record: Record) -> UpSubject | DownSubject | None:
    try:
        return parse(record.subject)
    except OutvoteError:
        return None


def up_of(record: Record) -> UpSubject | None:
    where = where_of(record)
    return where if isinstance(where, UpSubject) else None


def tasks_of(log: Iterable[Record]) -> dict[str, Task]:
    """All tasks of a log."""
    found: dict[str, Task] = {}
    for record in log:
        where = where_of(record)
        if isinstance(where, DownSubject) and where.kind == "task":
            found[where.task_id] = read_task(record.payload)
    return found


def fold(log: Iterable[Record]) -> LogState:
    """The log as a server has it."""
    found = LogState()
    for record in log:
        found.apply(record)
    return found
