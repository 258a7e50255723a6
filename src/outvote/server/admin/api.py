"""The server's HTTP API for operators: create, show, stop and delete tasks.

It has no state: every answer is read from the log state, and every change is a record in the log. `views` defines the
answers, `requests` the request bodies, and `openapi` the document that describes both.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from typing import Any, Final, get_args

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from outvote.access.tokens import TokenBook
from outvote.core.errors import InvalidInput, InvalidTask, one_of
from outvote.core.task import Task
from outvote.log.log_state import TaskState
from outvote.log.records import check_name
from outvote.observability import metrics_page
from outvote.presenters.formats import listed
from outvote.server import metrics as server_metrics
from outvote.server.admin.fleet import site_list
from outvote.server.admin.guard import AdminGuard, is_known, is_still_known
from outvote.server.admin.http import Handler, InPieces, Pages, answer, handlers, read_body, refuser, route
from outvote.server.admin.openapi import openapi
from outvote.server.admin.requests import Refused, read_expectation, read_task
from outvote.server.admin.views import (
    Discounted,
    Health,
    Status,
    TaskDescription,
    TaskList,
    UnreadableTask,
    description,
    summary,
    to_json,
    with_reports,
)
from outvote.server.sync_server import NameTaken, SyncServer
from outvote.web.limits import Traffic, Watch
from outvote.web.refusals import Refusals

PATIENCE = 10.0
"""Seconds until a change must be stored."""
CHANGES: Final[Mapping[str, Callable[[SyncServer, str], Awaitable[None]]]] = {
    "stop": lambda server, task: server.stop_task(task),
    "kill": lambda server, task: server.switch(task, killed=True),
    "revive": lambda server, task: server.switch(task, killed=False),
}


@functools.cache
def _document() -> bytes:
    """Encode the document once: building it takes longer than most answers."""
    return msgspec.json.encode(openapi())


class Admin:
    """The endpoints for operators."""

    def __init__(self, server: SyncServer, *, tokens: TokenBook | None = None) -> None:
        self.server = server
        self.tokens = tokens
        self.refusals = Refusals()
        self.traffic = Traffic()
        collector = server_metrics.ServerCollector(server, self.refusals, self.traffic)
        self.registry = metrics_page.new_registry(collector)
        self._described: dict[str, tuple[int, TaskDescription]] = {}
        """Cached descriptions by task id, each with the sequence of the task's last record."""

    @property
    def routes(self) -> dict[str, dict[str, Handler]]:
        """All paths with their methods. A test compares the OpenAPI document with them."""
        return {
            "/v1/tasks": {"GET": self.list, "POST": self.create},
            "/v1/tasks/{task}": {"GET": self.show, "DELETE": self.delete},
            **{f"/v1/tasks/{{task}}/{verb}": {"POST": functools.partial(self.change, verb)} for verb in CHANGES},
            "/v1/tasks/{task}/expectation": {"PUT": self.expect},
            "/v1/sites": {"GET": self.sites},
            "/v1/sites/{site}/discount": {"POST": self.discount},
            "/v1/events": {"GET": self.events},
            "/healthz": {"GET": self.health},
            "/metrics": {"GET": self.metrics},
            "/openapi.json": {"GET": self.describe},
        }

    # ---- changes

    async def create(self, request: Request) -> Response:
        """Create a task. The Content-Type is ignored: the JSON parser detects anything else."""
        task = read_task(await read_body(request))
        created = await self.create_task(task)
        return answer(summary(created), status=201, headers={"Location": f"/v1/tasks/{created.task_id}"})

    async def change(self, verb: str, request: Request) -> Response:
        state = self.find(request)
        await self.change_task(verb, state.task_id)
        return answer(summary(state))

    async def delete(self, request: Request) -> Response:
        asked: str = request.path_params["task"]
        task_id = asked if asked in self.server.state.unreadable else self.find(request).task_id
        await self.stored(self.server.delete_task(task_id))
        return Response(status_code=204)

    async def expect(self, request: Request) -> Response:
        state = self.find(request)
        expectation = read_expectation(await read_body(request))
        await self.stored(self.server.expect(state.task_id, expectation))
        return answer(expectation)

    async def discount(self, request: Request) -> Response:
        """Discount a site, usually one whose credential was revoked. Its later messages count again."""
        try:
            site = check_name("a site's name", request.path_params["site"])
        except InvalidInput as error:
            raise Refused(422, "invalid-site", error) from None
        tasks = tuple(await self.stored(self.server.discount(site)))
        # Checked afterwards: a server that lagged behind has caught up now.
        if site not in self.server.monitor.edge_names():
            raise Refused(404, "unknown-site", f"unknown site: got {site!r}; `outvote task sites` lists them all")
        return answer(Discounted(site, tasks))

    async def change_task(self, verb: str, task_id: str) -> None:
        """Stop, kill or revive a task; return once that is in the log."""
        await self.stored(CHANGES[verb](self.server, task_id))

    async def create_task(self, task: Task) -> TaskState:
        """Create a task and return its state, once it is in the log."""
        return self.server.state.tasks[await self.stored(self.server.create(task))]

    # ---- queries

    async def list(self, request: Request) -> Response:
        """List all tasks, or those with a name or a status. An unknown filter is refused: ignored, it would mislead."""
        asked = request.query_params
        for name in asked:
            if name not in ("name", "status"):
                raise Refused(422, "invalid-query", InvalidInput("is no filter: use name or status", field=name))
        status = asked.get("status")
        if status is not None and status not in get_args(Status):
            problem = f"must be one of {one_of(get_args(Status))}, got {status[:80]!r}"
            raise Refused(422, "invalid-query", InvalidInput(problem, field="status", code="choice"))
        every = self.tasks()
        wanted = (task for task in every.tasks if status in (None, task.status))
        tasks = tuple(task for task in wanted if asked.get("name", task.name) == task.name)
        return answer(TaskList(tasks, () if asked else every.unreadable))

    async def show(self, request: Request) -> Response:
        return answer(to_json(self.describe_task(self.find(request))))

    async def sites(self, request: Request) -> Response:
        return answer(site_list(self.server))

    async def events(self, request: Request) -> Response:
        """Stream changes while the client is connected: `data` holds ids of tasks, and `fleet`."""
        options: dict[str, Any] = {"media_type": "text/event-stream", "headers": {"Cache-Control": "no-store"}}
        if request.method == "HEAD":  # a client that wants no body would wait for a stream that never ends
            return Response(**options)
        changes = self.server.monitor.changes.watch()

        async def lines() -> AsyncIterator[bytes]:
            async for topics in changes:
                if not is_still_known(request):
                    return
                yield b"data: " + msgspec.json.encode(sorted(topics)) + b"\n\n"

        return StreamingResponse(lines(), **options)

    async def health(self, request: Request) -> Response:
        """Without a required token, only the status is shown."""
        server, well = self.server, self.server.ready
        health = Health("ok" if well else "unavailable")
        if is_known(request):
            health = Health(health.status, server.log.connected, server.has_read, well, server.state.read)
        return answer(health, status=200 if well else 503)

    async def metrics(self, request: Request) -> Response:
        text, media_type = metrics_page.render(self.registry, ",".join(request.headers.getlist("accept")))
        return Response(text, headers={"Content-Type": media_type})

    async def describe(self, request: Request) -> Response:
        return Response(_document(), media_type="application/json")

    def tasks(self) -> TaskList:
        log_state = self.server.state
        return TaskList(
            tuple(summary(state) for state in log_state.tasks.values()),
            tuple(UnreadableTask(task_id, why) for task_id, why in log_state.unreadable.items()),
        )

    def describe_task(self, state: TaskState) -> TaskDescription:
        """Describe a task. What the log says is cached until its next record: computing intervals takes long."""
        known = self._described.get(state.task_id)
        if known is None or known[0] != state.touched:
            known = state.touched, description(state)
            self._described[state.task_id] = known
            for gone in [task_id for task_id in self._described if task_id not in self.server.state.tasks]:
                del self._described[gone]
        return with_reports(known[1], self.server.monitor.reports_of(state.task_id))

    # ---- internals

    def find(self, request: Request) -> TaskState:
        """Find the requested task by id, else by name."""
        asked: str = request.path_params["task"]
        tasks = self.server.state.tasks
        if asked in tasks:
            return tasks[asked]
        named = self.server.state.named(asked)
        if named is None:
            names = sorted(state.task.name for state in tasks.values()) or ["none"]
            raise Refused(404, "unknown-task", f"unknown task: got {asked!r}, there are {listed(names, most=10)}")
        return named

    async def stored(self, change: Awaitable[Any]) -> Any:
        """Wait until a change was read back from the log, and return its result."""
        try:
            return await asyncio.wait_for(change, PATIENCE)
        except TimeoutError:
            raise Refused(
                503,
                "engine-unreachable",
                f"not confirmed within {PATIENCE:g} s: it may be stored or not. Look at the tasks before you try again",
            ) from None
        except NameTaken as error:
            raise Refused(409, "name-taken", error) from None
        except InvalidTask as error:  # another change came first
            raise Refused(409, "tasks-changed", error) from None


def make_app(
    server: SyncServer,
    *,
    pages: Callable[[Admin], Pages] | None = None,
    tokens: TokenBook | None = None,
    hosts: Collection[str] | None = None,
) -> Starlette:
    """Build the application. `tokens` enables authentication; `hosts` limits the accepted Host headers. `state.watch`
    is for `run_app`: it counts unfinished requests."""
    admin = Admin(server, tokens=tokens)
    shown = None if pages is None else pages(admin)

    app = Starlette(
        routes=[
            *(route(path, by_method) for path, by_method in admin.routes.items()),
            *([] if shown is None else shown.routes),
        ],
        exception_handlers=handlers(shown),
    )
    app.router.redirect_slashes = False  # an unknown path is 404, never a redirect
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
