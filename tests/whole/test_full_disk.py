"""Full disks: an edge ends and says why, a server with its engine too. Nothing is lost."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.audit import faults, read_log, read_store, replayed
from helpers.processes import DEADLINE, Running, Start, an_edge, complaints, request, sent_all, until, well
from helpers.small_disk import CannotMount, Disk, mount, unmount
from helpers.visitors import Visitors
from outvote.cli.main import main
from outvote.engine.nats_log import NatsLog
from outvote.engine.process import Engine

MEANS = {"red": 0.5, "green": 0.5, "blue": 0.5}
"""No arm falls: with probability 1 − 1e-9, by the task's δ."""
TALLY = 127
"""All tallies have so many decisions: where fewer wait, none is still to be closed."""
CREATE = ["create", "--name", "shop", "--variants", ",".join(MEANS), "--sites", "ams", "--delta", "1e-9"]
CREATE += ["--reward-window", "1s", "--floor", str(TALLY)]
SEED = 35


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """It goes after the processes that use it: name it before `start` and `server`."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        mount(folder, "2m")
    except CannotMount as error:
        pytest.skip(f"only who may mount can have a full disk: {error}")
    yield Disk(folder)
    unmount(folder)


def visitors() -> Visitors:
    return Visitors("shop", MEANS, random.Random(SEED))


def all_counted_and_sent(edge: Running) -> None:
    until(lambda: request(f"{edge.url('edge')}/v1/tasks/shop")["waiting"] < TALLY, "all tallies are closed")
    sent_all(edge)


def test_an_edge_whose_disk_is_full_ends_with_an_error_and_goes_on_when_there_is_space(
    disk: Disk, server: Running, start: Start
) -> None:
    assert main(["task", "--server", server.url("server"), *CREATE]) == 0
    store = disk.folder / "ams.db"
    edge = an_edge(start, server, "ams", "--store", str(store))
    people = visitors()
    assert people.visit(edge, done=lambda view: view.get("messages_kept", 0) >= 4)
    disk.fill()
    assert not people.visit(edge, done=lambda view: False)
    code, out, err = edge.ended()
    assert (code, out) == (1, "")
    assert complaints(err) == [
        f"outvote edge: error: the store {store} could not be written: database or disk is full; "
        "what was saved before is kept; free some space on its disk and try again"
    ]
    before = read_store("ams", store)
    assert len(before.messages) >= 4
    disk.free()
    again = an_edge(start, server, "ams", "--store", str(store))
    assert people.visit(again, done=lambda view: view["messages_kept"] > len(before.messages))
    all_counted_and_sent(again)
    assert again.end(signal.SIGTERM)[0] == 0
    after = read_store("ams", store)
    assert after.incarnation == before.incarnation
    assert before.messages.items() <= after.messages.items()
    until(lambda: request(server.url("server") + "/v1/tasks/shop")["messages"]["up"] == len(after.messages))
    log = read_log(server.url("nats"))
    assert faults(log, [after]) == []
    [task_id] = {task_id for task_id, _ in after.messages}
    assert replayed(log, task_id).running


def test_a_server_whose_engine_has_a_full_disk_says_so_and_ends_and_goes_on_when_there_is_space(
    disk: Disk, start: Start
) -> None:
    """Space alone does not help: after a write that failed the engine takes no more until it is started again."""
    server = start("server", "--port", "0", "--engine-port", "0", "--store", str(disk.folder / "log"))
    assert main(["task", "--server", server.url("server"), *CREATE]) == 0
    edge = an_edge(start, server, "ams")
    people = visitors()
    assert people.visit(edge, done=lambda view: view.get("messages_kept", 0) >= 4)
    all_counted_and_sent(edge)
    acknowledged = read_log(server.url("nats"))
    disk.fill()
    assert people.visit(edge, done=lambda view: not well(server))  # a page that is there is filled before
    waiting = request(f"{edge.url('edge')}/v1/tasks/shop")["messages_waiting"]
    assert waiting > 0
    assert request(server.url("server") + "/v1/tasks/shop")["name"] == "shop"  # what is known can be looked at
    code, _, err = server.ended()
    assert code == 1
    [told] = complaints(err)
    assert told.startswith("outvote server: error: the engine has stored nothing for 20 s: is the disk of ")
    disk.free()
    ports = ["--port", server.port("server"), "--engine-port", server.port("nats")]
    server = start("server", *ports, "--store", str(disk.folder / "log"))
    all_counted_and_sent(edge)
    assert edge.end(signal.SIGTERM)[0] == 0
    store = read_store("ams", Path(edge.ready["store"]))
    until(lambda: request(server.url("server") + "/v1/tasks/shop")["messages"]["up"] == len(store.messages))
    log = read_log(server.url("nats"))
    assert log[: len(acknowledged)] == acknowledged
    assert faults(log, [store]) == []


def test_asking_an_engine_whether_it_stores_leaves_nothing_in_the_log_nor_in_another(tmp_path: Path) -> None:
    async def run(url: str) -> None:
        async with await NatsLog.connect(url, name="server") as link:
            await link.prepare()
            await link.append("outvote.down.shop-1.task", b"{}")
            follower = await link.follow(lambda record: None)
            await follower.wait_current()
            await follower._ask_to_store()
            assert (await link.log_end(), await link.stored("outvote.down.shop-1.task")) == (1, b"{}")
            await link._stream.delete_stream("OUTVOTE")  # as if the engine had lost its disk
            await link.prepare()
            await follower._ask_to_store()
            assert await link.log_end() == 0

    with Engine(tmp_path / "engine", port=0) as engine:
        asyncio.run(asyncio.wait_for(run(engine.url), DEADLINE))
