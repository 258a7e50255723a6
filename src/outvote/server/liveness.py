"""Which edges are alive: when each was last heard of, by this server. Time comes as an argument.

An edge asks every half minute what it may have missed, and every server hears it, whichever one answers.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from outvote.core.task import NAME
from outvote.log.catch_up import ASK_EVERY

SILENT_AFTER: Final = 2.5 * ASK_EVERY
"""Seconds without a sign of life: one may be lost on the way, not two. More where edges are told to ask more seldom."""
MOST_EDGES: Final = 100_000
"""Names that are remembered: what is on the network could make up any number."""

EdgeState: TypeAlias = Literal["alive", "awaited", "silent", "missing"]


class Liveness:
    """When each edge was last heard of; `started` is when this server began to listen."""

    def __init__(self, started: float) -> None:
        self.started = started
        self.silent_after = SILENT_AFTER
        self.last: dict[str, float] = {}

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
