"""What has changed, told to those who watch: many changes in a short time are one.

A watcher that is slow holds up nobody: what changed meanwhile waits for it, as a set.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

FLEET: Final = "fleet"
"""Edges came, went or sent something. Every other topic is the id of a task."""
PAUSE: Final = 0.25
"""Seconds between two tellings, at least."""
BEAT: Final = 15.0
"""Seconds of silence after which nothing is told, so that a connection that has died is found out."""


class Changes:
    """One source, any number of watchers."""

    def __init__(self) -> None:
        self._watchers: dict[asyncio.Event, set[str]] = {}
        """What wakes each, and what has changed since it was last told."""
        self._closed = False

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def note(self, *topics: str) -> None:
        for woken, changed in self._watchers.items():
            changed.update(topics)
            woken.set()

    def close(self) -> None:
        """Every watcher ends."""
        self._closed = True
        for woken in self._watchers:
            woken.set()

    async def watch(self) -> AsyncIterator[frozenset[str]]:
        """What has changed since the last time; nothing, now and then, and at once at the beginning."""
        woken = asyncio.Event()
        self._watchers[woken] = set()
        try:
            yield frozenset()
            while not self._closed:
                try:
                    await asyncio.wait_for(woken.wait(), BEAT)
                except TimeoutError:
                    yield frozenset()
                    continue
                woken.clear()
                if self._closed:
                    return
                topics, self._watchers[woken] = frozenset(self._watchers[woken]), set()
                yield topics
                await asyncio.sleep(PAUSE)
        finally:
            del self._watchers[woken]
