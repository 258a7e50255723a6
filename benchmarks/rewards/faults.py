"""Four faults that once made rewards mislead, on real processes; JSON to standard output. Seeds are fixed.

For an earlier version: `PYTHONPATH=DIR/src:. python -m benchmarks.rewards.faults --before`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from benchmarks.rewards.world import Visit, World, restart, with_world
from outvote.demo.users import Browser

BROWSERS = 16
BEFORE = "--before" in sys.argv


def shown(reported: dict[str, tuple[int, int, list[float]]], means: dict[str, float]) -> dict[str, Any]:
    return {
        name: {"true": means[name], "reported": round(successes / trials, 3) if trials else None, "of": trials}
        for name, (successes, trials, _) in reported.items()
    }


async def crowd(world: World, visitors: int, *, failures: bool, times: int) -> None:
    """Visitors who are rewarded at once, if they are: all of them or those who succeed, so many times."""
    [site] = world.fleet.edges
    left = iter(range(visitors))

    async def browse(browser: Browser) -> None:
        for _ in left:
            visit = await world.decide(browser, site)
            if visit.success or failures:
                for _ in range(times):
                    await world.reward(browser, visit)
            await asyncio.sleep(0.02)
        browser.close()

    url = world.fleet.edges[site].url("edge")
    await asyncio.gather(*(browse(Browser(url)) for _ in range(BROWSERS)))


async def successes_only(world: World) -> dict[str, Any]:
    await crowd(world, 4_000, failures=False, times=1)
    return shown(await world.reported(), world.means)


async def thrice(world: World) -> dict[str, Any]:
    await crowd(world, 4_000, failures=False, times=3)
    return shown(await world.reported(), world.means)


async def crashes(world: World) -> dict[str, Any]:
    """Some visitors' decisions are saved, others' are not when the site is killed; then others come, and all who
    succeed say so."""
    [site] = world.fleet.edges
    edge = world.fleet.edges[site]

    async def visits(count: int) -> list[Visit]:
        browser = Browser(edge.url("edge"))
        made = [await world.decide(browser, site) for _ in range(count)]
        browser.close()
        return made

    for _ in range(40):
        made = await visits(40)
        await asyncio.sleep(0.5)  # saved by now
        made += await visits(20)
        edge.kill()
        await restart(world, site)
        made += await visits(20)
        browser = Browser(edge.url("edge"))
        for visit in made:
            if visit.success:
                await world.reward(browser, visit)
        browser.close()
    return shown(await world.reported(), world.means) | {"answers": world.answers}


async def slow_variant(world: World) -> dict[str, Any]:
    """Who succeeds says so after Exp(3 s); while the worse variant is tried, a visitor comes every 2 seconds only."""

    async def later(visit: Visit, url: str) -> None:
        await asyncio.sleep(world.rng.expovariate(1 / 3))
        browser = Browser(url)
        await world.reward(browser, visit)
        browser.close()

    async def site_lives(site: str, until: float) -> None:
        url = world.fleet.edges[site].url("edge")
        browser, rewards = Browser(url), []
        while asyncio.get_running_loop().time() < until:
            visit = await world.decide(browser, site)
            if visit.success:
                rewards.append(asyncio.create_task(later(visit, url)))
            await asyncio.sleep(0.05 if visit.variant == "better" else 2.0)
        browser.close()
        await asyncio.gather(*rewards)

    until = asyncio.get_running_loop().time() + 150
    await asyncio.gather(*(site_lives(site, until) for site in world.fleet.edges))
    return shown(await world.reported(), world.means)


async def main() -> None:
    three = {"red": 0.05, "green": 0.1, "blue": 0.2}
    spread = {"red": 0.2, "green": 0.5, "blue": 0.8}
    same = {"red": 0.2, "green": 0.2}
    found = {
        "successes only": await with_world(1, three, None if BEFORE else 2.0, 1, successes_only),
        "each reward three times": await with_world(1, spread, 2.0, 2, thrice),
        "crashes": await with_world(1, same, 5.0, 3, crashes),
        "a slow variant": await with_world(8, {"better": 0.6, "worse": 0.5}, 1.0, 4, slow_variant),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
