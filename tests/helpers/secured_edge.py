"""An edge that speaks HTTPS and wants tokens, as a process: it has a task in its store and no network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from helpers.holders import Holders, edge_kit
from helpers.processes import Running, commands
from outvote.core.task import Task
from outvote.edge.store import EdgeStore

TASK = Task(
    name="shop",
    arms=["red", "green"],
    players=["ams"],
    epsilon=0,
    delta=0.05,
    protocol="tally",
    floor=100,
    reward_window=60,
)


class SecuredEdge(NamedTuple):
    running: Running
    holders: Holders
    ca: Path

    @property
    def url(self) -> str:
        return self.running.url("edge")


@contextmanager
def secured_edge(folder: Path) -> Iterator[SecuredEdge]:
    with EdgeStore(folder / "outvote-edge-ams.db") as store:
        store.put_task("shop-1", json.dumps(TASK.to_json()))
    kit = edge_kit(folder, "ams")
    holders = Holders(kit)
    with commands(folder) as start:
        running = start("edge", "--kit", str(kit), "--nats", "tls://127.0.0.1:1", "--port", "0")
        yield SecuredEdge(running, holders, kit / "ca.pem")
