"""Monitoring for people: which edges are alive, change notifications, and the server's log lines."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from outvote.log.catch_up import ASK_EVERY, Question
from outvote.log.events import Event, MessageStored
from outvote.log.history import EdgeHistory
from outvote.log.log_state import LogState
from outvote.log.site_report import SiteReport
from outvote.server.changes import FLEET, Changes
from outvote.server.event_log import EventLog
from outvote.server.liveness import EdgeState, Liveness

LOOK_EVERY: Final = 5.0
"""Seconds between two checks for silent edges."""


class Monitor:
    """Observes a server and its edges."""

    def __init__(self, state: LogState, clock: Callable[[], float]) -> None:
        """`clock` gives seconds since 1970."""
        self.liveness = Liveness(clock())
        self.changes = Changes()
        self._state = state
        self._clock = clock
        self._event_log = EventLog()
        self._caught_up = False
        self._reports: dict[str, dict[str, SiteReport]] = {}
        """The last reports of each edge, by task id."""
        self._distinct: dict[SiteReport, SiteReport] = {}
        """Of equal reports one is kept: thousands of sites say the same."""

    def begin(self) -> None:
        """Start logging: the server has caught up with the shared log."""
        self._event_log.begin(self._state)
        self._caught_up = True

    def await_edges(self) -> None:
        """Begin to await edges, now that the log was read, which may have taken long."""
        self.liveness.started = self._clock()

    def note(self, event: Event) -> None:
        """Log a change by a record, and notify watchers."""
        self._event_log.note(event, self._state, self._clock())
        self.changes.note(event.task_id, FLEET)
        if self._caught_up and isinstance(event, MessageStored):  # a message is a sign of life, too
            self._note_sign(event.edge)

    def on_question(self, edge: str, question: Question) -> None:
        """Note that an edge asked for missed records, and what it reports, whichever server answers."""
        self.liveness.questions += 1
        self._note_sign(edge)
        if edge in self.liveness.last:
            self._note_reports(edge, question.reports)

    def reports_of(self, task_id: str) -> dict[str, SiteReport]:
        """Return what sites have reported of a task, by name."""
        return {edge: reports[task_id] for edge, reports in sorted(self._reports.items()) if task_id in reports}

    def on_answer(self) -> float | None:
        """Note an answer of this server; return the edge's polling interval in seconds, or None for the default."""
        self.liveness.answers += 1
        return self.liveness.period if self.liveness.period > ASK_EVERY else None

    def edges(self) -> Iterator[tuple[str, EdgeState, EdgeHistory]]:
        """Yield all edges with state and history, sorted by name."""
        now = self._clock()
        for name in sorted(self.edge_names()):
            history = self._state.edges.get(name)
            state = self.liveness.state(name, seen=history is not None, now=now)
            yield name, state, history or EdgeHistory()

    def edge_names(self) -> set[str]:
        """Return the edges that were heard, are in the log or are named by a task."""
        names = {*self.liveness.last, *self._state.edges}
        for task in self._state.tasks.values():
            names.update(task.task.player_names)
        return names

    def edge_counts(self) -> Counter[EdgeState]:
        """Return the number of edges in each state."""
        return Counter(state for _, state, _ in self.edges())

    async def look_around(self, status: Callable[[], object]) -> None:
        """Run for ever: log edges that fall silent, and notify watchers when edges or `status` change."""
        before: object = None
        while True:
            counts = self.edge_counts()
            self.liveness.set_period(counts["alive"], self._clock())
            now = status(), counts
            if now != before:
                self.changes.note(FLEET)
            before = now
            self._event_log.look(((name, state) for name, state, _ in self.edges()), self._clock())
            await asyncio.sleep(LOOK_EVERY)

    def _note_reports(self, edge: str, reports: Mapping[str, SiteReport]) -> None:
        """Keep only reports of known tasks that are for this site: an edge could invent any number of others."""
        before = self._reports.get(edge, {})
        same = self._distinct.setdefault
        known = {}
        for task_id, report in reports.items():
            task = self._state.tasks.get(task_id)
            if task is not None and (not task.task.player_names or edge in task.task.player_names):
                known[task_id] = same(report, report)
        if known != before:
            self._reports[edge] = known
            self.changes.note(*(known | before).keys())

    def _note_sign(self, edge: str) -> None:
        if self.liveness.hear(edge, self._clock()):
            self.changes.note(FLEET)
