"""A planted bug: an edge takes every third message as stored before anybody has stored it, and loses it."""

from __future__ import annotations

from outvote.engine.nats_log import Link

_store = Link.store
_count = 0


async def store(self: Link, subject: str, payload: bytes) -> bool:
    global _count
    _count += 1
    return True if _count % 3 == 0 else await _store(self, subject, payload)


Link.store = store  # type: ignore[method-assign]
