"""What a server has announced: the part that is the same whatever it counts."""

from __future__ import annotations

from collections.abc import Sequence

from outvote.core.messages import Elimination
from outvote.core.task import Task


class Announced:
    """The arms of a task, and those that were announced to be eliminated."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._eliminated: list[int] = []
        self.time = 0
        """The time of the last message, as the log has it: a server has no clock of its own."""

    @property
    def remaining(self) -> tuple[int, ...]:
        """The arms that were not announced to be eliminated."""
        return tuple(arm for arm in range(len(self.task.arms)) if arm not in self._eliminated)

    @property
    def eliminated(self) -> tuple[int, ...]:
        """The eliminated arms, in the order of their announcement."""
        return tuple(self._eliminated)

    @property
    def winner(self) -> int | None:
        """The only remaining arm, if there is only one."""
        remaining = self.remaining
        return remaining[0] if len(remaining) == 1 else None

    @property
    def held(self) -> bool:
        """A decision is held back: whoever never does that says so here."""
        return False

    @property
    def hold_reason(self) -> str | None:
        """Why it is held back, for the operator."""
        return None

    @property
    def reported(self) -> tuple[int, int]:
        """Events that messages have told of, and messages of which all or none succeeded; votes tell of none."""
        return 0, 0

    def adopt(self, eliminated: Sequence[int]) -> list[Elimination]:
        """Take over what was really announced, where a log that several servers write to decides: the first one stored
        wins. Returns what is to be announced besides because of it."""
        self._eliminated = list(eliminated)
        return []
