"""Does what operators want while a fleet is in trouble: asks a server, and another one where there is no answer, until
it was done. As people do: a request that may have been heard is made again, and that it was done already is well.

Only what was answered is acknowledged. What is about one task or edge is done one after the other.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from faults.fleet import Fleet
from faults.in_force import Action
from faults.operations import Operation
from faults.traffic import Lost, NotReached, ask, view
from outvote.engine.connection import EngineUnreachable
from outvote.engine.nats_log import NatsLog
from outvote.presenters.task_fields import to_json

PATIENCE: Final = 15.0
"""Seconds that an answer may take: a server says after ten that it has none."""
GIVE_UP: Final = 60.0
"""Seconds after which an operator does."""
PAUSE: Final = 0.2
HANG_UP: Final = 0.05
"""Seconds after which one hangs up who does."""


class Operators:
    """All of a run."""

    def __init__(self, fleet: Fleet) -> None:
        self.actions: list[Action] = []
        self.repeated = 0
        """Requests that were made again, though the first may have been heard."""
        self._fleet = fleet

    async def run(self, operations: Iterable[Operation]) -> None:
        """Returns when all was done, or given up."""
        began = time.monotonic()
        targets: dict[str, list[Operation]] = {}
        for each in operations:
            targets.setdefault(each.target, []).append(each)
        await asyncio.gather(*(self._one_after_the_other(each, began) for each in targets.values()))

    async def _one_after_the_other(self, operations: list[Operation], began: float) -> None:
        for each in operations:
            await asyncio.sleep(max(0.0, began + each.at - time.monotonic()))
            action = await (self._discount(each) if each.kind == "discount" else self._change(each))
            self.actions.append(action)

    # ---- over HTTP

    async def _change(self, operation: Operation) -> Action:
        fleet, kind, name = self._fleet, operation.kind, operation.target
        task_id = "" if kind == "create-task" else fleet.task_ids[name]
        may_be_done, hangs_up = False, operation.hangs_up
        async for server in self._servers(operation.server):
            self.repeated += may_be_done
            patience = HANG_UP if hangs_up else PATIENCE
            try:
                status, answer = await ask(fleet.members[server].door, *self._request(operation), patience=patience)
            except NotReached:
                continue
            except Lost:
                may_be_done, hangs_up = True, False
                continue
            if hangs_up:  # whatever it was, it was not heard
                may_be_done, hangs_up = True, False
                continue
            if kind == "create-task":
                created = await self._created(server, name, status, answer, may_be_done=may_be_done)
                if created:
                    fleet.open_task(name, created)
                    return Action(kind, name, created, acknowledged=True)
            elif status in (200, 204) or (kind == "delete-task" and status == 404 and may_be_done):
                if kind == "delete-task":
                    fleet.close_task(name)
                return Action(kind, name, task_id, acknowledged=True)
            may_be_done = may_be_done or status >= 500  # it may be stored or not, as it says
        return Action(kind, name, task_id, acknowledged=False)

    def _request(self, operation: Operation) -> tuple[str, str, dict[str, Any] | None]:
        """By id: a request that comes late must not meet a new task of the same name."""
        fleet = self._fleet
        if operation.kind == "create-task":
            return "POST", "/v1/tasks", to_json(fleet.schedule.planned(operation.target).task(fleet.schedule.edges))
        path = f"/v1/tasks/{fleet.task_ids[operation.target]}"
        if operation.kind == "delete-task":
            return "DELETE", path, None
        return "POST", f"{path}/{operation.kind.removesuffix('-task')}", None

    async def _created(self, server: str, name: str, status: int, answer: Any, *, may_be_done: bool) -> str:
        """The id of the task that this operator has created; else nothing."""
        if status == 201:
            return str(answer["id"])
        if status == 409 and may_be_done:  # the name is taken, and by an earlier try, unless it is of the task before
            _, there = await view(self._fleet.members[server].door, f"/v1/tasks/{name}")
            if there and there["id"] != self._fleet.task_ids.get(name):
                return str(there["id"])
        return ""

    # ---- by the command

    async def _discount(self, operation: Operation) -> Action:
        """As in docs/howto/secure-a-fleet.md: the engines are told, then a server."""
        fleet, edge = self._fleet, operation.target
        async for server in self._servers(operation.server):
            said = await fleet.command(f"revoke-{edge}", ["revoke", edge, "--discount"], server=server)
            if said is not None and json.loads(said)["discounted"] is not None:
                return Action("discount", edge, "", acknowledged=True, end=await self._log_end())
        return Action("discount", edge, "", acknowledged=False)

    async def _log_end(self) -> int | None:
        """How far the log goes now; None if no engine says it soon."""
        fleet = self._fleet
        with suppress(TimeoutError, EngineUnreachable):
            async with (
                asyncio.timeout(PATIENCE),
                await NatsLog.connect(fleet.direct, name="server", patience=PATIENCE, access=fleet.access()) as link,
            ):
                return await link.log_end()
        return None

    async def _servers(self, first: str) -> Any:
        """Whom to ask, again and again, beginning with one."""
        names = [first, *(each.name for each in self._fleet.servers if each.name != first)]
        until = time.monotonic() + GIVE_UP
        while time.monotonic() < until:
            for name in names:
                yield name
                await asyncio.sleep(PAUSE)
