"""A planted bug: an edge takes every third message as stored before anybody has stored it, and loses it."""

from __future__ import annotations

from outvote.engine.nats_log import NatsLog

_append = NatsLog.append
_count = 0


async def append(self: NatsLog, subject: str, payload: bytes) -> bool:
    global _count
    _count += 1
    return True if _count % 3 == 0 else await _append(self, subject, payload)


NatsLog.append = append  # type: ignore[method-assign]
