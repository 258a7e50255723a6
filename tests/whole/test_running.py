"""The commands as operators start them: a server with its engine, an edge, a task, events over HTTP, and the end."""

from __future__ import annotations

import json
import signal
import subprocess

from helpers.processes import OUTVOTE, Running, Start, an_edge, gone, until
from outvote.client import Client, EdgeError

RATES = {"red": 20, "green": 80, "blue": 40}
CREATE = ["--name", "shop", "--arms", "red,green,blue", "--players", "1", "--epsilon", "0", "--protocol", "tally"]


def test_a_server_an_edge_and_a_task_find_the_best_variant_and_leave_nothing_behind(
    server: Running, start: Start
) -> None:
    at = ["--server", server.url("server")]
    edge = an_edge(start, server, "ams")
    subprocess.run([*OUTVOTE, "task", "create", *at, *CREATE], check=True, capture_output=True)
    events = 0

    def finished() -> bool:
        nonlocal events
        for _ in range(200):
            try:
                with client.decision("shop") as decision:
                    events += 1
                    decision.reward((events * 7919) % 100 < RATES[decision.arm])
            except EdgeError as error:
                if error.status != 404:  # the edge has not heard of the task yet
                    raise
        shown = subprocess.run([*OUTVOTE, "task", "show", "shop", *at, "--json"], check=True, capture_output=True)
        return bool(json.loads(shown.stdout)["winner"] == "green")

    with Client(edge.url("edge")) as client:
        until(finished, "green wins")
    ended = [running.end(signal.SIGTERM)[0] for running in (edge, server)]
    assert ended == [0, 0]
    assert all(gone(pid) for running in (edge, server) for pid in running.ready["pids"].values())
