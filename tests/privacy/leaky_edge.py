"""An edge with a leak, started in the place of `outvote edge`: `leaky_edge.py KIND edge NAME …`. For tests alone."""

from __future__ import annotations

import asyncio
import base64
import logging
import sys
from typing import Any

from outvote.cli.main import main
from outvote.core.decisions import Decisions, Ticket
from outvote.edge import api as edge_api
from outvote.edge.hosted_task import HostedTask
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


def leak_by_closing_early() -> None:
    """A group is counted with its last decision, and its message leaves at once."""
    decide = Edge.decide
    sending: set[asyncio.Task[None]] = set()

    def deciding(self: Edge, task: HostedTask) -> Ticket:
        ticket = decide(self, task)
        task.new += task.player.tick(self.now() + 2 * task.player.decisions.window)
        if task.new:
            self.flush()
            sending.add(asyncio.get_running_loop().create_task(self.send()))
        return ticket

    Edge.decide = deciding  # type: ignore[method-assign]


def leak_by_exact_times() -> None:
    """A group is counted exactly one window after its last decision."""
    Decisions._longest_delay = 0  # type: ignore[method-assign,assignment]


LEAKS = {
    "log": leak_into_log,
    "store": leak_into_store,
    "payload": leak_into_payload,
    "early": leak_by_closing_early,
    "exact": leak_by_exact_times,
}

if __name__ == "__main__":
    LEAKS[sys.argv[1]]()
    raise SystemExit(main(sys.argv[2:]))
