"""What a fleet has to show for itself: the log as it lies there, the edges' stores, and whether they agree.

The log is read record by record by a connection of its own, and the stores by SQLite: not by the code that wrote them.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from outvote.access.engine_access import Access
from outvote.core import protocols
from outvote.engine.nats_log import NatsLog
from outvote.log.log import Record
from outvote.log.log_state import LogState, TaskState
from outvote.log.records import Coder, UpSubject, parse

DEADLINE = 30.0


class Sent(NamedTuple):
    """One message of an edge."""

    edge: str
    incarnation: str
    task_id: str
    sequence: int


class StoredMessages(NamedTuple):
    """What a store has kept."""

    edge: str
    incarnation: str
    messages: dict[tuple[str, int], bytes]
    """By task and sequence."""


def read_log(url: str) -> list[Record]:
    """The whole log, up to where it reaches now."""
    return asyncio.run(log_at(url))


async def log_at(url: str, access: Access | None = None) -> list[Record]:
    """The same, for who runs in a loop; with a credential where one is needed."""
    found: list[Record] = []
    done = asyncio.Event()

    def take(record: Record) -> None:
        found.append(record)
        if record.sequence >= last:
            done.set()

    async with await NatsLog.connect(
        url, name="server" if access else "auditor", patience=DEADLINE, access=access
    ) as link:
        last = await link.log_end()
        await link.follow(take)
        if last:
            await asyncio.wait_for(done.wait(), DEADLINE)
    return found


def read_store(edge: str, path: Path) -> StoredMessages:
    """The messages of a store that no process writes to."""
    with closing(sqlite3.connect(path)) as store:
        [(incarnation,)] = store.execute("SELECT value FROM meta WHERE key = 'incarnation'")
        rows = store.execute("SELECT task_id, sequence, payload FROM messages")
        return StoredMessages(edge, incarnation, {(task_id, sequence): payload for task_id, sequence, payload in rows})


def sent(log: Sequence[Record]) -> list[tuple[Sent, bytes]]:
    """The messages of edges in a log."""
    found = []
    for record in log:
        where = parse(record.subject)
        if isinstance(where, UpSubject):
            found.append((Sent(where.edge, where.incarnation, where.task_id, where.sequence), record.payload))
    return found


def faults(log: Sequence[Record], stores: Sequence[StoredMessages]) -> list[str]:
    """All in which the log and the stores differ; nothing, if every message is in both once and with one content."""
    found: list[str] = []
    lives = {(each.edge, each.incarnation): each for each in stores}
    if len(lives) < len(stores):
        found.append("two stores have one incarnation")
    often = Counter(where for where, _ in sent(log))
    found += [f"{where} is {count} times in the log" for where, count in often.items() if count > 1]
    for where, payload in sent(log):
        life = lives.get((where.edge, where.incarnation))
        kept = None if life is None else life.messages.get((where.task_id, where.sequence))
        if life is None:
            found.append(f"{where} is in the log, and of no store")
        elif kept is None:
            found.append(f"{where} is in the log, and not in its store")
        elif kept != payload:
            found.append(f"{where} is {payload.hex()} in the log, and {kept.hex()} in its store")
    for life in stores:
        for task_id, sequence in life.messages:
            where = Sent(life.edge, life.incarnation, task_id, sequence)
            if where not in often:
                found.append(f"{where} is in its store, and not in the log")
    return found


def replayed(log: Sequence[Record], task_id: str) -> TaskState:
    """The task as a fold of the log has it, after a core server by itself was found to come to the same state."""
    fold = LogState()
    for record in log:
        fold.apply(record)
    folded = fold.tasks[task_id]
    core, coder = protocols.server(folded.task), Coder(folded.task)
    for record in log:
        where = parse(record.subject)
        if isinstance(where, UpSubject) and where.task_id == task_id:
            message, at = coder.read_up(where, record.payload), int(record.stored * 1000)
            core.receive(where.edge, message, at, incarnation=where.incarnation)
    assert core.snapshot() == folded.server.snapshot()
    assert [arm for each in folded.eliminations for arm in each.arms] == list(core.eliminated)
    assert folded.refused == fold.unknown == 0
    assert core.snapshot()["duplicates"] == 0
    return folded
