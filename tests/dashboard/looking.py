"""The dashboard in this process, on a real engine, and a fleet's tasks in every state to look at."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from dashboard.html import Page
from dashboard.stories import CLOSE, GOOD, SOON, TALLY, Story, held
from helpers.operating import operated
from helpers.processes import comes
from outvote.dashboard.app import Dashboard
from outvote.engine.process import Engine
from outvote.presenters.task_fields import to_json
from outvote.server.admin.api import Admin, make_app
from outvote.server.sync_server import SyncServer

BROWSER = {"Accept": "text/html,application/xhtml+xml"}
HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "a'b&amp;c"]


class Looking:
    """A server that somebody looks at: `client` is a browser that runs no script."""

    def __init__(self, server: SyncServer, client: httpx.AsyncClient) -> None:
        self.server = server
        self.client = client

    async def page(self, path: str, status: int = 200) -> Page:
        """A page; a redirection is followed."""
        return shown(await self.client.get(path, follow_redirects=True), status)

    async def send(self, path: str, **form: str) -> httpx.Response:
        """A form as a browser sends it."""
        return await self.client.post(path, data=form)

    async def tell(self, told: Story) -> str:
        """The id of a task to which the same happens as in a story; the server itself eliminates."""
        made = await self.client.post("/v1/tasks", json=to_json(told.task))
        assert made.status_code == 201, made.text
        task_id = str(made.json()["id"])
        for subject, payload in told.records:
            if subject.startswith("outvote.up."):
                await self.server.log.append(subject.replace(told.task_id, task_id), payload)
        found = self.server.state.tasks[task_id]
        await comes(lambda: found.ledger.up_messages == told.messages, "all messages are read")
        await comes(lambda: found.announced == told.found.announced, "all eliminations are read")
        if told.found.stopped:
            assert (await self.client.post(f"/v1/tasks/{task_id}/stop")).status_code == 200
        return task_id


def shown(response: httpx.Response, status: int = 200) -> Page:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    return Page(response.text)


@asynccontextmanager
async def looking(engine: Engine, *, clock: Callable[[], float] = time.time, **app: Any) -> AsyncIterator[Looking]:
    made: list[Dashboard] = []

    def pages(admin: Admin) -> Dashboard:
        made.append(Dashboard(admin))
        return made[0]

    async with operated(engine, clock=clock) as (server, _):
        transport = httpx.ASGITransport(make_app(server, pages=pages, **app))
        async with httpx.AsyncClient(transport=transport, base_url="http://server", headers=BROWSER) as client:
            try:
                yield Looking(server, client)
            finally:
                await made[0].planner.close()


def gallery() -> dict[str, Story]:
    """A task in every state."""
    votes: dict[str, Any] = {**SOON, "players": TALLY["players"]}
    one: Callable[[Story], bool] = lambda story: story.messages > 0  # noqa: E731
    return {
        "new": Story(name="new"),
        "running": Story(name="running").play(CLOSE, lambda story: story.messages >= 60),
        "finished": Story(name="finished").finish(),
        "private": Story(name="private", privacy_budget=1.0).play(CLOSE, lambda story: story.messages >= 3),
        "held": held(name="held"),
        "stopped": Story(name="stopped", fallback="bold").stop(),
        "dme": Story(name="dme", **votes).play(GOOD, one, "ams"),
        "edme": Story(name="edme", **{**votes, "protocol": "edme", "instances": [1, 3]}).play(GOOD, one, "ams"),
        "won": Story(name="won", **votes).finish(),
        "hostile": Story(name="hostile", arms=HOSTILE).play(CLOSE, lambda story: story.messages >= 12),
    }
