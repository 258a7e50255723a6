"""How often edges ask what they may have missed: so seldom that the servers can answer. Pure: time is an argument.

Every edge asks every half minute. A million of them would ask 33,000 times a second, which no server answers: so with
many edges a server tells each in its answer after how many seconds to ask again.
"""

from __future__ import annotations

from typing import Final

from outvote.log.catch_up import ASK_EVERY, LONGEST_PAUSE

QUESTIONS: Final = 2_000.0
"""A second, that one server wants to answer at most: a third of a core, which has messages to count besides."""
LEAST_HEARD: Final = 100
"""Questions after which it is known what share of them this server answers: others may answer, too."""
PATIENCE: Final = 2.5
"""Periods without a sign of life after which an edge is silent: one may be lost on the way, not two."""


class PollRate:
    """What one server tells, and what that means for the silence of an edge."""

    def __init__(self) -> None:
        self.period = ASK_EVERY
        """Seconds after which an edge is told to ask again."""
        self._longest = ASK_EVERY
        """The same, of those that may still wait for as long as they were told before."""
        self._until = 0.0
        self._heard = self._answered = 0
        self._share = 1.0

    @property
    def silent_after(self) -> float:
        """Seconds without a sign of life."""
        return PATIENCE * self._longest

    def hear(self) -> None:
        """An edge asked, whichever server answers."""
        self._heard += 1

    def answer(self) -> None:
        """It was this one."""
        self._answered += 1

    def update(self, alive: int, now: float) -> None:
        """At every turn of the clock, with so many edges alive."""
        if self._heard >= LEAST_HEARD:
            self._share = min(1.0, self._answered / self._heard)
            self._heard = self._answered = 0
        wanted = float(round(alive * self._share / QUESTIONS))
        self.period = min(max(ASK_EVERY, wanted), LONGEST_PAUSE)
        if self.period >= self._longest or now >= self._until:
            self._longest = self.period
            self._until = now + PATIENCE * self._longest
