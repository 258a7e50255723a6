"""The server and its engine killed with SIGKILL in the middle of a task: what was acknowledged stays."""

from __future__ import annotations

import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from network.audit import faults, read_by_a_new_server, read_log, read_store, replayed
from network.processes import Running, Start, an_edge, gone, request, sent_all, until
from network.visitors import Visitors
from outvote.cli.main import main

SEED = 32
SITES = ("ams", "fra", "lis")
MEANS = {"red": 0.2, "green": 0.8, "blue": 0.5}
CREATE = ["create", "--name", "shop", "--arms", ",".join(MEANS), "--players", ",".join(SITES), "--delta", "1e-9"]


def shown(server: Running) -> dict[str, Any]:
    """The task as the server shows it."""
    return request(server.url("server") + "/v1/tasks/shop")


def kill_server(server: Running, start: Start) -> Running:
    """Its engine goes with it. Another is started on the same folder and ports, as systemd would."""
    server.end(signal.SIGKILL)
    until(lambda: gone(server.pid("engine")))
    return again(server, start)


def kill_engine(server: Running, start: Start) -> Running:
    """The server goes with it."""
    os.kill(server.pid("engine"), signal.SIGKILL)
    assert server.ended()[0] == 1
    return again(server, start)


def again(server: Running, start: Start) -> Running:
    return start("server", "--store", "log", "--engine-port", server.port("nats"), "--port", server.port("server"))


def test_a_server_and_an_engine_that_are_killed_lose_nothing_that_was_acknowledged(
    server: Running, start: Start, tmp_path: Path
) -> None:
    """The winner is wrong with probability 1e-9 at most, the task's δ; the visitors are of seed 32."""
    assert main(["task", "--server", server.url("server"), *CREATE]) == 0
    edges = {name: an_edge(start, server, name) for name in SITES}
    allowed = [0]
    """Events that each site may have had by now: the task must not be over before the last kill."""
    over = threading.Event()

    def live(name: str) -> bool:
        visitors = Visitors("shop", MEANS, random.Random(f"{SEED} {name}"))

        def done(view: dict[str, Any]) -> bool:
            until(lambda: over.is_set() or visitors.events < allowed[0])
            return over.is_set() or bool(view.get("finished"))

        return visitors.visit(edges[name], done=done)

    def more_messages(server: Running, before: int) -> None:
        until(lambda: shown(server)["messages"]["up"] > before + 1, "more messages")

    acknowledged = []
    with ThreadPoolExecutor(len(SITES)) as threads:
        try:
            lives = [threads.submit(live, name) for name in SITES]
            for kill in (kill_engine, kill_server, kill_engine, kill_server):
                before = shown(server)["messages"]["up"]
                allowed[0] += 18
                more_messages(server, before)
                acknowledged.append(read_log(server.url("nats")))
                server = kill(server, start)
            allowed[0] = 1_000_000
            assert all(each.result() for each in lives), "an edge has gone"
        finally:
            over.set()
    until(lambda: bool(shown(server)["winner"] == "green"))
    for edge in edges.values():
        sent_all(edge)
        assert edge.end(signal.SIGTERM)[0] == 0
    stores = [read_store(name, tmp_path / f"outvote-edge-{name}.db") for name in SITES]
    until(lambda: shown(server)["messages"]["up"] == sum(len(each.messages) for each in stores))
    log = read_log(server.url("nats"))
    for records in acknowledged:
        assert log[: len(records)] == records
    assert faults(log, stores) == []
    folded = replayed(log, shown(server)["id"])
    assert folded.winner == 1
    assert read_by_a_new_server(server.url("nats"), folded.task_id).server.snapshot() == folded.server.snapshot()
