"""The kill switch: edges serve the fallback at once and learn nothing from it, and the task goes on where it was."""

from __future__ import annotations

import asyncio
import json
import signal
import urllib.error
from typing import Any

import pytest

from faults.simulated.clock import run as in_virtual_time
from helpers.edge_http import ARMS, ask, eliminate, host, task
from helpers.processes import Running, Start, an_edge, request, until
from outvote.cli.main import main
from outvote.core.decisions import Ticket
from outvote.edge.ofrep import FLAGS
from outvote.edge.site import Edge
from outvote.edge.store import EdgeStore
from outvote.log.catch_up import ASK_EVERY, Answer, Question, TaskUpdate
from outvote.log.memory import MemoryEngine
from outvote.server.sync_server import SyncServer

SHOP: dict[str, Any] = {
    "name": "shop", "protocol": "tally", "variants": ["red", "green", "blue"], "sites": 2, "epsilon": 0, "delta": 0.05,
    "fallback": "blue", "reward_window": 5,
}  # fmt: skip


def at(server: Running, path: str = "") -> str:
    return f"{server.url('server')}/v1/tasks{path}"


def switch(server: Running, verb: str) -> dict[str, Any]:
    return request(at(server, f"/shop/{verb}"), method="POST")


def view(edge: Running) -> dict[str, Any]:
    try:
        return request(f"{edge.url('edge')}/v1/tasks/shop")
    except urllib.error.HTTPError as error:  # it has not heard of the task yet
        error.close()
        return {}


def decide(edge: Running) -> dict[str, Any]:
    return request(f"{edge.url('edge')}/v1/tasks/shop/decide", method="POST")


def evaluate(edge: Running) -> tuple[str, str]:
    found = request(f"{edge.url('edge')}{FLAGS}/shop", {})
    return found["variant"], found["reason"]


def reward(edge: Running, decision: dict[str, Any]) -> None:
    request(f"{edge.url('edge')}/v1/tasks/shop/reward", {"ticket": decision["ticket"], "reward": 1})


def knows(killed: bool, *edges: Running) -> None:
    until(lambda: all(view(edge).get("killed") is killed for edge in edges), f"all edges know that killed is {killed}")


def test_all_edges_serve_the_fallback_and_what_was_decided_before_still_counts(server: Running, start: Start) -> None:
    edges = [an_edge(start, server, name) for name in ("ams", "fra")]
    made = request(at(server), SHOP)
    knows(False, *edges)
    before = [[decide(edge) for _ in range(3)] for edge in edges]  # a whole tally each
    assert switch(server, "kill") == made | {"killed": True, "status": "killed"}
    knows(True, *edges)
    shown = request(at(server, "/shop"))
    assert (shown["killed"], shown["stopped"], shown["status"]) == (True, False, "killed")
    for edge, decisions in zip(edges, before, strict=True):
        killed = [decide(edge) for _ in range(7)]
        assert {(each["variant"], each["ticket"]) for each in killed} == {("blue", "uncounted")}
        assert evaluate(edge) == ("blue", "DISABLED")
        [flag] = request(f"{edge.url('edge')}{FLAGS}", {})["flags"]
        assert (flag["variant"], flag["reason"], flag["metadata"]["ticket"]) == ("blue", "DISABLED", "uncounted")
        for decision in (*killed, *decisions):
            reward(edge, decision)
        assert sum(each["rewards"] for each in view(edge)["seen"]) == 3
    for edge in edges:
        until(lambda edge=edge: view(edge)["messages_kept"] == 1, "what was decided before counts")  # type: ignore[misc]
    until(lambda: request(at(server, "/shop"))["messages"]["up"] == 2, "and the fleet is told")
    switch(server, "revive")
    knows(False, *edges)
    for edge, decisions in zip(edges, before, strict=True):
        assert evaluate(edge)[1] == "SPLIT"
        assert decide(edge)["variant"] != decisions[0]["variant"], "it goes on with the arm whose turn it is"


def test_commands_kill_and_revive_and_the_log_of_the_server_tells(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    server = start("server", "--port", "0", "--engine-port", "0", "--store", "log", "--log", "json")
    made = request(at(server), SHOP)

    def told(*arguments: str, code: int = 0) -> str:
        assert main(["task", *arguments, "--server", server.url("server")]) == code
        out, err = capsys.readouterr()
        assert bool(err) == bool(code)
        return out or err

    assert told("kill", "shop") == f"killed shop ({made['id']}): sites serve its fallback\n"
    assert told("kill", "shop").startswith("killed shop")  # again
    assert json.loads(told("revive", made["id"], "--json")) == made | {"killed": False}
    for verb in ("kill", "revive"):
        assert "unknown task" in told(verb, "nobody", code=1)
        with pytest.raises(urllib.error.HTTPError) as refused:
            request(at(server, f"/nobody/{verb}"), method="POST")
        with refused.value as error:
            assert error.code == 404
    code, _, err = server.end(signal.SIGTERM)
    events = [json.loads(line) for line in err.splitlines()]
    assert code == 0
    switched = [each for each in events if each["event"] in ("task_killed", "task_revived")]
    assert [(each["event"], each["level"], each["task"]) for each in switched] == [
        ("task_killed", "warning", "shop"), ("task_revived", "warning", "shop"),
    ]  # fmt: skip


def switched(killed: bool, switches: int) -> Answer:
    """Of a server that has read of so many uses of the switch."""
    return Answer(read=1, tasks={"shop-1": TaskUpdate(False, -1, 0, killed, switches)})


def test_an_edge_that_connects_at_the_moment_of_a_kill_hears_of_it_soon(edge: Edge) -> None:
    """The record was stored just before the edge listened, and the server that answers reads it just after."""
    host(edge, task())
    asked: list[Question] = []

    def reply(name: str, question: Question) -> Answer:
        asked.append(question)
        return switched(True, 1) if len(asked) > 1 else switched(False, 0)

    async def run() -> None:
        engine = MemoryEngine()
        await engine.connect("server").answer(reply)
        await edge.start(engine.connect("ams"))
        await asyncio.sleep(ASK_EVERY / 2)
        assert (edge.tasks["shop"].killed, len(asked)) == (True, 2)
        await edge.stop()

    in_virtual_time(run())


def test_two_servers_at_once_agree_on_who_was_last(edge: Edge) -> None:
    """Operators of a simulated schedule touch a task one after the other: here they do not."""

    async def run() -> None:
        engine = MemoryEngine()
        servers = [SyncServer(engine.connect("server")) for _ in range(2)]
        for server in servers:
            await server.start()
        task_id = await servers[0].create(task())
        await edge.connect(engine.connect("ams"))
        assert await edge.catch_up()
        verbs = (True, False, False, True, True, True, False, True, False, False)
        await asyncio.gather(*(servers[turn % 2].switch(task_id, killed=on) for turn, on in enumerate(verbs)))
        for server, killed in ((servers[1], None), (servers[1], True), (servers[0], True), (servers[1], False)):
            if killed is not None:
                await server.switch(task_id, killed=killed)
            await asyncio.sleep(1.0)
            said = {each.state.tasks[task_id].killed for each in servers} | {edge.tasks["shop"].killed}
            assert len(said) == 1
            assert killed in (None, *said)

    in_virtual_time(run())


# ---- one edge, one fold


def test_what_is_old_or_comes_again_changes_nothing(edge: Edge, caplog: pytest.LogCaptureFixture) -> None:
    hosted = host(edge, task(fallback=ARMS[1]))
    caplog.set_level("INFO")

    def hear(number: int, payload: bytes) -> bool:
        edge.on_record(f"outvote.live.shop-1.kill.{number}", payload)
        return hosted.killed

    assert hear(0, b"true")
    assert hear(0, b"true")
    assert not hear(1, b"false")
    assert not hear(0, b"true"), "an old record came late"
    assert hear(4, b"true"), "those between were missed"
    assert hear(3, b"false")
    edge.apply_catch_up(switched(False, 2))
    assert hosted.killed, "the server that answered lags behind"
    edge.apply_catch_up(switched(False, 6))
    assert not hosted.killed
    edge.apply_catch_up(switched(False, 0))
    assert (hosted.killed, hosted.switches) == (False, 6)  # the server that answered has read of no switch yet
    said = [word for word in caplog.text.split() if word in ("task_killed", "task_revived")]
    assert said == ["task_killed", "task_revived", "task_killed", "task_revived"]


def test_a_saved_edge_knows_its_switch(edge: Edge) -> None:
    host(edge, task(fallback=ARMS[1]))
    edge.on_record("outvote.live.shop-1.kill.2", b"true")
    edge.flush()
    assert isinstance(edge.store, EdgeStore)
    again = Edge("ams", edge.store, clock=lambda: 0.0)
    assert (again.tasks["shop"].killed, again.tasks["shop"].switches) == (True, 3)
    assert again.decide(again.find("shop")) == Ticket.uncounted(1)


def test_a_killed_task_serves_its_fallback_whoever_has_won_and_without_one_the_first_that_remains(edge: Edge) -> None:
    hosted = host(edge, task(fallback=ARMS[1]))
    edge._join("web-7", task(name="web").to_json())
    for task_id in ("shop-1", "web-7"):
        edge.on_record(f"outvote.live.{task_id}.kill.0", b"true")
    eliminate(hosted, 1)
    eliminate(edge.tasks["web"], 0)
    assert edge.decide(edge.find("shop")) == edge.decide(edge.find("web")) == Ticket.uncounted(1)
    assert ask(edge, "GET", "/v1/tasks/web").json()["killed"] is True


def test_while_a_task_is_killed_what_was_decided_before_counts_and_what_is_served_does_not(edge: Edge) -> None:
    hosted = host(edge, task())
    before = edge.decide(hosted)
    edge.on_record("outvote.live.shop-1.kill.0", b"true")
    unchanged = hosted.player.snapshot()
    edge.reward(hosted, Ticket.parse(str(edge.decide(hosted))), 1.0)
    assert hosted.player.snapshot() == unchanged
    edge.reward(hosted, before, 1.0)
    assert hosted.player.decisions.seen.rewards == [1, 0, 0]
