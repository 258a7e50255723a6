"""The server's own log lines: changes of tasks, refused records, and edges that appear or fall silent.

The records read before the server has caught up make one line. Frequent events are counted and logged once a minute, so
that no flood of records or edges can fill a disk.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from outvote.log.events import (
    ArmsEliminated,
    EdgeDiscounted,
    Event,
    HoldChanged,
    KillSwitchUsed,
    MessageStored,
    TaskCreated,
    TaskDeleted,
    TaskStopped,
    TaskUnreadable,
)
from outvote.log.log_state import LogState
from outvote.observability.logs import event
from outvote.observability.once_per_minute import OncePerMinute
from outvote.server.liveness import EdgeState

MOST_NAMES: Final = 20
"""Largest number of edges named in one line."""
OTHERS: Final = "(others)"
"""Stands for all further edges with refused records, once too many have lines of their own."""

_log = logging.getLogger(__name__)


class EventLog:
    """Writes the log lines of one server."""

    def __init__(self) -> None:
        self._begun = False
        self._refused = OncePerMinute[tuple[str, str]]()
        """Refused records by edge and task."""
        self._known: set[str] = set()
        """Edges that are in the shared log or were heard."""
        self._silent: set[str] = set()

    def begin(self, state: LogState) -> None:
        """Start logging: the server has caught up with the shared log."""
        self._begun = True
        self._known = set(state.edges)
        event(_log, logging.INFO, "log_read", records=state.read, tasks=len(state.tasks), edges=len(state.edges))
        for task_id, reason in state.unreadable.items():
            event(_log, logging.ERROR, "task_not_readable", id=task_id, error=reason)

    def note(self, change: Event, state: LogState, now: float) -> None:
        """Log a change by a record; `state` is the state after it."""
        if not self._begun:
            return
        task_id = change.task_id
        task = state.tasks.get(task_id)
        about = {
            "task": change.name if isinstance(change, TaskDeleted) else task_id if task is None else task.task.name,
            "id": task_id,
        }
        match change:
            case MessageStored(edge=edge, counted=False):
                self._refuse(edge, task_id, now)
            case TaskCreated() if task is not None:
                arms = list(task.task.arms)
                event(_log, logging.INFO, "task_created", **about, protocol=task.task.protocol, arms=arms)
            case TaskUnreadable(reason=reason):
                event(_log, logging.ERROR, "task_not_readable", id=task_id, error=reason)
            case TaskDeleted():
                event(_log, logging.INFO, "task_deleted", **about)
            case TaskStopped():
                event(_log, logging.INFO, "task_stopped", **about)
            case ArmsEliminated(number=number, elimination=elimination) if task is not None:
                arms = [task.task.arms[arm] for arm in elimination.arms]
                left = len(task.announced)
                event(_log, logging.INFO, "arms_eliminated", **about, arms=arms, number=number, remaining=left)
                if task.winner is not None:
                    event(_log, logging.INFO, "winner_found", **about, winner=task.task.arms[task.winner])
            case HoldChanged(held=held):
                event(_log, *((logging.WARNING, "task_held") if held else (logging.INFO, "task_released")), **about)
            case KillSwitchUsed(killed=killed, changed=True):
                switched = (logging.WARNING, "task_killed") if killed else (logging.WARNING, "task_revived")
                event(_log, *switched, **about)
            case EdgeDiscounted(edge=edge, messages=messages):
                event(_log, logging.WARNING, "edge_discounted", **about, edge=edge, messages=messages)
            case _:
                pass

    def look(self, edges: Iterable[tuple[str, EdgeState]], now: float) -> None:
        """Log edges that are new, fell silent or returned, and refused records. Called at regular intervals."""
        new, silent, back = [], [], []
        for edge, state in edges:
            if state == "alive" and edge not in self._known:
                new.append(edge)
            if state == "silent" and edge not in self._silent:
                silent.append(edge)
            if state == "alive" and edge in self._silent:
                back.append(edge)
        self._known.update(new)
        self._silent.update(silent)
        self._silent.difference_update(back)
        _log_edges(logging.INFO, "edges_first_heard", new)
        _log_edges(logging.WARNING, "edges_silent", silent)
        _log_edges(logging.INFO, "edges_back", back)
        for (edge, task_id), count in self._refused.due(now):
            _log_refused(edge, task_id, count)

    def _refuse(self, edge: str, task_id: str, now: float) -> None:
        if not self._refused.has_room_for((edge, task_id)):
            edge = OTHERS
        if count := self._refused.note((edge, task_id), now):
            _log_refused(edge, task_id, count)


def _log_refused(edge: str, task_id: str, count: int) -> None:
    event(_log, logging.WARNING, "records_refused", edge=edge, id=task_id, count=count)


def _log_edges(level: int, name: str, edges: list[str]) -> None:
    if edges:
        event(_log, level, name, count=len(edges), edges=sorted(edges)[:MOST_NAMES])
