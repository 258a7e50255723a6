"""What people see of a fleet: which edges are alive, what has changed, and what the server tells in its log."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from outvote.log.catch_up import ASK_EVERY
from outvote.log.events import Event, MessageStored
from outvote.log.history import EdgeHistory
from outvote.log.log_state import LogState
from outvote.server.changes import FLEET, Changes
from outvote.server.event_log import EventLog
from outvote.server.liveness import EdgeState, Liveness

LOOK_EVERY: Final = 5.0
"""Seconds between two looks at who has fallen silent."""


class Monitor:
    """Looks on while a server works."""

    def __init__(self, state: LogState, clock: Callable[[], float]) -> None:
        """`clock` gives seconds since 1970."""
        self.liveness = Liveness(clock())
        self.changes = Changes()
        self._state = state
        self._clock = clock
        self._event_log = EventLog()
        self._caught_up = False

    def begin(self) -> None:
        """All that was in the log has been read."""
        self._event_log.begin(self._state)
        self._caught_up = True

    def await_edges(self) -> None:
        """Edges are awaited from now on: to read a long log takes its time."""
        self.liveness.started = self._clock()

    def note(self, event: Event) -> None:
        """Tell those who watch, and the log, of what a record has changed."""
        self._event_log.note(event, self._state, self._clock())
        self.changes.note(event.task_id, FLEET)
        if self._caught_up and isinstance(event, MessageStored):  # a message is a sign of life, too
            self._note_sign(event.edge)

    def on_question(self, edge: str) -> None:
        """An edge asked what it may have missed, whichever server answers."""
        self.liveness.questions += 1
        self._note_sign(edge)

    def on_answer(self) -> float | None:
        """This server answers an edge: seconds after which the edge shall ask again, where there are very many."""
        self.liveness.answers += 1
        return self.liveness.period if self.liveness.period > ASK_EVERY else None

    def edges(self) -> Iterator[tuple[str, EdgeState, EdgeHistory]]:
        """All edges that there are, in the order of their names."""
        now = self._clock()
        for name in sorted(self.edge_names()):
            history = self._state.edges.get(name)
            state = self.liveness.state(name, seen=history is not None, now=now)
            yield name, state, history or EdgeHistory()

    def edge_names(self) -> set[str]:
        """Edges that were heard of, are in the log or are named by a task."""
        names = {*self.liveness.last, *self._state.edges}
        for task in self._state.tasks.values():
            names.update(task.task.player_names)
        return names

    def edge_counts(self) -> Counter[EdgeState]:
        """How many edges are in which state."""
        return Counter(state for _, state, _ in self.edges())

    async def look_around(self, status: Callable[[], object]) -> None:
        """For ever: tell those who watch, and the log, when an edge has fallen silent, or `status` has changed."""
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

    def _note_sign(self, edge: str) -> None:
        if self.liveness.hear(edge, self._clock()):
            self.changes.note(FLEET)
