"""A fleet under load on one machine: `python benchmarks/load/load.py` (5,000 edges, 100 tasks, ten minutes).

5,000 `outvote edge` processes do not fit on one machine. So the edges are real `Edge` objects with real stores and real
connections in a few processes, beside some real `outvote edge` processes; server and engine are the real commands.
`--smoke` is a small one that takes half a minute and writes nothing. Ctrl-C ends all of it and leaves nothing behind.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.load import check, lagging, measured
from benchmarks.load.world import Size, World, world
from benchmarks.network import parts
from benchmarks.timing import say

RESULTS = Path(__file__).with_name("load.json")
SAMPLE_EVERY = 10.0
SETTLE = 60.0
"""Seconds in which all that was made must be stored, and everyone agree."""
FULL = Size(edges=5_000, tasks=100, processes=4, commands=3, visits=20, events=600, tick=2.0)
SMOKE = Size(edges=200, tasks=5, processes=2, commands=1, visits=20, events=1_200, tick=0.2)


def main() -> int:
    options = read_options()
    smoke: bool = options.smoke
    size = SMOKE if smoke else FULL
    asked = {
        key: value for key in ("edges", "tasks", "processes", "visits") if (value := getattr(options, key)) is not None
    }
    size = dataclasses.replace(size, **asked)
    seconds = options.seconds if options.seconds is not None else 20.0 if smoke else 600.0
    out: Path | None = options.out or (None if smoke or asked or options.seconds else RESULTS)
    return measured.run(lambda: measure(size, seconds, seed=options.seed), out)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="200 edges, 5 tasks, 20 seconds")
    parser.add_argument("--edges", type=int, help="edges in all (5,000)")
    parser.add_argument("--tasks", type=int, help="tasks at once (100)")
    parser.add_argument("--processes", type=int, help="processes that the edges share (4)")
    parser.add_argument("--visits", type=float, help="bursts of events a second in all (6)")
    parser.add_argument("--seconds", type=float, help="seconds of traffic (600)")
    parser.add_argument("--seed", type=int, default=1, help="of the traffic and the tasks (1)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where results go (a full run: load.json beside this)")
    return parser.parse_args()


def measure(size: Size, seconds: float, *, seed: int) -> dict[str, Any]:
    from benchmarks.run import machine_alone, tidy  # which takes a while: it brings the simulator

    about = machine_alone(parts.versions())
    server = ["-m", "benchmarks.load.lagging"]
    began = time.monotonic()
    with world(size, seed=seed, server=server) as running:
        connecting = time.monotonic() - began
        idle = running.sample()
        samples, behind = drive(running, seconds)
        last = running.report()
        say("no more events: until everything is stored and everyone agrees")
        before = time.monotonic()
        waiting = running.settle(SETTLE)
        log, found = running.compare(SETTLE)
        agreed = time.monotonic() - before
        heard = check.heard_by_all(log, running.stores.glob("edges-*/state.json"))
        log_bytes = running.sample()["log_bytes"]
        running.end_server()
        lags = [lag * 1e3 for stored, lag in lagging.read(running.lags) if stored >= samples[0]["at"]]
        counts = {
            key: getattr(running, key)
            for key in ("created", "finished", "wrong_winners", "deleted", "stopped", "command_events")
        }
    live = [each for each in heard if each["edges"] >= size.edges]
    measured: dict[str, Any] = tidy(
        {
            "machine": about,
            "size": dataclasses.asdict(size),
            "seconds": seconds,
            "connecting_seconds": connecting,
            "edges": last,
            "tasks": counts,
            "records": log.records,
            "record_bytes": log.record_bytes,
            "log_bytes": log_bytes,
            "lag_ms": spread(lags),
            "behind": {"most": max(behind), "median": statistics.median(behind)},
            "eliminations": {
                "stored": len(log.eliminated),
                "heard_by_all": len(live),
                "last_ms": spread([each["last_ms"] for each in live]),
            },
            "usage": usage(idle, samples, seconds),
            "check": {**dataclasses.asdict(found), "clean": found.clean},
            "waiting": waiting,
            "agreed_seconds": agreed,
        }
    )
    return measured


def drive(running: World, seconds: float) -> tuple[list[dict[str, Any]], list[float]]:
    """So many seconds of traffic; samples of what is used, and how many records the server was behind."""
    samples = [running.sample()]
    began = time.monotonic()
    behind: list[float] = []
    due = SAMPLE_EVERY
    while (passed := time.monotonic() - began) < seconds:
        listed = running.look_at_tasks()
        running.visit_commands(10)
        if passed >= due or not behind:
            due += SAMPLE_EVERY
            samples.append(running.sample())
            behind.append(running.figures()["outvote_log_records_behind"])
            told = running.report()
            winners = sum(each["winner"] is not None for each in listed["tasks"])
            used = samples[-1]["processes"]
            say(
                f"{passed:4.0f} s: {told['connected']:,} edges, {told['events']:,} events, "
                f"{told['acknowledged']:,} messages stored and {told['waiting']:,} waiting, "
                f"{running.finished} tasks finished ({winners} there), "
                f"server {used['server']['rss_mib']:.0f} MiB, engine {used['engine']['rss_mib']:.0f} MiB"
            )
        time.sleep(min(1.0, max(0.0, seconds - (time.monotonic() - began))))
    samples.append(running.sample())
    return samples, behind


def spread(values: list[float]) -> dict[str, float]:
    """What is usual, and what is rare."""
    values = sorted(values)
    if not values:
        return {"count": 0}
    at = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
    shares = {name: values[min(len(values) - 1, int(share * len(values)))] for name, share in at.items()}
    return {"count": len(values), **shares, "most": values[-1]}


def usage(idle: dict[str, Any], samples: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """By kind of process: memory before and after, the share of a core, files."""
    kinds: dict[str, list[str]] = {}
    for name in idle["processes"]:
        kinds.setdefault(name.partition("-")[0], []).append(name)
    first, last = samples[0], samples[-1]
    passed = last["at"] - first["at"]

    def total(sample: dict[str, Any], names: list[str], key: str) -> float:
        return float(sum(sample["processes"][name][key] for name in names))

    return {
        kind: {
            "processes": len(names),
            "rss_mib_before": total(first, names, "rss_mib"),
            "rss_mib_after": total(last, names, "rss_mib"),
            "rss_mib_most": max(total(each, names, "rss_mib") for each in samples),
            "cores": (total(last, names, "cpu_s") - total(first, names, "cpu_s")) / passed,
            "cpu_s_until_connected": total(idle, names, "cpu_s"),
            "files": max(total(each, names, "files") for each in samples),
        }
        for kind, names in kinds.items()
    }


if __name__ == "__main__":
    sys.exit(main())
