"""The server's own log lines: changes of tasks, refused records, and sites that appear, fall silent or send twice.

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
"""Largest number of sites named in one line."""
OTHERS: Final = "(others)"
"""Stands for all further sites, once too many have lines of their own."""
SEVERAL_LIVES: Final = (
    "its store was lost or copied, or two processes run under this name: stop all but one, or give each its own name"
)

_log = logging.getLogger(__name__)


class EventLog:
    """Writes the log lines of one server."""

    def __init__(self) -> None:
        self._begun = False
        self._often = OncePerMinute[tuple[str, str]]()
        """Refused records by site and task; changes of life by site, with an empty task."""
        self._lives: dict[str, str] = {}
        """The incarnation that sent last, of each edge with several; empty if it is not known."""
        self._known: set[str] = set()
        """Edges that are in the shared log or were heard."""
        self._silent: set[str] = set()

    def begin(self, state: LogState) -> None:
        """Start logging: the server has caught up with the shared log."""
        self._begun = True
        self._known = set(state.edges)
        self._lives = {name: "" for name, edge in state.edges.items() if len(edge.incarnations) > 1}
        event(_log, logging.INFO, "log_read", records=state.read, tasks=len(state.tasks), sites=len(state.edges))
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
            case MessageStored(edge=edge, incarnation=incarnation, counted=counted):
                if len(state.edges[edge].incarnations) > 1:
                    self._note_life(edge, incarnation, now)
                if not counted:
                    self._note_often(edge, task_id, now)
            case TaskCreated() if task is not None:
                variants = list(task.task.arms)
                event(_log, logging.INFO, "task_created", **about, protocol=task.task.protocol, variants=variants)
            case TaskUnreadable(reason=reason):
                event(_log, logging.ERROR, "task_not_readable", id=task_id, error=reason)
            case TaskDeleted():
                event(_log, logging.INFO, "task_deleted", **about)
            case TaskStopped():
                event(_log, logging.INFO, "task_stopped", **about)
            case ArmsEliminated(number=number, elimination=elimination) if task is not None:
                variants = [task.task.arms[arm] for arm in elimination.arms]
                fields = about | {"variants": variants, "number": number, "remaining": len(task.announced)}
                event(_log, logging.INFO, "variants_eliminated", **fields)
                if task.winner is not None:
                    event(_log, logging.INFO, "winner_found", **about, winner=task.task.arms[task.winner])
            case HoldChanged(held=held):
                event(_log, *((logging.WARNING, "task_held") if held else (logging.INFO, "task_released")), **about)
            case KillSwitchUsed(killed=killed, changed=True):
                switched = (logging.WARNING, "task_killed") if killed else (logging.WARNING, "task_revived")
                event(_log, *switched, **about)
            case EdgeDiscounted(edge=edge, messages=messages):
                event(_log, logging.WARNING, "site_discounted", **about, site=edge, messages=messages)
            case _:
                pass

    def look(self, edges: Iterable[tuple[str, EdgeState]], now: float) -> None:
        """Log sites that are new, fell silent or returned, and what was counted. Called at regular intervals."""
        states = list(edges)
        new = [edge for edge, state in states if state == "alive" and edge not in self._known]
        silent = [edge for edge, state in states if state == "silent" and edge not in self._silent]
        back = [edge for edge, state in states if state == "alive" and edge in self._silent]
        self._known.update(new)
        self._silent.update(silent)
        self._silent.difference_update(back)
        _log_sites(logging.INFO, "sites_first_heard", new)
        _log_sites(logging.WARNING, "sites_silent", silent)
        _log_sites(logging.INFO, "sites_back", back)
        for kind, count in self._often.due(now):
            _log_often(*kind, count)

    def _note_life(self, edge: str, incarnation: str, now: float) -> None:
        """Warn when an edge's messages come from another incarnation than those before."""
        before = self._lives.get(edge)
        self._lives[edge] = incarnation
        if before not in (incarnation, ""):
            self._note_often(edge, "", now)

    def _note_often(self, site: str, task_id: str, now: float) -> None:
        if not self._often.has_room_for((site, task_id)):
            site = OTHERS
        if count := self._often.note((site, task_id), now):
            _log_often(site, task_id, count)


def _log_often(site: str, task_id: str, count: int) -> None:
    if task_id:
        event(_log, logging.WARNING, "records_refused", site=site, id=task_id, count=count)
    else:
        event(_log, logging.WARNING, "site_with_several_lives", site=site, count=count, do=SEVERAL_LIVES)


def _log_sites(level: int, name: str, sites: list[str]) -> None:
    if sites:
        event(_log, level, name, count=len(sites), sites=sorted(sites)[:MOST_NAMES])
