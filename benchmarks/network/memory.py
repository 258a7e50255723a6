"""What the parts of a network keep in memory: an idle edge's connection in the engine, an edge, a server, an engine."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.network.processes import allow_connections, memory_mib, outvote, program
from benchmarks.timing import say
from outvote.engine.process import Engine

FEW, MANY = 100, 1_000
EDGES = 4
"""Edges on one machine: what they share is counted once among them in their PSS."""
SETTLE = 2.0
"""Seconds after which nothing moves any more."""
DEADLINE = 30.0
TASK = {
    "name": "shop", "variants": 10, "sites": 64, "reward_window": 60, "epsilon": 0, "delta": 0.05, "protocol": "tally"
}  # fmt: skip


def measure(*, quick: bool) -> dict[str, Any]:
    """KiB for each connection, MiB for each process."""
    return {"connection": connection(rounds=1 if quick else 3), **processes()}


def connection(*, rounds: int) -> dict[str, Any]:
    """What the engine grows by, from some connections to many, per connection."""
    allow_connections(MANY)
    grown = []
    for number in range(rounds):
        say(f"network: memory of {MANY:,} idle connections, round {number + 1} of {rounds}")
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="outvote-bench-")))
            engine = stack.enter_context(Engine(folder, port=0))
            assert engine.pid is not None
            rss = []
            for first, count in ((0, FEW), (FEW, MANY - FEW)):
                stack.enter_context(program("listeners", engine.url, first, count, "link")).hear()
                time.sleep(SETTLE)
                rss.append(memory_mib(engine.pid)["rss_mib"])
            grown.append((rss[1] - rss[0]) * 1024 / (MANY - FEW))
    return {"from": FEW, "to": MANY, "kib_each": statistics.median(grown)}


def processes() -> dict[str, Any]:
    """The commands as operators start them, with one task, when they have nothing to do."""
    say("network: memory of a server, its engine and edges")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="outvote-bench-")))
        server = stack.enter_context(
            outvote("server", "--store", str(folder / "engine"), "--port", "0", "--engine-port", "0", "--json")
        )
        ready = server.hear()
        ask(f"{ready['urls']['server']}/v1/tasks", TASK)
        nats, edges = ready["urls"]["nats"], []
        for number in range(EDGES):
            store = str(folder / f"{number}.db")
            child = stack.enter_context(
                outvote("edge", f"edge-{number}", "--nats", nats, "--store", store, "--port", "0", "--json")
            )
            edges.append((child, child.hear()["urls"]["edge"]))
        for _, url in edges:
            decide_once(url)
        time.sleep(SETTLE)
        pids = {"server": [server.pid], "engine": [ready["pids"]["engine"]], "edge": [child.pid for child, _ in edges]}
        found = {name: [memory_mib(pid) for pid in each] for name, each in pids.items()}
    return {
        "edges": EDGES,
        **{
            name: {key: statistics.fmean(one[key] for one in each) for key in ("rss_mib", "pss_mib")}
            for name, each in found.items()
        },
    }


def decide_once(url: str) -> None:
    """Once the edge has heard of the task, one event."""
    until = time.monotonic() + DEADLINE
    while not any(task["name"] == TASK["name"] for task in ask(f"{url}/v1/tasks")["tasks"]):
        assert time.monotonic() < until, "the edge did not hear of its task"
        time.sleep(0.05)
    path = f"{url}/v1/tasks/{TASK['name']}"
    ask(f"{path}/reward", {"ticket": ask(f"{path}/decide", {})["ticket"], "reward": 1})


def ask(url: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=DEADLINE) as response:
        answer = response.read()
    return json.loads(answer) if answer else None
