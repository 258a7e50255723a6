"""An hour of a fleet in which edges and tasks come and go: does anything grow? `python benchmarks/load/soak.py`

Server and engine run through, and so do some `outvote edge` processes; the other edges leave and come back to their
stores, and every task that has found its winner is deleted and followed by another. Every ten seconds memory, open
files, threads and sizes on the disk are noted; lines through them tell whether they grow. Ctrl-C ends all of it,
leaves nothing behind and writes nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import httpx

from benchmarks.load import measured
from benchmarks.load.slopes import line
from benchmarks.load.world import Size, World, world
from benchmarks.network import parts
from benchmarks.run import machine_alone, tidy
from benchmarks.timing import say

RESULTS = Path(__file__).with_name("soak.json")
SAMPLE_EVERY = 10.0
WARM_UP = 0.5
"""Share of the time that is left out: caches fill, and all pages that were taken once are touched (see churn.py)."""
SETTLE = 120.0
FLEET = Size(
    edges=40, tasks=12, processes=1, commands=2, visits=1.5, events=1_200, tick=0.2,
    away=20, swap=10.0, task_seconds=30.0,
)  # fmt: skip
PAGES = ("/v1/tasks", "/v1/sites", "/metrics", "/healthz", "/", "/fleet", "/openapi.json")


def main() -> int:
    options = read_options()
    fleet = dataclasses.replace(FLEET, task_seconds=options.task_seconds)
    out: Path | None = options.out or (RESULTS if options.seconds >= 3600 else None)
    return measured.run(lambda: soak(fleet, options.seconds, seed=options.seed), out)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=3600.0, help="how long (3600)")
    parser.add_argument(
        "--task-seconds", type=float, default=FLEET.task_seconds, help="after which a task without a winner ends (30)"
    )
    parser.add_argument("--seed", type=int, default=2, help="of the traffic and the tasks (2)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where results go (of an hour: soak.json beside this)")
    return parser.parse_args()


def soak(fleet: Size, seconds: float, *, seed: int) -> dict[str, Any]:
    about = machine_alone(parts.versions())
    with world(fleet, seed=seed) as running:
        samples = watch(running, seconds)
        last = running.report()
        waiting = running.settle(SETTLE)
        log, found = running.compare(SETTLE)
        counts = {
            key: getattr(running, key)
            for key in ("created", "finished", "wrong_winners", "deleted", "stopped", "command_events")
        }
    results: dict[str, Any] = tidy(
        {
            "machine": about,
            "size": dataclasses.asdict(fleet),
            "seconds": seconds,
            "edges": last,
            "tasks": counts,
            "waiting": waiting,
            "records": log.records,
            "growth": growth(samples),
            "check": {**dataclasses.asdict(found), "clean": found.clean},
        }
    )
    return results


def watch(running: World, seconds: float) -> list[dict[str, Any]]:
    began = time.monotonic()
    samples: list[dict[str, Any]] = []
    due = 0.0
    with httpx.Client(base_url=running.server_url, timeout=30.0) as operator:
        while (passed := time.monotonic() - began) < seconds:
            listed = running.look_at_tasks()
            running.visit_commands(20)
            if passed >= due:
                due += SAMPLE_EVERY
                samples.append(running.sample() | look(operator, listed) | {"told": running.report()})
                if len(samples) % 6 == 1:
                    tell(running, samples[-1], passed)
            time.sleep(min(2.0, max(0.0, seconds - (time.monotonic() - began))))
    return samples


def look(operator: httpx.Client, listed: dict[str, Any]) -> dict[str, Any]:
    """As operators do: every page, and every task; and somebody who watches for changes, and leaves."""
    began = time.monotonic()
    for page in PAGES:
        operator.get(page)
    for task in listed["tasks"]:
        operator.get(f"/v1/tasks/{task['id']}")
    with suppress(httpx.HTTPError), operator.stream("GET", "/v1/events") as events:
        next(events.iter_lines())
    text = operator.get("/metrics").text
    records = next(float(line.split()[1]) for line in text.splitlines() if line.startswith("outvote_log_records "))
    return {"look_s": time.monotonic() - began, "records": records}


def tell(running: World, sample: dict[str, Any], passed: float) -> None:
    used = sample["processes"]
    say(
        f"{passed / 60:3.0f} min: {sample['told']['there']} edges after {sample['told']['swaps']} swaps, "
        f"{running.created} tasks created, {running.deleted} deleted, {sample['records']:,.0f} records; MiB: "
        + ", ".join(f"{name} {each['rss_mib']:.1f}" for name, each in used.items())
    )


def growth(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """An hour's growth of everything, after the warm-up; and of the engine's memory, for each record of the log."""
    warm = samples[0]["at"] + WARM_UP * (samples[-1]["at"] - samples[0]["at"])
    kept = [each for each in samples if each["at"] >= warm]
    hours = [(each["at"] - kept[0]["at"]) / 3600 for each in kept]
    found: dict[str, Any] = {}
    for name in kept[0]["processes"]:
        for key in ("rss_mib", "pss_mib", "files", "threads"):
            found[f"{name} {key}"] = line(hours, [each["processes"][name][key] for each in kept])
    for name in kept[0]["store_bytes"]:
        found[f"{name} store_kib"] = line(hours, [each["store_bytes"][name] / 1024 for each in kept])
    found["log mib"] = line(hours, [each["log_bytes"] / 2**20 for each in kept])
    found["records"] = line(hours, [each["records"] for each in kept])
    found["look_s"] = line(hours, [each["look_s"] for each in kept])
    records = [each["records"] for each in kept]
    found["engine bytes a record"] = line(records, [each["processes"]["engine"]["rss_mib"] * 2**20 for each in kept])
    return found


if __name__ == "__main__":
    sys.exit(main())
