"""A planted bug: a server that counts every message of one edge twice."""

from __future__ import annotations

from outvote.log.log_state import TaskState
from outvote.log.records import UpSubject

_receive = TaskState.receive


def receive(self: TaskState, subject: UpSubject, payload: bytes, at: int) -> bool:
    counted = _receive(self, subject, payload, at)
    if subject.edge == "e1":
        _receive(self, subject._replace(incarnation="again"), payload, at)
    return counted


TaskState.receive = receive  # type: ignore[method-assign]
