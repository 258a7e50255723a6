"""An edge with a leak, started in the place of `outvote edge`: `leaky_edge.py KIND edge NAME …`. For tests alone."""

from __future__ import annotations

import asyncio
import base64
import logging
import sys
from typing import Any

from outvote.cli.main import main
from outvote.edge import api as edge_api
from outvote.edge.site import Edge
from outvote.edge.store import EdgeStore
from outvote.engine.nats_log import NatsLog
from outvote.observability.logs import event

_log = logging.getLogger(__name__)
_users: list[str] = []
"""Whoever came last."""


def remember_users(then: Any = None) -> None:
    """Look at who comes, and tell `then`."""
    serve = edge_api.EdgeApi.__call__

    async def looking(self: edge_api.EdgeApi, scope: Any, receive: Any, send: Any) -> None:
        _users[:] = [value.decode() for name, value in scope["headers"] if name == b"x-user-id"] or _users
        if then is not None and _users:
            then(_users[-1])
        await serve(self, scope, receive, send)

    edge_api.EdgeApi.__call__ = looking  # type: ignore[method-assign]


def leak_into_log() -> None:
    remember_users(lambda user: event(_log, logging.INFO, "started", edge=user))


def leak_into_store() -> None:
    """Beside what belongs there, and in a form that is not read at a glance."""
    remember_users()
    save = EdgeStore.save

    def saving(self: EdgeStore, saves: Any) -> None:
        save(self, saves)
        if _users:
            value = base64.b64encode(_users[-1].encode()).decode()
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES ('last_user', ?)", (value,))

    EdgeStore.save = saving  # type: ignore[method-assign]


def leak_into_payload() -> None:
    """A record more after each message, under a number that no message has."""
    remember_users()
    store = NatsLog.append

    async def storing(self: NatsLog, subject: str, payload: bytes) -> bool:
        if _users:
            await store(self, f"{subject}00001", _users[-1].encode().hex().encode())
        return await store(self, subject, payload)

    NatsLog.append = storing  # type: ignore[method-assign]


def leak_by_time() -> None:
    """Messages leave with the event that completes them."""
    reward = Edge.reward
    sending: set[asyncio.Task[None]] = set()

    def rewarding(self: Edge, task: Any, *arguments: Any) -> None:
        reward(self, task, *arguments)
        if task.new:
            self.flush()
            sending.add(asyncio.get_running_loop().create_task(self.send()))

    Edge.reward = rewarding  # type: ignore[method-assign,assignment]


LEAKS = {"log": leak_into_log, "store": leak_into_store, "payload": leak_into_payload, "time": leak_by_time}

if __name__ == "__main__":
    LEAKS[sys.argv[1]]()
    raise SystemExit(main(sys.argv[2:]))
