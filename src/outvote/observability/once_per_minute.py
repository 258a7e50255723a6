"""Limits how often a thing is logged that may happen as often as somebody else likes.

Whatever a requester, an edge or a library can cause passes here: nobody outside may fill a disk.
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
    """Tells each kind of thing at once, then at most once a minute, with a count. Times are in seconds of any clock."""

    def __init__(self) -> None:
        self._told: dict[Kind, float] = {}
        self._untold: Counter[Kind] = Counter()

    def note(self, kind: Kind, now: float, *, count: int = 1) -> int:
        """Count what happened. Return how often it happened since it was last told if it is to be told now, else 0.

        With `count=0` this asks whether something is left to tell.
        """
        self._untold[kind] += count
        if now - self._told.get(kind, -math.inf) < PAUSE or not self._untold[kind]:
            return 0
        self._told[kind] = now
        return self._untold.pop(kind, 0)  # another thread may have told it

    def due(self, now: float) -> list[tuple[Kind, int]]:
        """Return what is left to tell now, with counts. Forget kinds that have been quiet for a minute."""
        self._told = {kind: at for kind, at in self._told.items() if now - at < PAUSE}
        kinds = [kind for kind in self._untold if kind not in self._told]
        return [(kind, count) for kind in kinds if (count := self.note(kind, now, count=0))]

    def has_room_for(self, kind: Kind) -> bool:
        """Whether it can have lines of its own. Where names can be made up, count what has none under another kind."""
        return kind in self._told or len(self._told) < MAX_KINDS
