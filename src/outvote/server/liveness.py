"""Which edges are alive, by their last sign of life, and how often they poll. Time is an argument.

An edge polls for missed records every 30 seconds, and every server hears it, whichever one answers. A million edges
would send 33,000 questions a second, more than a server can answer. So with many edges a server sets a longer polling
interval in its answers.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from outvote.core.task import NAME
from outvote.log.catch_up import ASK_EVERY, LONGEST_PAUSE

PERIODS: Final = 2.5
"""Polling intervals without a sign of life after which an edge is silent: one sign may be lost, not two."""
SILENT_AFTER: Final = PERIODS * ASK_EVERY
"""The same in seconds, for the default polling interval."""
MOST_EDGES: Final = 100_000
"""Largest number of names remembered; a client could invent any number of them."""
QUESTIONS: Final = 2_000.0
"""Target rate of questions to one server, per second: they take a third of a core."""
LEAST_HEARD: Final = 100
"""Questions needed to estimate the share of them that this server answers."""

EdgeState: TypeAlias = Literal["alive", "awaited", "silent", "missing"]


class Liveness:
    """The last sign of life of each edge; `started` is when this server began to listen."""

    def __init__(self, started: float) -> None:
        self.started = started
        self.last: dict[str, float] = {}
        self.period = ASK_EVERY
        """Polling interval of edges, in seconds."""
        self.silent_after = SILENT_AFTER
        """Seconds without a sign of life until an edge is silent. Lowered late: edges may still poll slowly."""
        self.questions = 0
        """Questions heard since the last estimate of the share, whichever server answers."""
        self.answers = 0
        """Those of them that this server answered."""
        self._share = 1.0
        self._until = 0.0

    def hear(self, edge: str, now: float) -> bool:
        """Note a sign of life; return whether the edge was silent or unknown before."""
        if edge not in self.last and (len(self.last) >= MOST_EDGES or not NAME.fullmatch(edge)):
            return False
        before = self.last.get(edge)
        self.last[edge] = now
        return before is None or now - before > self.silent_after

    def state(self, edge: str, *, seen: bool, now: float) -> EdgeState:
        """`alive`; `awaited` while this server has not listened long enough; `silent` if it was `seen` before, here or
        in the log; `missing` if a task names it and it was never seen."""
        last = self.last.get(edge)
        if last is not None and now - last <= self.silent_after:
            return "alive"
        if last is None and now - self.started <= self.silent_after:
            return "awaited"
        return "silent" if seen or last is not None else "missing"

    def set_period(self, alive: int, now: float) -> None:
        """Adapt the polling interval to the number of edges alive. Called at regular intervals."""
        if self.questions >= LEAST_HEARD:
            self._share = min(1.0, self.answers / self.questions)
            self.questions = self.answers = 0
        wanted = float(round(alive * self._share / QUESTIONS))
        self.period = min(max(ASK_EVERY, wanted), LONGEST_PAUSE)
        silent_after = PERIODS * self.period
        if silent_after >= self.silent_after or now >= self._until:
            self.silent_after, self._until = silent_after, now + silent_after
