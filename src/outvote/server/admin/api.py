"""The server's HTTP API for operators: tasks are created, looked at, stopped and deleted here.

It keeps nothing: every answer is read from the fold, every change is a record in the log. What answers look like is in
`admin_views`, what is asked for in `admin_request`, and the document that tells programs of both in `admin_openapi`.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from outvote.access.tokens import TokenBook
from outvote.core.errors import InvalidTask
from outvote.core.task import Task
from outvote.log.log_state import TaskState
from outvote.log.records import check_name
from outvote.observability import metrics_page
from outvote.server import metrics as server_metrics
from outvote.server.admin.fleet import edge_list
from outvote.server.admin.guard import AdminGuard, is_known, is_still_known
from outvote.server.admin.http import Handler, InPieces, Pages, answer, handlers, read_body, refuser, route
from outvote.server.admin.openapi import openapi
from outvote.server.admin.requests import Refused, read_expectation, read_task
from outvote.server.admin.views import (
    Discounted,
    Health,
    TaskDescription,
    TaskList,
    UnreadableTask,
    description,
    summary,
)
from outvote.server.sync_server import NameTaken, SyncServer
from outvote.web.limits import Traffic, Watch
from outvote.web.refusals import Refusals

PATIENCE = 10.0
"""Seconds in which the engine must have stored a change."""


@functools.cache
def _document() -> bytes:
    """Encoded once: to build it takes longer than most answers."""
    return msgspec.json.encode(openapi())


class Admin:
    """What operators can do."""

    def __init__(self, server: SyncServer, *, tokens: TokenBook | None = None) -> None:
        self.server = server
        self.tokens = tokens
        self.refusals = Refusals()
        self.traffic = Traffic()
        collector = server_metrics.ServerCollector(server, self.refusals, self.traffic)
        self.registry = metrics_page.new_registry(collector)
        self._described: dict[str, tuple[int, TaskDescription]] = {}
        """By the id of a task: the last record of it that was read, and what was said then."""

    @property
    def routes(self) -> dict[str, dict[str, Handler]]:
        """All paths, and per path its methods. A test holds the document against it."""
        return {
            "/v1/tasks": {"GET": self.list, "POST": self.create},
            "/v1/tasks/{task}": {"GET": self.show, "DELETE": self.delete},
            "/v1/tasks/{task}/stop": {"POST": self.stop},
            "/v1/tasks/{task}/kill": {"POST": functools.partial(self.switch, True)},
            "/v1/tasks/{task}/revive": {"POST": functools.partial(self.switch, False)},
            "/v1/tasks/{task}/expectation": {"PUT": self.expect},
            "/v1/edges": {"GET": self.edges},
            "/v1/edges/{edge}/discount": {"POST": self.discount},
            "/v1/events": {"GET": self.events},
            "/healthz": {"GET": self.health},
            "/metrics": {"GET": self.metrics},
            "/openapi.json": {"GET": self.describe},
        }

    # ---- changes

    async def create(self, request: Request) -> Response:
        """The Content-Type is not looked at: what is no JSON is found out anyway."""
        task = read_task(await read_body(request))
        created = await self.create_task(task)
        return answer(summary(created), status=201, headers={"Location": f"/v1/tasks/{created.task_id}"})

    async def stop(self, request: Request) -> Response:
        found = self.find(request)
        await self.stored(self.server.stop_task(found.task_id))
        return answer(summary(found))

    async def switch(self, killed: bool, request: Request) -> Response:
        found = self.find(request)
        await self.stored(self.server.switch(found.task_id, killed=killed))
        return answer(summary(found))

    async def delete(self, request: Request) -> Response:
        asked: str = request.path_params["task"]
        task_id = asked if asked in self.server.state.unreadable else self.find(request).task_id
        await self.stored(self.server.delete_task(task_id))
        return Response(status_code=204)

    async def expect(self, request: Request) -> Response:
        found = self.find(request)
        expectation = read_expectation(await read_body(request))
        await self.stored(self.server.expect(found.task_id, expectation))
        return answer(expectation)

    async def discount(self, request: Request) -> Response:
        """One whose credential was revoked, as a rule; what it sends from now on counts."""
        try:
            edge = check_name("an edge's name", request.path_params["edge"])
        except InvalidTask as error:
            raise Refused(422, "invalid-edge", str(error)) from None
        tasks = tuple(await self.stored(self.server.discount(edge)))
        # Asked afterwards: a server that lagged behind has caught up now.
        if edge not in self.server.monitor.edge_names():
            raise Refused(404, "unknown-edge", f"unknown edge: got {edge!r}; `outvote task edges` lists them all")
        return answer(Discounted(edge, tasks))

    async def create_task(self, task: Task) -> TaskState:
        """The new task, once it is in the log."""
        return self.server.state.tasks[await self.stored(self.server.create(task))]

    # ---- what there is

    async def list(self, request: Request) -> Response:
        return answer(self.tasks())

    async def show(self, request: Request) -> Response:
        return answer(self.describe_task(self.find(request)))

    async def edges(self, request: Request) -> Response:
        return answer(edge_list(self.server))

    async def events(self, request: Request) -> Response:
        """What has changed, for as long as somebody listens: `data` names tasks by their ids, and the fleet."""
        told: dict[str, Any] = {"media_type": "text/event-stream", "headers": {"Cache-Control": "no-store"}}
        if request.method == "HEAD":  # whoever asks for no body would wait for the end of one that has none
            return Response(**told)
        changes = self.server.monitor.changes.watch()

        async def lines() -> AsyncIterator[bytes]:
            async for topics in changes:
                if not is_still_known(request):
                    return
                yield b"data: " + msgspec.json.encode(sorted(topics)) + b"\n\n"

        return StreamingResponse(lines(), **told)

    async def health(self, request: Request) -> Response:
        """Who has no token where one is needed is told no more than a status."""
        server, well = self.server, self.server.ready
        told = Health("ok" if well else "unavailable")
        if is_known(request):
            told = Health(told.status, server.log.connected, server.has_read, well, server.state.read)
        return answer(told, status=200 if well else 503)

    async def metrics(self, request: Request) -> Response:
        text, media_type = metrics_page.render(self.registry, ",".join(request.headers.getlist("accept")))
        return Response(text, headers={"Content-Type": media_type})

    async def describe(self, request: Request) -> Response:
        return Response(_document(), media_type="application/json")

    def tasks(self) -> TaskList:
        fold = self.server.state
        return TaskList(
            tuple(summary(found) for found in fold.tasks.values()),
            tuple(UnreadableTask(task_id, why) for task_id, why in fold.unreadable.items()),
        )

    def describe_task(self, found: TaskState) -> TaskDescription:
        """Intervals take a while: they are computed again only when something has changed."""
        known = self._described.get(found.task_id)
        if known is None or known[0] != found.touched:
            known = found.touched, description(found)
            self._described[found.task_id] = known
            for gone in [each for each in self._described if each not in self.server.state.tasks]:
                del self._described[gone]
        return known[1]

    # ---- how it works

    def find(self, request: Request) -> TaskState:
        """By id, else by name."""
        asked: str = request.path_params["task"]
        tasks = self.server.state.tasks
        if asked in tasks:
            return tasks[asked]
        named = self.server.state.named(asked)
        if named is None:
            there = sorted(found.task.name for found in tasks.values())
            raise Refused(404, "unknown-task", f"unknown task: got {asked!r}, there are {there or 'none'}")
        return named

    async def stored(self, change: Awaitable[Any]) -> Any:
        """A change, once it was read back from the log."""
        try:
            return await asyncio.wait_for(change, PATIENCE)
        except TimeoutError:
            raise Refused(
                503,
                "engine-unreachable",
                f"not confirmed within {PATIENCE:g} s: it may be stored or not. Look at the tasks before you try again",
            ) from None
        except NameTaken as error:
            raise Refused(409, "name-taken", str(error)) from None
        except InvalidTask as error:  # somebody else was faster
            raise Refused(409, "tasks-changed", str(error)) from None


def make_app(
    server: SyncServer,
    *,
    pages: Callable[[Admin], Pages] | None = None,
    tokens: TokenBook | None = None,
    hosts: Collection[str] | None = None,
) -> Starlette:
    """The application. With `tokens` one is needed, with `hosts` the server must be called one of them. `state.watch`
    is for `run_app`: it counts what clients do not finish."""
    admin = Admin(server, tokens=tokens)
    shown = None if pages is None else pages(admin)

    app = Starlette(
        routes=[
            *(route(path, by_method) for path, by_method in admin.routes.items()),
            *([] if shown is None else shown.routes),
        ],
        exception_handlers=handlers(shown),
    )
    app.router.redirect_slashes = False  # a path is there or is not
    app.state.pages = shown
    app.state.watch = Watch(admin.traffic)
    app.add_middleware(
        AdminGuard,
        refuse=refuser(shown),
        refusals=admin.refusals,
        tokens=tokens,
        hosts=hosts,
        has_login=shown is not None,
    )
    app.add_middleware(
        server_metrics.CountRequests,
        registry=admin.registry,
        routes=server_metrics.patterns(app.routes),
    )
    app.add_middleware(InPieces)
    return app
