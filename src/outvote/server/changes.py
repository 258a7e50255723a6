"""Change notifications for watchers. Changes within a short time are merged into one notification.

A slow watcher delays nobody: its changes are collected in a set until it is ready.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

FLEET: Final = "fleet"
"""Topic for changes of edges. Every other topic is the id of a task."""
PAUSE: Final = 0.25
"""Shortest pause between two notifications, in seconds."""
BEAT: Final = 15.0
"""Seconds without changes after which an empty notification is sent, to detect dead connections."""


class Changes:
    """One source, any number of watchers."""

    def __init__(self) -> None:
        self._watchers: dict[asyncio.Event, set[str]] = {}
        """The event that wakes each watcher, and its topics since the last notification."""
        self._closed = False

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def note(self, *topics: str) -> None:
        for woken, changed in self._watchers.items():
            changed.update(topics)
            woken.set()

    def close(self) -> None:
        """End all watchers."""
        self._closed = True
        for woken in self._watchers:
            woken.set()

    async def watch(self) -> AsyncIterator[frozenset[str]]:
        """Yield the topics changed since the last time; an empty set at the start and every `BEAT` seconds."""
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
