"""Which edges are alive: from their signs of life, from the log and from what tasks declare; every server agrees."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from helpers.operating import VOTES, operated, vote
from helpers.processes import comes
from outvote.edge.site import Edge
from outvote.log.catch_up import ASK_EVERY, Question
from outvote.log.memory import MemoryEngine
from outvote.server import liveness as signs
from outvote.server import monitor
from outvote.server.admin.fleet import FleetSite, SiteList, site_list
from outvote.server.changes import FLEET
from outvote.server.liveness import SILENT_AFTER, Liveness
from outvote.server.sync_server import SyncServer

START = 1_000.0
NAMED: dict[str, Any] = {**VOTES, "sites": ["ams", "fra", "lis"]}
QUESTION = Question("life", {})


class Clock:
    """Time as a test wants it."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def edge_named(server: SyncServer, name: str) -> FleetSite:
    return next(each for each in site_list(server).sites if each.site == name)


# ---- without a network


@pytest.mark.parametrize(
    ("heard", "seen", "after", "state"),
    [
        # heard at START, now so many seconds after
        (True, False, 0.0, "alive"),
        (True, False, SILENT_AFTER, "alive"),
        (True, False, SILENT_AFTER + 0.1, "silent"),
        (True, True, SILENT_AFTER + 0.1, "silent"),
        # never heard by this server, which has listened for so many seconds
        (False, True, 0.0, "awaited"),
        (False, False, SILENT_AFTER, "awaited"),
        (False, True, SILENT_AFTER + 0.1, "silent"),
        (False, False, SILENT_AFTER + 0.1, "missing"),
    ],
)
def test_the_state_of_an_edge_follows_from_its_last_sign_and_the_log(
    heard: bool, seen: bool, after: float, state: str
) -> None:
    found = Liveness(START)
    if heard:
        assert found.hear("ams", START)
    assert found.state("ams", seen=seen, now=START + after) == state


def test_one_lost_sign_of_life_makes_nobody_silent_and_two_do() -> None:
    assert 2 * ASK_EVERY < SILENT_AFTER < 3 * ASK_EVERY


def test_a_sign_is_news_if_the_edge_was_away_before() -> None:
    found = Liveness(START)
    assert found.hear("ams", START)
    assert not found.hear("ams", START + SILENT_AFTER)
    assert found.hear("ams", START + 2 * SILENT_AFTER + 1)
    assert found.last == {"ams": START + 2 * SILENT_AFTER + 1}


@pytest.mark.parametrize("name", ["", "a b", "a.b", "ä", "a" * 65, "<b>", "*", "ams\n"])
def test_what_is_no_name_is_not_remembered(name: str) -> None:
    found = Liveness(START)
    assert not found.hear(name, START)
    assert found.last == {}


def test_only_so_many_names_are_remembered_and_those_stay_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signs, "MOST_EDGES", 2)
    found = Liveness(START)
    assert [found.hear(name, START) for name in ("ams", "fra", "lis")] == [True, True, False]
    found.hear("ams", START + 5)
    assert found.last == {"ams": START + 5, "fra": START}


# ---- with a clock of our own


def test_edges_are_awaited_alive_silent_missing_and_alive_again(memory: MemoryEngine, edge: Edge) -> None:
    clock = Clock()

    async def run() -> None:
        async with operated(memory, clock=clock) as (server, client):
            await client.post("/v1/tasks", json=NAMED)

            async def states() -> dict[str, str]:
                found = (await client.get("/v1/sites")).json()
                states = {each["site"]: each["state"] for each in found["sites"]}
                counts = {state: list(states.values()).count(state) for state in found["counts"]}
                assert found["counts"] == counts
                assert (found["silent_after"], found["since"]) == (SILENT_AFTER, START)
                return states

            assert await states() == {"ams": "awaited", "fra": "awaited", "lis": "awaited"}
            clock.now += 20
            await edge.connect(memory.connect("ams"))
            assert await edge.catch_up()
            await comes(lambda: "ams" in server.monitor.liveness.last)
            assert edge_named(server, "ams").last_sign == START + 20
            clock.now = START + SILENT_AFTER + 1
            assert await states() == {"ams": "alive", "fra": "missing", "lis": "missing"}
            clock.now = START + 20 + SILENT_AFTER + 1
            assert await states() == {"ams": "silent", "fra": "missing", "lis": "missing"}
            assert await edge.catch_up()
            await comes(lambda: server.monitor.liveness.last["ams"] == clock.now)
            assert await states() == {"ams": "alive", "fra": "missing", "lis": "missing"}
            await client.delete("/v1/tasks/votes")  # nobody is expected any more
            assert await states() == {"ams": "alive"}
            await edge.stop()

    asyncio.run(run())


def test_who_watches_is_told_that_an_edge_has_fallen_silent(
    memory: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "LOOK_EVERY", 0.01)
    clock = Clock()

    async def run() -> None:
        async with operated(memory, clock=clock) as (server, _):
            server.monitor.on_question("ams", QUESTION)
            looking = asyncio.create_task(server.look_around())
            watching = server.monitor.changes.watch()
            assert await anext(watching) == frozenset()
            assert await anext(watching) == {FLEET}  # the first look
            clock.now += SILENT_AFTER + 1
            assert await anext(watching) == {FLEET}
            assert server.monitor.edge_counts() == {"silent": 1}
            server.monitor.on_question("ams", QUESTION)
            assert await anext(watching) == {FLEET}
            assert server.monitor.edge_counts() == {"alive": 1}
            looking.cancel()

    asyncio.run(run())


def test_a_server_awaits_edges_from_when_it_can_hear_them(memory: MemoryEngine) -> None:
    """However long it took to read the log."""
    clock = Clock()

    async def run() -> None:
        async with operated(memory, clock=clock) as (_, client):
            await client.post("/v1/tasks", json=NAMED)
            again = SyncServer(memory.connect("server"), clock=clock)
            clock.now += 10 * SILENT_AFTER
            await again.start()
            assert {each.state for each in site_list(again).sites} == {"awaited"}

    asyncio.run(run())


def test_a_server_that_is_new_knows_from_the_log_what_edges_sent_and_in_how_many_lives(memory: MemoryEngine) -> None:
    clock = Clock()

    async def run() -> None:
        async with operated(memory, clock=clock) as (server, client):
            task_id = (await client.post("/v1/tasks", json=NAMED)).json()["id"]
            await vote(server, task_id, "ams", 0)
            await vote(server, task_id, "fra", 1, life="one")
            assert not edge_named(server, "fra").several_lives
            await vote(server, task_id, "fra", 1, life="two")
            server.monitor.on_question("ams", QUESTION)
            before = site_list(server).sites
        async with operated(memory, clock=clock) as (server, _):
            after: SiteList = site_list(server)
            ams, fra, lis = after.sites
            assert [each.state for each in after.sites] == ["awaited"] * 3
            assert (ams.last_sign, ams.last_message) == (None, before[0].last_message)
            assert ams.last == ams.last_message
            assert (ams.messages, ams.bits, ams.tasks, ams.several_lives) == (1, 2, 1, False)
            assert (fra.messages, fra.bits, fra.tasks, fra.several_lives) == (2, 4, 1, True)
            assert (lis.last_sign, lis.last_message, lis.last, lis.messages) == (None, None, None, 0)
            clock.now += SILENT_AFTER + 1
            assert {each.site: each.state for each in site_list(server).sites} == {
                "ams": "silent",
                "fra": "silent",
                "lis": "missing",
            }

    asyncio.run(run())
