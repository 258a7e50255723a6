"""A planted bug: a server says that a task was stopped, and stores nothing."""

from __future__ import annotations

from outvote.server.sync_server import SyncServer


async def stop_task(self: SyncServer, task_id: str) -> None:
    pass


SyncServer.stop_task = stop_task  # type: ignore[method-assign]
