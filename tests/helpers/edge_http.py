"""An edge without a network, and how its HTTP API is asked: over a real socket, or in process."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import msgspec
from prometheus_client.parser import text_string_to_metric_families

from outvote.core.messages import Elimination
from outvote.core.task import Task
from outvote.edge.api import make_app, serve
from outvote.edge.hosted_task import HostedTask
from outvote.edge.site import Edge
from outvote.log.catch_up import Answer, TaskUpdate
from outvote.web.problems import Problem

ARMS = ("green", "grün 🟢", "синий")
MEANS = (0.9, 0.4, 0.1)
DEADLINE = 60.0
REWARD = "/v1/tasks/shop/reward"
DECIDE = "/v1/tasks/shop/decide"
WINDOW = 60.0
CLOSED = 67.0
"""So many seconds after the last decision of a group it is closed: its window, and a tenth of it at most."""


def task(protocol: str = "dme", **options: Any) -> Task:
    epsilon = 0 if protocol == "tally" else 0.95
    chosen = {"arms": ARMS, "players": ["ams"], "epsilon": epsilon, "delta": 0.3, "protocol": protocol, "name": "shop"}
    return Task(**{**chosen, "reward_window": WINDOW, **options})


def host(edge: Edge, described: Task) -> HostedTask:
    """As if the fleet had told of it."""
    task_id = f"{described.name}-1"
    update = TaskUpdate(stopped=False, highest=-1, count=0, record=described.to_json())
    edge.apply_catch_up(Answer(read=1, tasks={task_id: update}))
    return edge.tasks[described.name]


def wait(edge: Edge, seconds: float) -> None:
    """So much time passes at an edge, at once."""
    edge._started += seconds


def eliminate(hosted: HostedTask, *arms: int) -> None:
    hosted.eliminate(hosted.coder.down(hosted.announced, Elimination(arms)))


@asynccontextmanager
async def running(edge: Edge, **options: Any) -> AsyncIterator[int]:
    """The API on a free port."""
    ports: asyncio.Queue[int] = asyncio.Queue()
    serving = asyncio.create_task(serve(edge, "127.0.0.1", 0, bound=ports.put_nowait, **options))
    try:
        yield await ports.get()
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


@asynccontextmanager
async def client_of(edge: Edge) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        running(edge) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE, trust_env=False) as client,
    ):
        yield client


def within_deadline(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, DEADLINE))


async def in_process(app: Any, method: str, path: str, **options: Any) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://edge") as client:
        return await client.request(method, path, **options)


def ask(edge: Edge, method: str, path: str, **options: Any) -> httpx.Response:
    return asyncio.run(in_process(make_app(edge), method, path, **options))


def decided(edge: Edge) -> dict[str, Any]:
    """A decision of the shop, as the API gives it."""
    answer = ask(edge, "POST", DECIDE)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def reward_of(decision: dict[str, Any], reward: float = 1) -> dict[str, Any]:
    """What is told of a decision."""
    return {"ticket": decision["ticket"], "reward": reward}


def check_problem(answer: httpx.Response, status: int, kind: str, says: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = msgspec.json.decode(answer.content, type=Problem)
    assert problem.status == status
    assert problem.type == (f"urn:outvote:problem:{kind}" if kind else "about:blank")
    assert problem.title
    assert re.search(says, problem.detail), problem.detail


def read_metrics(text: str) -> dict[str, float]:
    """What an edge tells of itself in Prometheus' text format, by name and labels; what any process tells is left out.

    The library reads it as strictly as Prometheus does, and a test of the whole page asks promtool.
    """
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for name, labels, value, *_ in family.samples:
            if name.startswith("outvote_edge_"):
                told = ",".join(f'{label}="{labels[label]}"' for label in sorted(labels))
                key = f"{name}{{{told}}}" if told else name
                assert key not in found
                found[key] = value
    return found
