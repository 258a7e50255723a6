"""The dashboard of a real server in a real Chromium: how soon its pages are there, and how they bear many changes."""

from __future__ import annotations

import asyncio
import shutil
import statistics
import tempfile
import time
from collections import Counter
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import httpx
import nats
from playwright.async_api import Browser, async_playwright

from benchmarks.dashboard import pages, world
from benchmarks.network.log import fill
from benchmarks.network.processes import cpu_seconds, outvote
from benchmarks.timing import say
from outvote.engine.nats_log import NatsLog

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
ASK_EVERY = 0.25
"""Seconds between two questions to the API while pages are watched."""
LAST_LOOK = 3.0
"""Seconds after the last message in which a page must show it."""


def measure(*, quick: bool) -> dict[str, Any] | None:
    """None where there is no Chromium."""
    if CHROMIUM is None:
        say("dashboard: not measured, as there is no Chromium: install Debian's package chromium-headless-shell")
        return None
    with (
        tempfile.TemporaryDirectory(prefix="outvote-bench-") as folder,
        outvote(
            "server", "--store", folder, "--port", "0", "--engine-port", "0", "--log-level", "warning", "--json"
        ) as child,
    ):
        ready = child.hear()
        told = world.tasks()
        say(f"dashboard: {world.TASKS} tasks and {world.EDGES:,} edges are written")
        asyncio.run(fill(ready["urls"]["nats"], world.records(told)))
        found = asyncio.run(look(ready, told, quick=quick))
    return {"quick": quick, "tasks": world.TASKS, "edges": world.EDGES, "busy": world.BUSY, **found}


def versions() -> dict[str, str]:
    return {name: version(name) for name in ("playwright", "starlette", "jinja2")}


async def look(ready: dict[str, Any], told: list[world.Told], *, quick: bool) -> dict[str, Any]:
    rounds, seconds = (2, 5) if quick else (7, 20)
    url, engine = ready["urls"]["server"], ready["urls"]["nats"]
    paths = {"tasks": "/", "task": f"/tasks/{told[0].task_id}", "fleet": "/fleet"}
    async with (
        async_playwright() as playwright,
        await NatsLog.connect(engine, name="bench", patience=10) as link,
        httpx.AsyncClient(base_url=url, timeout=60) as api,
    ):
        chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        await give_signs(engine)
        statuses = Counter(task["status"] for task in (await api.get("/v1/tasks")).json()["tasks"])
        loads = {}
        for name, path in paths.items():
            say(f"dashboard: the page {name} is loaded")
            loads[name] = await pages.loads(chromium, url + path, rounds=rounds, draws=name == "task")
        updates = {}
        for name, path in paths.items():
            await give_signs(engine)
            say(f"dashboard: the page {name} is watched for {seconds} s")
            updates[name] = await watch(chromium, url + path, link, api, told, ready["pids"]["server"], seconds)
        await chromium.close()
    return {"seconds": seconds, "rounds": rounds, "statuses": dict(statuses), "loads": loads, "updates": updates}


async def give_signs(engine: str) -> None:
    """Of life, of all edges: what each sends when it catches up."""
    client = await nats.connect(engine)
    for number in range(world.EDGES):
        await client.publish(f"outvote.sync.{world.edge_name(number)}", b"{}")
    await client.flush()
    await client.close()


async def watch(
    chromium: Browser,
    url: str,
    link: NatsLog,
    api: httpx.AsyncClient,
    told: list[world.Told],
    server: int,
    seconds: int,
) -> dict[str, Any]:
    """One page while every busy task gets a message each second."""
    context = await pages.window(chromium)
    page = await context.new_page()
    await page.goto(url)
    await pages.comes(page, "document.getElementById('live').dataset.state === 'on'")
    await page.evaluate(pages.WATCH_UPDATES)
    answers: list[float] = []
    asking = asyncio.create_task(ask(api, answers))
    spent, start = cpu_seconds(server), time.monotonic()
    stored = await send(link, api, told[: world.BUSY], seconds)
    spent, passed = cpu_seconds(server) - spent, time.monotonic() - start
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking
    await asyncio.sleep(LAST_LOOK)
    seen = await page.evaluate(pages.UPDATED)
    await context.close()
    delays = sorted(shown_after(stored, seen["counts"], told[0].task_id))
    return {
        "longest_task_ms": seen["longest_task_ms"],
        "longest_frame_ms": seen["longest_frame_ms"],
        "messages": len(delays),
        "delay_p50_ms": statistics.median(delays) if delays else None,
        "delay_p95_ms": delays[len(delays) * 95 // 100] if delays else None,
        "server_cpu": spent / passed,
        "answer_p50_ms": statistics.median(answers),
        "answer_worst_ms": max(answers),
        "looks": seen["looks"],
        "kib_per_s": seen["kib"] / passed,
    }


async def ask(api: httpx.AsyncClient, answers: list[float]) -> None:
    while True:
        start = time.monotonic()
        await api.get("/v1/tasks")
        answers.append((time.monotonic() - start) * 1000)
        await asyncio.sleep(ASK_EVERY)


async def send(
    link: NatsLog, api: httpx.AsyncClient, busy: list[world.Told], seconds: int
) -> list[tuple[float, str, int]]:
    """One message of each task every second, spread over it: when each was stored, and how many the task then had."""
    counts = {task["id"]: task["messages"]["up"] for task in (await api.get("/v1/tasks")).json()["tasks"]}
    stored = []
    start = time.monotonic()
    for number in range(seconds * len(busy)):
        told = busy[number % len(busy)]
        await asyncio.sleep(max(start + number / len(busy) - time.monotonic(), 0))
        await link.append(*told.next_message())
        counts[told.task_id] += 1
        stored.append((time.time() * 1000, told.task_id, counts[told.task_id]))
    return stored


def shown_after(stored: list[tuple[float, str, int]], seen: list[tuple[float, str, int]], of_page: str) -> list[float]:
    """Milliseconds from each message to the page that shows it; a page of one task calls it by no name."""
    delays = []
    for at, task, count in stored:
        times = [when for when, key, shown in seen if (key or of_page) == task and shown >= count]
        if times:
            delays.append(max(times[0] - at, 0.0))
    return delays
