"""The server's HTTP API for operators: tasks are created, looked at, stopped and deleted here.

It keeps nothing: every answer is read from the fold, every change is a record in the log. What answers look like is in
`admin_views`, what is asked for in `admin_request`, and the document that tells programs of both in `admin_openapi`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeAlias

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from outvote.core.errors import InvalidTask
from outvote.core.task import Task
from outvote.network import admin_metrics
from outvote.network.admin_fleet import edge_list
from outvote.network.admin_openapi import openapi
from outvote.network.admin_request import LARGEST_BODY, Refused, read_expectation, read_task
from outvote.network.admin_views import (
    BitBudget,
    Created,
    Health,
    Stopped,
    TaskDescription,
    TaskList,
    bit_budget,
    description,
    most_bits,
    status,
    summary,
)
from outvote.network.fold import FoldedTask
from outvote.network.operated import OperatedServer
from outvote.network.problems import Problem
from outvote.network.server import NameTaken

PATIENCE = 10.0
"""Seconds in which the engine must have stored a change."""

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


class Admin:
    """What operators can do."""

    def __init__(self, server: OperatedServer, *, bit_budget: int | None = None) -> None:
        self.server = server
        self.bit_budget = bit_budget
        self._creating = asyncio.Lock()
        """One creation at a time: each looks at the names and the bits that are taken."""

    @property
    def routes(self) -> dict[str, dict[str, Handler]]:
        """All paths, and per path its methods. A test holds the document against it."""
        return {
            "/v1/tasks": {"GET": self.list, "POST": self.create},
            "/v1/tasks/{task}": {"GET": self.show, "DELETE": self.delete},
            "/v1/tasks/{task}/stop": {"POST": self.stop},
            "/v1/tasks/{task}/expectation": {"PUT": self.expect},
            "/v1/edges": {"GET": self.edges},
            "/v1/events": {"GET": self.events},
            "/healthz": {"GET": self.health},
            "/metrics": {"GET": self.metrics},
            "/openapi.json": {"GET": self.describe},
        }

    # ---- changes

    async def create(self, request: Request) -> Response:
        """The Content-Type is not looked at: what is no JSON is found out anyway."""
        task = read_task(await _body(request))
        async with self._creating:
            try:
                self.server.check_free(task)
                self._check_budget(task)
                task_id = await self._stored(self.server.create(task))
            except NameTaken as error:
                raise Refused(409, "name-taken", str(error)) from None
        return answer(Created(task_id, task.name), status=201, headers={"Location": f"/v1/tasks/{task_id}"})

    async def stop(self, request: Request) -> Response:
        found = self._find(request)
        await self._stored(self.server.stop_task(found.task_id))
        return answer(Stopped(found.task_id, found.task.name, status(found)))

    async def delete(self, request: Request) -> Response:
        found = self._find(request)
        await self._stored(self.server.delete_task(found.task_id))
        return Response(status_code=204)

    async def expect(self, request: Request) -> Response:
        found = self._find(request)
        expectation = read_expectation(await _body(request))
        await self._stored(self.server.expect(found.task_id, expectation))
        return answer(expectation)

    # ---- what there is

    async def list(self, request: Request) -> Response:
        return answer(self.tasks())

    async def show(self, request: Request) -> Response:
        return answer(self.describe_task(self._find(request)))

    async def edges(self, request: Request) -> Response:
        return answer(edge_list(self.server))

    async def events(self, request: Request) -> Response:
        """What has changed, for as long as somebody listens: `data` names tasks by their ids, and the fleet."""

        changes = self.server.changes.watch()

        async def lines() -> AsyncIterator[bytes]:
            async for topics in changes:
                yield b"data: " + msgspec.json.encode(sorted(topics)) + b"\n\n"

        return StreamingResponse(lines(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    async def health(self, request: Request) -> Response:
        server, well = self.server, self.server.ready
        told = Health("ok" if well else "unavailable", server.link.connected, server.has_read, well, server.fold.read)
        return answer(told, status=200 if well else 503)

    async def metrics(self, request: Request) -> Response:
        text = admin_metrics.prometheus(self.server.fold, self.bits(), connected=self.server.link.connected)
        return Response(text, media_type=admin_metrics.CONTENT_TYPE)

    async def describe(self, request: Request) -> Response:
        return answer(openapi())

    def tasks(self) -> TaskList:
        dated = self.server.dated
        return TaskList(tuple(summary(found, dated.histories[key]) for key, found in dated.tasks.items()), self.bits())

    def describe_task(self, found: FoldedTask) -> TaskDescription:
        return description(found, self.server.dated.histories[found.task_id])

    def bits(self) -> BitBudget:
        return bit_budget(self.server.fold, self.bit_budget)

    # ---- how it works

    def _find(self, request: Request) -> FoldedTask:
        """By id, else by name."""
        asked: str = request.path_params["task"]
        tasks = self.server.fold.tasks
        if asked in tasks:
            return tasks[asked]
        named = self.server.fold.named(asked)
        if named is None:
            there = sorted(found.task.name for found in tasks.values())
            raise Refused(404, "unknown-task", f"unknown task: got {asked!r}, there are {there or 'none'}")
        return named

    def _check_budget(self, task: Task) -> None:
        if self.bit_budget is None:
            return
        kind = "bit-budget"
        if task.protocol == "tally":
            raise Refused(
                409,
                kind,
                f"the bits of 'tally' have no bound before it ends, and this server has a budget of "
                f"{self.bit_budget:,} bits: use 'dme' or 'edme', or a server without --bit-budget",
            )
        taken, wanted = self.bits().may_still_send, most_bits(task)
        if taken + wanted > self.bit_budget:
            raise Refused(
                409,
                kind,
                f"the task may send {wanted:,} bits and those that run {taken:,} more, together over the budget of "
                f"{self.bit_budget:,}: stop a task, ask for fewer arms, players or instances, or raise --bit-budget",
            )

    async def _stored(self, change: Awaitable[Any]) -> Any:
        """A change, once it was read back from the log."""
        try:
            return await asyncio.wait_for(change, PATIENCE)
        except TimeoutError:
            raise Refused(
                503,
                "engine-unreachable",
                f"not confirmed within {PATIENCE:g} s: it may be stored or not. Look at the tasks before you try again",
            ) from None
        except NameTaken:
            raise
        except InvalidTask as error:  # somebody else was faster
            raise Refused(409, "tasks-changed", str(error)) from None


def make_app(server: OperatedServer, *, bit_budget: int | None = None) -> Starlette:
    """The application; `bit_budget` is the most bits that all running tasks together may still send."""
    admin = Admin(server, bit_budget=bit_budget)
    app = Starlette(
        routes=[_route(path, by_method) for path, by_method in admin.routes.items()],
        exception_handlers={Refused: _on_refused, HTTPException: _on_http, Exception: _on_error},
    )
    app.router.redirect_slashes = False  # a path is there or is not
    return app


# ---- HTTP


def _route(path: str, by_method: Mapping[str, Handler]) -> Route:
    """One route for all methods of a path: with several, `Allow` would name those of the first only."""

    async def dispatch(request: Request) -> Response:
        return await by_method["GET" if request.method == "HEAD" else request.method](request)

    return Route(path, dispatch, methods=list(by_method))


def answer(body: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(body), status_code=status, media_type="application/json", headers=headers)


async def _body(request: Request) -> bytes:
    """At most so many bytes are read."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST_BODY:
                raise Refused(413, "body-too-large", f"a request may have {LARGEST_BODY:,} bytes, this has more")
    except ClientDisconnect:
        raise Refused(400, "not-whole", "the request ended before its body") from None
    return bytes(body)


def _refuse(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    body = msgspec.json.encode(problem)
    return Response(body, status_code=problem.status, media_type="application/problem+json", headers=headers)


async def _on_refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _refuse(error.problem)


async def _on_http(request: Request, error: Exception) -> Response:
    """What Starlette itself refuses: unknown paths and methods."""
    assert isinstance(error, HTTPException)
    allowed = ", ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))  # it comes from a set
    there = f"allowed is {allowed}" if allowed else "see /openapi.json for what there is"
    detail = f"{request.method} {request.url.path!r} is not possible: {there}"
    problem = Problem("about:blank", error.detail, error.status_code, detail)
    return _refuse(problem, {"Allow": allowed} if allowed else None)


async def _on_error(request: Request, error: Exception) -> Response:
    """The rest; its trace goes to standard error."""
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    return _refuse(
        Problem("about:blank", status.phrase, status, "the server failed at this request: its log says where")
    )
