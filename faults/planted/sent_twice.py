"""A planted bug: an edge that sends each message again under another incarnation, so that each counts twice."""

from __future__ import annotations

from outvote.engine.nats_log import NatsLog
from outvote.log.records import UpSubject, parse

_append = NatsLog.append


async def append(self: NatsLog, subject: str, payload: bytes) -> bool:
    where = parse(subject)
    if isinstance(where, UpSubject):
        await _append(self, str(where._replace(incarnation="0" * 16)), payload)
    return await _append(self, subject, payload)


NatsLog.append = append  # type: ignore[method-assign]
