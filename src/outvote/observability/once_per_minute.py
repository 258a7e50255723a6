"""Rate limit of log lines that others can cause.

All lines that a client, an edge or a library can cause pass here: nobody outside may fill a disk.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

PAUSE: Final = 60.0
"""Seconds between two lines of one kind."""
MAX_KINDS: Final = 100

Kind = TypeVar("Kind", bound=Hashable)


class OncePerMinute(Generic[Kind]):
    """Logs each kind of event at once, then at most once a minute with a count. Times are in seconds of any clock."""

    def __init__(self) -> None:
        self._logged_at: dict[Kind, float] = {}
        self._pending: Counter[Kind] = Counter()

    def note(self, kind: Kind, now: float, *, count: int = 1) -> int:
        """Count an event. Return how often it happened since it was last logged if it is to be logged now, else 0.

        With `count=0` this only asks whether something is left to log.
        """
        self._pending[kind] += count
        if now - self._logged_at.get(kind, -math.inf) < PAUSE or not self._pending[kind]:
            return 0
        self._logged_at[kind] = now
        return self._pending.pop(kind, 0)  # another thread may have logged it

    def due(self, now: float) -> list[tuple[Kind, int]]:
        """Return the kinds to log now, with counts. Forget kinds that were not logged for a minute."""
        self._logged_at = {kind: at for kind, at in self._logged_at.items() if now - at < PAUSE}
        kinds = [kind for kind in self._pending if kind not in self._logged_at]
        return [(kind, count) for kind in kinds if (count := self.note(kind, now, count=0))]

    def has_room_for(self, kind: Kind) -> bool:
        """Whether this kind can have its own lines. If clients can invent kinds, count the rest under a common one."""
        return kind in self._logged_at or len(self._logged_at) < MAX_KINDS
