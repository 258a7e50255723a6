"""A real log with anything in it, a real edge that hears anything: both processes go on, and start again from it."""

from __future__ import annotations

import asyncio
import random
import signal
from pathlib import Path
from typing import Any

import nats
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from amounts import examples
from network.processes import Running, an_edge, commands, request, sent_all, until
from outvote.core.task import Task
from outvote.network.records import Coder

from .mutants import eliminations, json_like, messages, mutated, subjects

TASK: dict[str, Any] = {
    "name": "shop",
    "protocol": "tally",
    "arms": ["a", "b", "c"],
    "players": 3,
    "epsilon": 0,
    "delta": 0.05,
}


def bad_records(task_id: str, count: int) -> list[tuple[str, bytes]]:
    """Subjects that an engine takes, and payloads of every kind."""
    task = Task(**TASK)
    coder, announced, found = Coder(task), (0, 1, 2), list[tuple[str, bytes]]()
    places = [f"outvote.up.x.{task_id}.life.0", "outvote.up.ams.none-1.life.3", "outvote.down.other-1.task"]
    places += [f"outvote.live.{task_id}.kill.7", f"outvote.live.{task_id}.elim.9", "outvote.live.other-1.task"]
    places += ["outvote.sync.x", "outvote.down.none-1.elim.0", f"outvote.live.{task_id}.expect.0"]

    @settings(examples(count), max_examples=count, phases=[Phase.generate])  # all kinds must be among them
    @given(data=st.data())
    def collect(data: st.DataObject) -> None:
        subject = data.draw(subjects(*places))
        sound = coder.up(data.draw(messages(task, "x"))), coder.down(announced, data.draw(eliminations(announced)))
        record = {**task.to_json(), "name": "other"}
        payload = data.draw(mutated(*sound, b"true") | json_like(record) | json_like({"tasks": {task_id: 0}}))
        tokens = subject.split(".")
        # What ends a task, or takes the place of what it says next, is no fault but an order.
        ordered = task_id in subject and ".up." not in subject and ".live." not in subject
        ended = subject in (f"outvote.live.{task_id}.stop", f"outvote.live.{task_id}.delete") or payload == b"true"
        sendable = all(each.isascii() and each.isprintable() and each and " " not in each for each in tokens)
        if sendable and len(subject) < 200 and not ordered and not ended and not {"*", ">"} & set(tokens):
            found.append((subject, payload))

    collect()
    return found


async def publish(url: str, records: list[tuple[str, bytes]]) -> None:
    client = await nats.connect(url)
    for subject, payload in records:
        await client.publish(subject, payload)
    await client.flush()
    await client.close()


def plays(server: Running, edge: Running, name: str) -> None:
    """The edge decides and learns, and the server counts what it sends."""
    here, there = f"{edge.url('edge')}/v1/tasks/{name}", f"{server.url('server')}/v1/tasks/{name}"
    before = request(there)["messages"]["up"]
    for _ in range(12):
        decided = request(here + "/decide", {})
        request(here + "/reward", {"arm": decided["arm"], "ticket": decided["ticket"], "reward": random.randrange(2)})
    sent_all(edge, name)
    until(lambda: request(there)["messages"]["up"] > before, "the server has read what was sent")


def test_anything_in_the_log_and_on_the_wire_stops_nobody(tmp_path: Path) -> None:
    with commands(tmp_path) as start:
        server = start("server", "--port", "0", "--engine-port", "0", "--store", "log")
        edge = an_edge(start, server, "ams", "--store", "edge.db")
        task_id = request(server.url("server") + "/v1/tasks", TASK)["id"]
        until(lambda: bool(request(edge.url("edge") + "/healthz")["tasks"]), "the edge has the task")
        records = bad_records(task_id, 200)
        kinds = {subject.split(".")[1] for subject, _ in records}
        assert {"up", "down", "live", "sync"} <= kinds  # else less would be tried than this says
        asyncio.run(publish(server.url("nats"), records))
        until(lambda: bool(request(server.url("server") + "/healthz")["records"] > 1), "it is read")
        plays(server, edge, "shop")
        assert server.process.poll() is None
        assert edge.process.poll() is None
        for each in (edge, server):
            assert each.end(signal.SIGTERM)[0] == 0
        server = start("server", "--port", "0", "--engine-port", "0", "--store", "log")
        edge = an_edge(start, server, "ams", "--store", "edge.db")
        plays(server, edge, "shop")
