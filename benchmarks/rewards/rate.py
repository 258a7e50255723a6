"""A busy site: 1,000 decisions a second with a window of 300 s, for 12 minutes. JSON to standard output.

`python -m benchmarks.rewards.rate [SECONDS] [WINDOW] [PER_SECOND]`
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.rewards.world import World, with_world
from outvote.demo.users import Browser

SECONDS, WINDOW, RATE = (
    float(given) if len(sys.argv) > place else default
    for place, default, given in zip((1, 2, 3), (720, 300, 1000), (*sys.argv[1:4], *"000"), strict=False)
)
BROWSERS = 20
EVERY = 5.0
"""Seconds between two looks."""
LOOKED_AT = {
    "saves": re.compile(rb"^outvote_edge_save_seconds_count (\S+)", re.MULTILINE),
    "save_seconds": re.compile(rb"^outvote_edge_save_seconds_sum (\S+)", re.MULTILINE),
    "uncounted": re.compile(rb"^outvote_edge_task_uncounted_decisions_total\S* (\S+)", re.MULTILINE),
}


async def busy(world: World) -> dict[str, Any]:
    [site] = world.fleet.edges
    edge = world.fleet.edges[site]
    url, pid = edge.url("edge"), edge.ready["pids"]["edge"]
    delays: list[float] = []
    rng, until, began = random.Random(1), time.monotonic() + SECONDS, time.monotonic()
    looks: list[dict[str, float]] = []
    made = 0

    async def browse(number: int) -> None:
        nonlocal made
        browser = Browser(url)
        due = began + number / RATE
        while due < until:
            await asyncio.sleep(max(due - time.monotonic(), 0))
            start = time.perf_counter()
            status, body = await browser.send("POST", "/v1/tasks/shop/decide")
            delays.append(time.perf_counter() - start)
            assert status == 200
            made += 1
            found = json.loads(body)
            if rng.random() < world.means[found["variant"]]:
                await browser.send("POST", "/v1/tasks/shop/reward", {"ticket": found["ticket"], "reward": 1})
            due += BROWSERS / RATE
        browser.close()

    async def look() -> None:
        browser = Browser(url)
        while time.monotonic() < until:
            await asyncio.sleep(EVERY)
            text = await browser.get("/metrics")
            shown = {name: float(found[1]) for name, which in LOOKED_AT.items() if (found := which.search(text))}
            task = json.loads(await browser.get("/v1/tasks/shop"))
            memory = Path(f"/proc/{pid}/statm").read_text().split()[1]
            files = sum(path.stat().st_size for path in Path(world.fleet._folder).glob(f"{site}.db*"))
            looks.append(
                {
                    "second": round(time.monotonic() - began),
                    "memory_mb": round(int(memory) * 4096 / 1e6, 1),
                    "waiting": task["waiting"],
                    "file_bytes": files,
                    **shown,
                }
            )
        browser.close()

    await asyncio.gather(look(), *(browse(number) for number in range(BROWSERS)))
    store = await asyncio.to_thread(snapshot_bytes, world.fleet._folder / f"{site}.db")
    first, last = looks[0], looks[-1]
    half = len(delays) // 2
    return {
        "decisions": made,
        "per_second": round(made / SECONDS, 1),
        "window": WINDOW,
        "uncounted": last["uncounted"],
        "waiting": max(each["waiting"] for each in looks),
        "memory_mb": {"first": first["memory_mb"], "most": max(each["memory_mb"] for each in looks)},
        "bytes_a_waiting_decision": round(
            1e6 * (last["memory_mb"] - first["memory_mb"]) / (last["waiting"] - first["waiting"]), 1
        ),
        "snapshot_bytes": store,
        "ms_a_save": round(
            1000 * (last["save_seconds"] - looks[-6]["save_seconds"]) / (last["saves"] - looks[-6]["saves"]), 1
        ),
        "seconds_between_saves": round(5 * EVERY / (last["saves"] - looks[-6]["saves"]), 2),
        "decide_ms": {
            "median": round(1000 * statistics.median(delays[half:]), 2),
            "p99": round(1000 * statistics.quantiles(delays[half:], n=100)[98], 2),
            "longest": round(1000 * max(delays[half:]), 1),
        },
        "looks": looks,
    }


def snapshot_bytes(path: Path) -> int:
    import sqlite3

    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as store:
        return int(store.execute("SELECT max(length(body)) FROM snapshots").fetchone()[0])


async def main() -> None:
    means = {"red": 0.3, "green": 0.3, "blue": 0.3, "gold": 0.3}  # alike, so that the task goes on
    print(json.dumps(await with_world(1, means, WINDOW, 6, busy)))


if __name__ == "__main__":
    asyncio.run(main())
