"""Pictures of the dashboard for the documents: a real fleet, real events, a real browser. `make screenshots` runs it.

What is shown is what came out: the numbers in the pictures differ a little from run to run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Browser as Chromium
from playwright.async_api import Page, async_playwright

from outvote.demo.fleet import Fleet
from outvote.demo.users import Browser

SITES = ("amsterdam", "bogota", "chennai", "dakar", "edinburgh", "fukuoka", "geneva", "hanoi")
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium") or "chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
LAPTOP, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
LOOKS = {"dark": (LAPTOP, "dark"), "phone": (PHONE, "light"), "light": (LAPTOP, "light")}
PAGES = {
    "tasks": "/",
    "task": "/tasks/checkout-button",
    "votes": "/tasks/search-ranking",
    "held": "/tasks/mail-subject",
    "finished": "/tasks/banner",
    "private": "/tasks/price-layout",
    "warned": "/tasks/newsletter",
    "new": "/tasks/new?plan=1&name=checkout-button-2&variants=classic%0Abold%0Agreen&sites=20&traffic=50000"
    "&reward_window=30m"
    "&difference=0.02&baseline=0.1&protocol=tally&delta=0.05&epsilon=0",
    "stop": "/tasks/checkout-button/stop",
    "fleet": "/fleet",
}
SHOWN = ("tasks-light", "task-light", "task-phone", "votes-dark", "held-light", "new-light", "fleet-light")
"""Those that are in the documents."""
SILENCE = 100_000
"""Milliseconds in which an edge that was killed is found to be silent."""


@dataclass(frozen=True)
class Scene:
    """One task: what it is, and what its arms are really worth at each site."""

    task: dict[str, Any]
    means: Callable[[int], Sequence[float]]
    events: int
    expectation: dict[str, float] | None = None


SCENES = (
    Scene(
        {"name": "checkout-button", "protocol": "tally", "variants": ["classic", "bold", "green", "minimal"]},
        lambda site: (0.115, 0.09, 0.13, 0.03),
        9_000,
        {"traffic": 12_000, "difference": 0.03, "baseline": 0.1},
    ),
    Scene(
        {"name": "banner", "protocol": "tally", "variants": ["spring", "summer", "plain"]},
        lambda site: (0.6, 0.35, 0.2),
        3_000,
    ),
    Scene(
        {"name": "search-ranking", "protocol": "dme", "variants": ["baseline", "fresh", "long"], "epsilon": 0.95},
        lambda site: (0.9, 0.45, 0.05),
        14_000,
        {"traffic": 100_000},
    ),
    Scene(
        {"name": "mail-subject", "protocol": "tally", "variants": ["question", "plain"]},
        lambda site: (0.85, 0.42) if site % 2 else (0.15, 0.42),
        6_000,
    ),
    Scene(  # an application that never rewards
        {"name": "newsletter", "protocol": "tally", "variants": ["short", "long"]},
        lambda site: (0, 0),
        1_600,
    ),
    Scene(
        {
            "name": "price-layout",
            "protocol": "tally",
            "variants": 5,
            "privacy_budget": 1,
            "fallback": "2",
            "sites": [*SITES, "ibiza"],
        },
        lambda site: (0.3, 0.32, 0.4, 0.35, 0.31),
        4_000,
    ),
)


async def play(fleet: Fleet, scene: Scene, rng: random.Random) -> None:
    """Create the task, and let users of all sites come."""
    server = Browser(fleet.server.url("server"))
    task = {"sites": list(SITES), "epsilon": 0, "delta": 0.05, "reward_window": 2, **scene.task}
    status, said = await server.send("POST", "/v1/tasks", task)
    assert status == 201, said
    name, variants = task["name"], json.loads(said)["remaining"]
    if scene.expectation is not None:
        await server.send("PUT", f"/v1/tasks/{name}/expectation", scene.expectation)
    server.close()
    await asyncio.gather(
        *(
            visit(fleet.edges[site].url("edge"), name, worth, scene.events // len(SITES), rng)
            for number, site in enumerate(SITES)
            for worth in [dict(zip(variants, scene.means(number), strict=True))]
        )
    )


async def visit(url: str, task: str, worth: dict[str, float], events: int, rng: random.Random) -> None:
    browser = Browser(url)
    done = 0
    while done < events:
        status, said = await browser.send("POST", f"/v1/tasks/{task}/decide")
        if status == 404:  # the edge has not heard of it yet
            await asyncio.sleep(0.05)
            continue
        decision = json.loads(said)
        likes = int(rng.random() < worth[decision["variant"]])
        if worth[decision["variant"]]:
            reward = {"ticket": decision["ticket"], "reward": likes}
            await browser.send("POST", f"/v1/tasks/{task}/reward", reward)
        done += 1
    browser.close()


async def shoot(page: Page, url: str, path: Path, name: str) -> None:
    await page.goto(url)
    await page.locator("#live[data-state=on], #live[data-state=still]").wait_for(state="attached")
    await page.locator("[aria-busy]").first.wait_for(state="detached", timeout=60_000)
    if name == "warned":
        await page.locator(".banner.warn").first.wait_for(timeout=SILENCE)
    if name == "fleet":
        await page.locator("td .chip.silent").first.wait_for(timeout=SILENCE)
    await page.screenshot(path=path, full_page=True)
    print(path)


async def pictures(chromium: Chromium, url: str, folder: Path, *, everything: bool) -> None:
    for look, (size, scheme) in LOOKS.items():
        context = await chromium.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
        page = await context.new_page()
        for name, path in PAGES.items():
            if everything or f"{name}-{look}" in SHOWN:
                await shoot(page, url + path, folder / f"dashboard-{name}-{look}.png", name)
        await context.close()


async def work(folder: Path, *, everything: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(7)
    with tempfile.TemporaryDirectory(prefix="outvote-pictures-") as scratch:
        fleet = Fleet(Path(scratch), SITES)
        try:
            await fleet.start()
            await asyncio.gather(*(play(fleet, scene, rng) for scene in SCENES))
            fleet.edges["hanoi"].kill()
            async with async_playwright() as playwright:
                chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
                await pictures(chromium, fleet.server.url("server"), folder, everything=everything)
                await chromium.close()
        finally:
            fleet.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "figures")
    parser.add_argument("--all", action="store_true", help="every page in every look, not only those in the documents")
    args = parser.parse_args()
    asyncio.run(work(args.folder, everything=args.all))
