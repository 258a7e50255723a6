"""One of the servers that are compared over HTTP, as a program: VARIANT FOLDER; tells its port.

All run on uvicorn as an edge does in production, with uvloop and httptools. Those with an edge also save its state on
the edge's timer, as in production; it is not connected to an engine, which no request waits for.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop
from starlette.types import Receive, Scope, Send

from benchmarks.network.processes import say_json
from outvote.core.decisions import Ticket
from outvote.core.task import Task
from outvote.edge.api import make_app
from outvote.edge.site import TICK, Edge
from outvote.edge.store import EdgeStore
from outvote.log.records import task_record
from outvote.web.exposure import LOCAL
from outvote.web.listener import listen, run_app

NAME = "shop"
ARMS = tuple(f"variant-{number}" for number in range(10))
FLOOR = 127
"""Events of a tally: what a busy site comes to by itself."""
WINDOW = 60.0
"""For rewards, in seconds."""
DECISION = b'{"variant":"variant-3","ticket":"mPq2_x7B.1234.3.63.1795000000000"}'
"""As long as what an edge answers."""


async def bare(scope: Scope, receive: Receive, send: Send) -> None:
    """The least that any handler on this server can do: the same bytes, and nothing done for them."""
    if scope["path"].endswith("reward"):
        await receive()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        return
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(DECISION))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": DECISION})


def on_starlette(edge: Edge) -> Any:
    """The same edge behind Starlette's routes."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    async def decide(request: Request) -> Response:
        ticket = edge.decide(edge.find(request.path_params["task"]))
        return JSONResponse({"variant": ARMS[ticket.arm], "ticket": str(ticket)})

    async def reward(request: Request) -> Response:
        body = await request.json()
        edge.reward(edge.find(request.path_params["task"]), Ticket.parse(body["ticket"]), body["reward"])
        return Response(status_code=204)

    return Starlette(
        routes=[
            Route("/v1/tasks/{task}/decide", decide, methods=["POST"]),
            Route("/v1/tasks/{task}/reward", reward, methods=["POST"]),
        ]
    )


def on_fastapi(edge: Edge) -> Any:
    """The same edge behind FastAPI's endpoints, with models as its documentation shows them."""
    from benchmarks.network import fastapi_app

    return fastapi_app.make_app(edge, ARMS)


VARIANTS: dict[str, Callable[[Edge], Any]] = {
    "ours": lambda edge: make_app(edge, hosts=LOCAL),  # as the command runs it
    "bare": lambda edge: bare,
    "starlette": on_starlette,
    "fastapi": on_fastapi,
}


async def serve(variant: str, folder: Path) -> None:
    task = Task(
        arms=ARMS, players=64, epsilon=0, delta=0.05, protocol="tally", floor=FLOOR, reward_window=WINDOW, name=NAME
    )
    with EdgeStore(folder / f"{variant}.db") as store:
        edge = Edge("bench", store, clock=time.monotonic)
        edge.on_record(f"outvote.live.{NAME}-00000000.task", task_record(task))
        ticking = asyncio.create_task(tick_now_and_then(edge))
        listener = listen("127.0.0.1", 0)
        say_json({"port": listener.getsockname()[1]})
        try:
            await run_app(VARIANTS[variant](edge), listener)
        finally:
            ticking.cancel()


async def tick_now_and_then(edge: Edge) -> None:
    while True:
        await asyncio.sleep(TICK * (0.5 + random.random()))
        edge.tick()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(serve(sys.argv[1], Path(sys.argv[2])))
