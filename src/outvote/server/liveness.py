"""Which edges are alive, by when this server last heard of each, and how often they shall ask. Time is an argument.

An edge asks every half minute what it may have missed, and every server hears it, whichever one answers. A million of
them would ask 33,000 times a second, which no server answers: so with many edges a server tells each in its answer
after how many seconds to ask again.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from outvote.core.task import NAME
from outvote.log.catch_up import ASK_EVERY, LONGEST_PAUSE

PERIODS: Final = 2.5
"""Without a sign of life, after which an edge is silent: one sign may be lost on the way, not two."""
SILENT_AFTER: Final = PERIODS * ASK_EVERY
"""The same in seconds; more where edges are told to ask more seldom."""
MOST_EDGES: Final = 100_000
"""Names that are remembered: what is on the network could make up any number."""
QUESTIONS: Final = 2_000.0
"""A second, that one server wants to answer at most: a third of a core, which has messages to count besides."""
LEAST_HEARD: Final = 100
"""Questions after which it is known what share of them this server answers: others may answer, too."""

EdgeState: TypeAlias = Literal["alive", "awaited", "silent", "missing"]


class Liveness:
    """When each edge was last heard of; `started` is when this server began to listen."""

    def __init__(self, started: float) -> None:
        self.started = started
        self.last: dict[str, float] = {}
        self.period = ASK_EVERY
        """Seconds after which an edge is told to ask again."""
        self.silent_after = SILENT_AFTER
        """Seconds, also for those that may still wait for as long as they were told before."""
        self.questions = 0
        """Heard since the share was last known, whichever server answers."""
        self.answers = 0
        """Of these, by this server."""
        self._share = 1.0
        self._until = 0.0

    def hear(self, edge: str, now: float) -> bool:
        """A sign of life; returns whether the edge was away before, or never heard of."""
        if edge not in self.last and (len(self.last) >= MOST_EDGES or not NAME.fullmatch(edge)):
            return False
        before = self.last.get(edge)
        self.last[edge] = now
        return before is None or now - before > self.silent_after

    def state(self, edge: str, *, seen: bool, now: float) -> EdgeState:
        """`alive`; `awaited` while this server has not listened long enough to tell; `silent`, if it was `seen` before,
        here or in the log; `missing`, if a task names it and it never was."""
        last = self.last.get(edge)
        if last is not None and now - last <= self.silent_after:
            return "alive"
        if last is None and now - self.started <= self.silent_after:
            return "awaited"
        return "silent" if seen or last is not None else "missing"

    def set_period(self, alive: int, now: float) -> None:
        """At every turn of the clock, with so many edges alive."""
        if self.questions >= LEAST_HEARD:
            self._share = min(1.0, self.answers / self.questions)
            self.questions = self.answers = 0
        wanted = float(round(alive * self._share / QUESTIONS))
        self.period = min(max(ASK_EVERY, wanted), LONGEST_PAUSE)
        silent_after = PERIODS * self.period
        if silent_after >= self.silent_after or now >= self._until:
            self.silent_after, self._until = silent_after, now + silent_after
