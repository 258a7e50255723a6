"""A fleet of real processes and its visitors, for what is measured of rewards. It runs with the present version and
with an earlier one: `PYTHONPATH` says which.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outvote.demo.fleet import Fleet
from outvote.demo.users import Browser

SETTLED = 30.0
"""Seconds in which everything that waits is counted."""


@dataclass
class Visit:
    """One decision, and what came of it."""

    variant: str
    ticket: str
    success: bool
    taken: bool = False
    """The edge has acknowledged the reward."""


@dataclass
class World:
    """A server, its edges, and one task."""

    fleet: Fleet
    means: dict[str, float]
    window: float | None
    rng: random.Random
    visits: dict[str, list[Visit]] = field(default_factory=dict)
    answers: dict[int, int] = field(default_factory=dict)
    """How often rewards got each status."""

    async def create(self, *, protocol: str = "tally") -> None:
        task: dict[str, Any] = {
            "name": "shop",
            "protocol": protocol,
            "variants": list(self.means),
            "sites": list(self.fleet.edges),
            "delta": 1e-6,  # so that all variants go on
        }
        if self.window is not None:
            task["reward_window"] = self.window
        server = Browser(self.fleet.server.url("server"))
        status, body = await server.send("POST", "/v1/tasks", task)
        assert status == 201, body
        server.close()
        for edge in self.fleet.edges.values():
            await self._until_hosted(Browser(edge.url("edge")))

    async def _until_hosted(self, browser: Browser) -> None:
        deadline = time.monotonic() + SETTLED
        while (await browser.send("GET", "/v1/tasks/shop"))[0] != 200:
            assert time.monotonic() < deadline, "the edge has not heard of the task"
            await asyncio.sleep(0.05)
        browser.close()

    async def decide(self, browser: Browser, site: str) -> Visit:
        status, body = await browser.send("POST", "/ofrep/v1/evaluate/flags/shop", {"context": {}})
        if status != 200:
            raise ConnectionError(body)
        found = json.loads(body)
        variant = found["variant"]
        visit = Visit(variant, found["metadata"]["ticket"], self.rng.random() < self.means[variant])
        self.visits.setdefault(site, []).append(visit)
        return visit

    async def reward(self, browser: Browser, visit: Visit) -> None:
        body = {"variant": visit.variant, "ticket": visit.ticket, "reward": int(visit.success)}
        status, _ = await browser.send("POST", "/v1/tasks/shop/reward", body)
        self.answers[status] = self.answers.get(status, 0) + 1
        visit.taken = visit.taken or status == 204

    async def reported(self) -> dict[str, tuple[int, int, list[float]]]:
        """Successes, decisions and the interval of the mean of each variant, once nothing more comes."""
        server = Browser(self.fleet.server.url("server"))
        edges = [Browser(edge.url("edge")) for edge in self.fleet.edges.values()]
        deadline, last, since = time.monotonic() + SETTLED, None, time.monotonic()
        while True:
            shown = json.loads(await server.get("/v1/tasks/shop"))
            waiting = [json.loads(await edge.get("/v1/tasks/shop"))["messages_waiting"] for edge in edges]
            now = {each["variant"]: (each["successes"], each["trials"], each["interval"]) for each in shown["variants"]}
            if now != last or any(waiting):
                last, since = now, time.monotonic()
            if time.monotonic() - since > 3 + 1.2 * (self.window or 0) or time.monotonic() > deadline:
                return now
            await asyncio.sleep(0.2)


async def with_world(
    sites: int,
    means: dict[str, float],
    window: float | None,
    seed: int,
    work: Callable[[World], Awaitable[Any]],
) -> Any:
    """Run `work` in a world of its own."""
    with tempfile.TemporaryDirectory(prefix="outvote-rewards-") as folder:
        fleet = Fleet(Path(folder), [f"site-{number}" for number in range(sites)])
        try:
            await fleet.start()
            world = World(fleet, means, window, random.Random(seed))
            await world.create()
            return await work(world)
        finally:
            fleet.stop()


async def restart(world: World, site: str) -> None:
    """Start a site that was killed again, with the store and the port that it had."""
    edge, fleet = world.fleet.edges[site], world.fleet
    port = edge.url("edge").rpartition(":")[2]
    store = str(fleet._folder / f"{site}.db")
    edge.launch("edge", site, "--nats", fleet.server.url("nats"), "--store", store, "--port", port)
    await edge.wait_ready()
