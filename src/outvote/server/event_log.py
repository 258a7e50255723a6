"""What a server tells in its log: what became of tasks, who was refused, which edges came and went.

It compares what the fold says with what it said before, so the fold itself knows nothing of logs. Whatever is read
before the server has caught up is one line. No flood of records or edges can fill a disk: what comes often is counted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, NamedTuple

from outvote.core.tally_server import TallyServer
from outvote.log.log_state import LogState, TaskState
from outvote.log.records import DOWN, UpSubject, parse
from outvote.observability.logs import event
from outvote.observability.once_per_minute import OncePerMinute
from outvote.server.liveness import EdgeState

MOST_NAMES: Final = 20
"""Edges that are named in one line."""
OTHERS: Final = "(others)"
"""Edges that have no lines of their own about refused records, because there are too many: they count together."""

_log = logging.getLogger(__name__)


class _Seen(NamedTuple):
    eliminations: int
    stopped: bool
    held: bool
    killed: bool
    refused: int
    discounts: int


class EventLog:
    """One for each server."""

    def __init__(self) -> None:
        self._tasks: dict[str, _Seen] = {}
        self._begun = False
        self._refused = OncePerMinute[tuple[str, str]]()
        """By edge and task."""
        self._known: set[str] = set()
        """Edges that are in the log, or were heard of."""
        self._silent: set[str] = set()

    def begin(self, fold: LogState) -> None:
        """All that was in the log has been read: from now on, things happen."""
        self._begun = True
        self._tasks = {task_id: _seen(task) for task_id, task in fold.tasks.items()}
        self._known = set(fold.edges)
        event(_log, logging.INFO, "log_read", records=fold.read, tasks=len(fold.tasks), edges=len(fold.edges))
        for task_id, why in fold.unreadable.items():
            _tell_unreadable(task_id, why)

    def note_unreadable(self, fold: LogState, subject: str) -> None:
        """A record of no task was read: if it is a task that this version cannot read, say so."""
        task_id = subject.removeprefix(f"{DOWN}.").removesuffix(".task")
        if self._begun and subject.endswith(".task") and task_id in fold.unreadable:
            _tell_unreadable(task_id, fold.unreadable[task_id])

    def note(self, fold: LogState, task: TaskState, subject: str, now: float) -> None:
        """A record of this task was read."""
        if not self._begun:
            return
        told = {"task": task.task.name, "id": task.task_id}
        if task.task_id not in fold.tasks:
            self._tasks.pop(task.task_id, None)
            event(_log, logging.INFO, "task_deleted", **told)
            return
        before, seen = self._tasks.get(task.task_id), _seen(task)
        if seen == before:
            return
        self._tasks[task.task_id] = seen
        if before is None:
            arms = list(task.task.arms)
            event(_log, logging.INFO, "task_created", **told, protocol=task.task.protocol, arms=arms)
            return
        for number in range(before.eliminations, seen.eliminations):
            arms = [task.task.arms[arm] for arm in task.eliminations[number].arms]
            event(
                _log, logging.INFO, "arms_eliminated", **told, arms=arms, number=number, remaining=len(task.announced)
            )
            if task.winner is not None:
                event(_log, logging.INFO, "winner_found", **told, winner=task.task.arms[task.winner])
        if seen.stopped != before.stopped:
            event(_log, logging.INFO, "task_stopped", **told)
        if seen.held != before.held:
            event(_log, *((logging.WARNING, "task_held") if seen.held else (logging.INFO, "task_released")), **told)
        if seen.killed != before.killed:
            switched = (logging.WARNING, "task_killed") if seen.killed else (logging.WARNING, "task_revived")
            event(_log, *switched, **told)
        for discount in task.discounted[before.discounts :]:
            event(_log, logging.WARNING, "edge_discounted", **told, edge=discount.edge, messages=discount.messages)
        if seen.refused > before.refused:
            where = parse(subject)
            assert isinstance(where, UpSubject)
            self._refuse(where.edge, task.task_id, now)

    def look(self, edges: Iterable[tuple[str, EdgeState]], now: float) -> None:
        """At every turn of the clock: which edges came, went and came back; and who was refused since."""
        new, went, back = [], [], []
        for edge, state in edges:
            if state == "alive" and edge not in self._known:
                new.append(edge)
            if state == "silent" and edge not in self._silent:
                went.append(edge)
            if state == "alive" and edge in self._silent:
                back.append(edge)
        self._known.update(new)
        self._silent.update(went)
        self._silent.difference_update(back)
        _tell_edges(logging.INFO, "edges_first_heard", new)
        _tell_edges(logging.WARNING, "edges_silent", went)
        _tell_edges(logging.INFO, "edges_back", back)
        for (edge, task_id), count in self._refused.due(now):
            _tell_refused(edge, task_id, count)

    def _refuse(self, edge: str, task_id: str, now: float) -> None:
        if not self._refused.has_room_for((edge, task_id)):
            edge = OTHERS
        if count := self._refused.note((edge, task_id), now):
            _tell_refused(edge, task_id, count)


def _seen(task: TaskState) -> _Seen:
    held = isinstance(task.server, TallyServer) and task.server.held
    return _Seen(len(task.eliminations), task.stopped, held, task.killed, task.refused, len(task.discounted))


def _tell_refused(edge: str, task_id: str, count: int) -> None:
    event(_log, logging.WARNING, "records_refused", edge=edge, id=task_id, count=count)


def _tell_unreadable(task_id: str, why: str) -> None:
    event(_log, logging.ERROR, "task_not_readable", id=task_id, error=why)


def _tell_edges(level: int, name: str, edges: list[str]) -> None:
    if edges:
        event(_log, level, name, count=len(edges), edges=sorted(edges)[:MOST_NAMES])
