"""A server with what its operators ask for: when things happened, which edges are alive, and what has changed."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from outvote.network.changes import FLEET, Changes
from outvote.network.edge import CATCH_UP_EVERY
from outvote.network.fold import FoldedTask
from outvote.network.history import DatedFold, EdgeHistory
from outvote.network.journal import Journal
from outvote.network.link import Link
from outvote.network.pace import Pace
from outvote.network.records import DOWN, UP
from outvote.network.server import SyncServer
from outvote.network.signs import EdgeState, Signs

LOOK_EVERY: Final = 5.0
"""Seconds between two looks at who has fallen silent."""


class OperatedServer(SyncServer):
    """One server process, looked at by people."""

    def __init__(self, link: Link, *, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since 1970."""
        super().__init__(link)
        self.link = link
        self.clock = clock
        self.dated = DatedFold()
        self.fold = self.dated
        self.signs = Signs(clock())
        self.pace = Pace()
        self.changes = Changes()
        self._journal = Journal()
        self._caught_up = False

    async def start(self) -> None:
        """Edges are awaited from now on: to read a long log takes its time."""
        await super().start()
        self.signs.started = self.clock()

    def answers(self) -> float | None:
        """More seldom where there are very many edges."""
        self.pace.answer()
        return self.pace.period if self.pace.period > CATCH_UP_EVERY else None

    def heard(self, edge: str) -> None:
        self.pace.hear()
        self._note_sign(edge)

    def _note_sign(self, edge: str) -> None:
        if self.signs.hear(edge, self.clock()):
            self.changes.note(FLEET)

    def has_caught_up(self) -> None:
        self._journal.begin(self.dated)
        self._caught_up = True

    def has_changed(self, task: FoldedTask | None, subject: str) -> None:
        if task is None:
            if subject.startswith(DOWN):
                self._journal.note_unreadable(self.fold, subject)
                self.changes.note(FLEET)
        else:
            self._journal.note(self.fold, task, subject, self.clock())
            self.changes.note(task.task_id, FLEET)
            if self._caught_up and subject.startswith(UP):  # a message is a sign of life, too
                self._note_sign(subject.split(".", 3)[2])

    async def look_around(self) -> None:
        """For ever: tell those who watch, and the log, when an edge has fallen silent, or the engine went away."""
        before: object = None
        while True:
            counts = self.edge_counts()
            self.pace.look(counts["alive"], self.clock())
            self.signs.silent_after = self.pace.silent_after
            now = self.link.connected, self.ready, counts
            if now != before:
                self.changes.note(FLEET)
            before = now
            self._journal.look(((name, state) for name, state, _ in self.edges()), self.clock())
            await asyncio.sleep(LOOK_EVERY)

    def edges(self) -> Iterator[tuple[str, EdgeState, EdgeHistory]]:
        """All edges that there are, in the order of their names."""
        now = self.clock()
        for name in sorted(self.edge_names()):
            history = self.dated.edges.get(name)
            state = self.signs.state(name, seen=history is not None, now=now)
            yield name, state, history or EdgeHistory()

    def edge_names(self) -> set[str]:
        """Edges that were heard of, are in the log or are named by a task."""
        names = {*self.signs.last, *self.dated.edges}
        for found in self.fold.tasks.values():
            names.update(found.task.player_names)
        return names

    def edge_counts(self) -> Counter[EdgeState]:
        """How many edges are in which state."""
        return Counter(state for _, state, _ in self.edges())
