"""How long an elimination takes to reach every edge: from `store` until each of so many connections has heard of it.

The connections are real and made as an edge makes them, but all of them, the engine and we share this machine's cores:
what a thousand sites' processors would do side by side is done here one after the other.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.network.processes import Child, allow_connections, program
from benchmarks.timing import say
from outvote.engine.nats_log import NatsLog
from outvote.engine.process import Engine
from outvote.log.records import DownSubject

PROCESSES = 2
PAUSE = 0.05
"""Seconds between two rounds, for what the last one left to do."""
PAYLOAD = b"\x58"
"""As long as an elimination is."""


def measure(*, quick: bool) -> dict[str, Any]:
    """Milliseconds until the median edge, the 99th percentile and the last edge have it: medians over rounds."""
    sizes = (1_000,) if quick else (1_000, 5_000)
    rounds = 10 if quick else 40
    return {
        "fleets": [
            {"edges": edges, "rounds": rounds}
            | fan_out(edges, rounds, "link")
            | {"bare": fan_out(edges, rounds, "bare")}
            for edges in sizes
            if allow_connections(edges)
        ]
    }


def fan_out(edges: int, rounds: int, kind: str) -> dict[str, Any]:
    say(f"network: eliminations to {edges:,} edges" + (", the bytes alone" if kind == "bare" else ""))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="outvote-bench-")))
        engine = stack.enter_context(Engine(folder, port=0))
        each = edges // PROCESSES
        listening = [
            stack.enter_context(program("listeners", engine.url, number * each, each, kind))
            for number in range(PROCESSES)
        ]
        for child in listening:
            child.hear()
        found = asyncio.run(play(engine.url, listening, rounds))
    return {
        **{key: statistics.median(one[key] for one in found) for key in found[0]},
        "worst_last_ms": max(one["last_ms"] for one in found),
    }


async def play(url: str, listening: list[Child], rounds: int) -> list[dict[str, float]]:
    """One elimination after the other."""
    found = []
    async with await NatsLog.connect(url, name="server", patience=10) as link:
        await link.prepare()
        for number in range(rounds + 1):
            start = time.monotonic_ns()
            await link.append(str(DownSubject("task-00000000", "elim", number)), PAYLOAD)
            stored = time.monotonic_ns()
            told = [await asyncio.to_thread(child.hear) for child in listening]
            assert all(one["number"] == number for one in told)
            times = sorted((at - start) / 1e6 for one in told for at in one["times"])
            if number:  # the first is to warm up
                found.append(
                    {
                        "stored_ms": (stored - start) / 1e6,
                        "p50_ms": times[len(times) // 2],
                        "p99_ms": times[len(times) * 99 // 100],
                        "last_ms": times[-1],
                    }
                )
            await asyncio.sleep(PAUSE)
    return found
