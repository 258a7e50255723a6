"""How fast the log is folded: by a fresh server from a real engine, and without NATS; and what an engine stores.

The log is written by an engine that does not wait for its disk, on the folder that the real one then takes over:
filling is not what is measured, and takes seconds instead of minutes.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nats
import uvloop
from nats.aio.client import Client

from benchmarks.network.processes import cores, memory_mib, program
from benchmarks.network.records import EDGES, TASKS, Record, fleet_log
from benchmarks.timing import say
from outvote.engine.nats_log import STREAM, NatsLog
from outvote.engine.process import Engine, find_binary
from outvote.log.log import Record as LogRecord
from outvote.log.log_state import LogState
from outvote.processes import die_with

WINDOW = 4_000
"""Records under way while the log is filled."""
FILL_PATIENCE = 600.0


def measure(*, quick: bool) -> dict[str, Any]:
    """Messages a second, and seconds and memory of a recovery."""
    messages, folded, synced = (100_000, 20_000, 5_000) if quick else (1_000_000, 100_000, 20_000)
    rounds = 2 if quick else 3
    say(f"network: folding {folded:,} messages in memory")
    in_memory = max(fold_rate(folded) for _ in range(rounds))
    say(f"network: storing {synced:,} messages on the disk, one by one")
    with tempfile.TemporaryDirectory(prefix="outvote-bench-") as folder, Engine(Path(folder), port=0) as engine:
        stored = synced / uvloop.run(fill(engine.url, itertools.islice(fleet_log(), synced)))
    with tempfile.TemporaryDirectory(prefix="outvote-bench-") as folder:
        say(f"network: a log of {messages:,} messages is written")
        with careless_engine(Path(folder)) as url:
            filling = uvloop.run(fill(url, itertools.islice(fleet_log(), messages + TASKS)))
        start = time.perf_counter()
        with Engine(Path(folder), port=0) as engine:
            engine_seconds = time.perf_counter() - start
            assert engine.pid is not None
            recoveries = []
            for number in range(rounds):
                say(f"network: a fresh server reads {messages:,} messages, round {number + 1} of {rounds}")
                recoveries.append(recovery(engine.url, messages))
            engine_mib = memory_mib(engine.pid)["rss_mib"]
    best = min(recoveries, key=lambda each: float(each["seconds"]))
    return {
        "messages": messages,
        "edges": EDGES,
        "tasks": TASKS,
        "fold_per_s": in_memory,
        "stored_per_s": stored,
        "filling_seconds": filling,
        "engine_seconds": engine_seconds,
        "engine_mib": engine_mib,
        "recoveries": recoveries,
        "folded_per_s": messages / best["seconds"],
        "seconds": best["total_seconds"],
        "peak_mib": best["peak_mib"],
    }


def fold_rate(count: int) -> float:
    """Messages a second of the state machine alone."""
    records = list(itertools.islice(fleet_log(), count + TASKS))
    fold = LogState()
    start = time.perf_counter()
    for sequence, (subject, payload) in enumerate(records, 1):
        fold.apply(LogRecord(subject, payload, sequence, 0.0))
    seconds = time.perf_counter() - start
    assert sum(task.ledger.up_messages for task in fold.tasks.values()) == count, "every message must count"
    return count / seconds


def recovery(url: str, messages: int) -> dict[str, float]:
    """A server process from its start until it is ready."""
    core, _ = cores()
    start = time.perf_counter()
    with program("recover", url, core=core) as server:
        told = server.hear(FILL_PATIENCE)
    assert (told["messages"], told["refused"]) == (messages, 0), f"every message must count: {told}"
    return {
        "total_seconds": time.perf_counter() - start,
        "seconds": told["seconds"],
        "cpu_seconds": told["cpu_seconds"],
        "peak_mib": told["peak_mib"],
    }


async def fill(url: str, records: Iterable[Record]) -> float:
    """Seconds until all are stored; many are under way at a time, and the stream's count says which arrived."""
    async with await NatsLog.connect(url, name="filler", patience=10) as link:
        await link.prepare()
    client: Client = await nats.connect(url)
    stream = client.jetstream()

    async def stored() -> int:
        return (await stream.stream_info(STREAM)).state.last_seq

    start = time.perf_counter()
    sent = 0
    for subject, payload in records:
        await client.publish(subject, payload)
        sent += 1
        if sent % (WINDOW // 2) == 0:
            while await stored() < sent - WINDOW:
                await asyncio.sleep(0.001)
    while await stored() < sent:
        await asyncio.sleep(0.001)
    seconds = time.perf_counter() - start
    await client.close()
    return seconds


@contextmanager
def careless_engine(folder: Path) -> Iterator[str]:
    """An engine on the folder that `Engine` will take, which answers before its disk does."""
    settings = folder / "careless.conf"
    store = {"store_dir": str(folder / "store")}
    settings.write_text(
        f'listen: "127.0.0.1:-1"\nports_file_dir: {json.dumps(str(folder))}\njetstream: {json.dumps(store)}\n',
        encoding="utf-8",
    )
    process = subprocess.Popen(
        [find_binary().path, "--config", settings],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=die_with(os.getpid()),
    )
    ports = folder / f"nats-server_{process.pid}.ports"
    try:
        until = time.monotonic() + 10
        while not ports.exists() or not ports.read_bytes():
            assert time.monotonic() < until, "no engine to fill the log with"
            time.sleep(0.01)
        yield str(json.loads(ports.read_bytes())["nats"][0])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
