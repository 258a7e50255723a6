"""A planted bug: an edge takes every third message as stored before anybody has stored it, and loses it."""

from __future__ import annotations

from outvote.engine.nats_log import NatsLog

_store = NatsLog.store
_count = 0


async def store(self: NatsLog, subject: str, payload: bytes) -> bool:
    global _count
    _count += 1
    return True if _count % 3 == 0 else await _store(self, subject, payload)


NatsLog.store = store  # type: ignore[method-assign]
