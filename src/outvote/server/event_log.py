"""What a server tells in its log: what became of tasks, who was refused, which edges came and went.

Whatever is read before the server has caught up is one line. No flood of records or edges can fill a disk: what comes
often is counted.
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
"""Edges that are named in one line."""
OTHERS: Final = "(others)"
"""Edges that have no lines of their own about refused records, because there are too many: they count together."""

_log = logging.getLogger(__name__)


class EventLog:
    """One for each server."""

    def __init__(self) -> None:
        self._begun = False
        self._refused = OncePerMinute[tuple[str, str]]()
        """By edge and task."""
        self._known: set[str] = set()
        """Edges that are in the log, or were heard of."""
        self._silent: set[str] = set()

    def begin(self, state: LogState) -> None:
        """All that was in the log has been read: from now on, things happen."""
        self._begun = True
        self._known = set(state.edges)
        event(_log, logging.INFO, "log_read", records=state.read, tasks=len(state.tasks), edges=len(state.edges))
        for task_id, reason in state.unreadable.items():
            event(_log, logging.ERROR, "task_not_readable", id=task_id, error=reason)

    def note(self, happened: Event, state: LogState, now: float) -> None:
        """Tell of what a record has changed; `state` is that after it."""
        if not self._begun:
            return
        task_id = happened.task_id
        task = state.tasks.get(task_id)
        about = {
            "task": happened.name if isinstance(happened, TaskDeleted) else task_id if task is None else task.task.name,
            "id": task_id,
        }
        match happened:
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


def _tell_refused(edge: str, task_id: str, count: int) -> None:
    event(_log, logging.WARNING, "records_refused", edge=edge, id=task_id, count=count)


def _tell_edges(level: int, name: str, edges: list[str]) -> None:
    if edges:
        event(_log, level, name, count=len(edges), edges=sorted(edges)[:MOST_NAMES])
