"""Edges killed with SIGKILL again and again while their users go on: no message is lost, and none counts twice."""

from __future__ import annotations

import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from helpers.audit import faults, read_log, read_store, replayed
from helpers.processes import Running, Start, an_edge, gone, request, sent_all, until
from helpers.visitors import Visitors, counted
from outvote.cli.main import main

SEED = 31
SITES = ("ams", "fra", "lis")
MEANS = {"red": 0.9, "green": 0.9, "blue": 0.1, "pink": 0.1}
CREATE = ["create", "--name", "shop", "--arms", ",".join(MEANS), "--players", ",".join(SITES), "--delta", "1e-6"]
KILLS = ("some time", "one waits", "one is saved", "some time", "one waits", "one is saved")
"""When an edge's lives end: at some time of no meaning, or around the moment at which a message is saved, or sent."""


def live(start: Start, server: Running, name: str, visitors: Visitors, rng: random.Random) -> int:
    """One site from its first life to its last, each ended by a kill; returns how many messages it has kept."""
    kept = 0
    for kill in KILLS:
        edge = an_edge(start, server, name)
        killing = threading.Timer(rng.uniform(0, 0.5), edge.process.kill)
        found: dict[str, Any] = {}

        def due(view: dict[str, Any], kill: str = kill, before: int = kept, found: dict[str, Any] = found) -> bool:
            found.update(view)
            assert view.get("messages_kept", before) >= before, "a message that was saved is gone"
            if kill == "one waits":
                return bool(view.get("messages_waiting", 0) > 0)  # it may be saved or not, and sent or not
            return kill == "one is saved" and bool(view.get("messages_kept", 0) > before)

        if kill == "some time":
            killing.start()
        assert visitors.visit(edge, done=due) != (kill == "some time")
        if kill != "some time":
            killing.interval = rng.choice((0.0, rng.uniform(0, 0.02), rng.uniform(0, 0.3)))
            killing.start()
        killing.join()
        until(lambda edge=edge: gone(edge.pid("edge")))  # type: ignore[misc]
        kept = max(kept, found.get("messages_kept", 0))
    edge = an_edge(start, server, name)
    assert visitors.visit(edge, done=lambda view: len(view.get("remaining", MEANS)) == 2)  # the good ones
    sent_all(edge)
    assert edge.end(signal.SIGTERM)[0] == 0
    return kept


def test_edges_that_are_killed_at_any_moment_lose_no_message_and_count_none_twice(
    server: Running, start: Start, tmp_path: Path
) -> None:
    """The schedule is of seed 31; what the kills meet depends on the machine, what must come of it does not."""
    assert main(["task", "--server", server.url("server"), *CREATE]) == 0
    visitors = {name: Visitors("shop", MEANS, random.Random(f"{SEED} {name}")) for name in SITES}
    with ThreadPoolExecutor(len(SITES)) as threads:
        lives = [
            threads.submit(live, start, server, name, visitors[name], random.Random(f"{SEED} {name} kills"))
            for name in SITES
        ]
        assert min(each.result() for each in lives) > 0
    stores = [read_store(name, tmp_path / f"outvote-edge-{name}.db") for name in SITES]
    total = sum(len(each.messages) for each in stores)

    def shown() -> dict[str, Any]:
        return request(server.url("server") + "/v1/tasks/shop")

    until(lambda: bool(shown()["messages"]["up"] == total), "the server has read all")
    log = read_log(server.url("nats"))
    assert faults(log, stores) == []
    folded = replayed(log, shown()["id"])
    assert len({incarnation for _, incarnation in folded.highest}) == len(SITES)  # none ever changed
    seen = {arm["arm"]: (arm["trials"], arm["successes"]) for arm in shown()["arms"]}
    assert seen == {
        name: (folded.server.trials(arm), folded.server.successes(arm))  # type: ignore[attr-defined]
        for arm, name in enumerate(MEANS)
    }
    for store in stores:
        told = visitors[store.edge].told
        assert all(count <= told[key] for key, count in counted(folded.task, store.edge, store.messages).items())
