"""Servers are asked to discount an edge: what they read first, whom they tell, what people see."""

from __future__ import annotations

import asyncio

import pytest

from dashboard.html import faults
from dashboard.looking import looking
from dashboard.stories import Story
from helpers.operating import VOTES, operated, vote
from helpers.processes import comes
from outvote.engine.process import Engine
from outvote.log.catch_up import Question
from outvote.log.log import Record
from outvote.log.memory import MemoryEngine


def test_operators_are_told_what_was_discounted_and_a_later_server_says_the_same(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with operated(memory) as (first, client):
            votes = (await client.post("/v1/tasks", json={**VOTES, "active_sites": 3})).json()["id"]
            await client.post("/v1/tasks", json={**VOTES, "name": "other"})
            over = (await client.post("/v1/tasks", json={**VOTES, "name": "over"})).json()["id"]
            await vote(first, votes, "ams", 3)
            await vote(first, votes, "fra", 2)
            await vote(first, over, "fra", 2)
            await client.post("/v1/tasks/over/stop")
            said = await client.post("/v1/sites/fra/discount")
            assert (said.status_code, said.json()) == (200, {"site": "fra", "tasks": ["votes"]})
            again = await client.post("/v1/sites/fra/discount")
            assert (again.status_code, again.json()) == (200, {"site": "fra", "tasks": []})
            shown = (await client.get("/v1/tasks/votes")).json()
            (told,) = shown["discounted"]
            assert (told["site"], told["messages"]) == ("fra", 1)
            assert [arm["votes"] for arm in shown["variants"]] == [[0], [0], [0], [1]]
            assert shown["messages"]["up"] == 2
            by_name = {each["site"]: each for each in (await client.get("/v1/sites")).json()["sites"]}
            assert [by_name[each]["discounted"] for each in ("ams", "fra")] == [0, 1]
            async with operated(memory) as (_, later):
                assert (await later.get("/v1/tasks/votes")).json() == shown

    asyncio.run(run())


def test_a_server_that_lags_behind_reads_the_log_before_it_says_that_there_is_nothing_to_discount(
    memory: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reading stood still: it has never heard of the edge, whose message is in the log."""

    async def run() -> None:
        async with operated(memory) as (first, client), operated(memory) as (late, late_client):
            votes = (await client.post("/v1/tasks", json={**VOTES, "active_sites": 3})).json()["id"]
            await comes(lambda: votes in late.state.tasks, "both know the task")
            held: list[Record] = []
            monkeypatch.setattr(late._reader, "_on_record", held.append)
            await vote(first, votes, "fra", 2)
            asking = asyncio.create_task(late_client.post("/v1/sites/fra/discount"))
            await comes(lambda: bool(held and late._waiters), "it waits for what it has not read")
            assert not late.state.tasks[votes].messages_of("fra")
            monkeypatch.setattr(late._reader, "_on_record", late._read)
            for record in held:
                late._read(record)
            said = await asking
            assert (said.status_code, said.json()) == (200, {"site": "fra", "tasks": ["votes"]})

    asyncio.run(run())


def test_what_the_engine_had_taken_before_it_shut_the_edge_out_and_stores_after_the_first_look_counts_no_more(
    memory: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outvote.server.sync_server.STRAGGLERS", 0.01)

    async def run() -> None:
        async with operated(memory) as (server, client):
            look, go_on, looks = server.log.log_end, asyncio.Event(), 0

            async def held() -> int:
                nonlocal looks
                looks += 1
                if looks == 2:
                    await go_on.wait()
                return await look()

            monkeypatch.setattr(server.log, "log_end", held)
            votes = (await client.post("/v1/tasks", json={**VOTES, "active_sites": 3})).json()["id"]
            other = (await client.post("/v1/tasks", json={**VOTES, "name": "other"})).json()["id"]
            await vote(server, votes, "fra", 2)
            asking = asyncio.create_task(client.post("/v1/sites/fra/discount"))
            await comes(lambda: looks == 2, "the first look is over")
            await vote(server, votes, "fra", 3, life="late")
            await vote(server, other, "fra", 3)
            go_on.set()
            said = await asking
            assert (said.status_code, said.json()) == (200, {"site": "fra", "tasks": ["votes", "other"]})
            assert [server.state.tasks[each].messages_of("fra") for each in (votes, other)] == [0, 0]
            discounts = server.state.tasks[votes].discounted
            assert [(each.edge, each.messages) for each in discounts] == [("fra", 1), ("fra", 1)]

    asyncio.run(run())


def test_all_tasks_are_told_at_once_and_one_that_is_decided_meanwhile_is_left_as_it_is(
    memory: MemoryEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outvote.server.sync_server.STRAGGLERS", 0.05)

    async def run() -> None:
        async with operated(memory) as (server, client):
            ids = [(await client.post("/v1/tasks", json={**VOTES, "name": each})).json()["id"] for each in ("a", "b")]
            for task_id in ids:
                await vote(server, task_id, "fra", 2)
            append, told, go_on = server.log.append, set[str](), asyncio.Event()

            async def held(subject: str, payload: bytes) -> bool:
                if ".discount." in subject:
                    told.add(subject)
                    await go_on.wait()
                return await append(subject, payload)

            monkeypatch.setattr(server.log, "append", held)
            asking = asyncio.create_task(client.post("/v1/sites/fra/discount"))
            await comes(lambda: len(told) == 2, "both are about to be told")
            assert (await client.post("/v1/tasks/b/stop")).status_code == 200
            go_on.set()
            said = await asking
            assert (said.status_code, said.json()) == (200, {"site": "fra", "tasks": ["a"]})
            assert [server.state.tasks[each].messages_of("fra") for each in ids] == [0, 1]
            assert (await client.get("/v1/tasks/b")).json()["discounted"] == []

    asyncio.run(run())


def test_only_edges_that_there_are_can_be_discounted(memory: MemoryEngine) -> None:
    async def run() -> None:
        async with operated(memory) as (server, client):
            for path, status, kind in (
                ("nobody", 404, "unknown-site"),
                ("a.b", 422, "invalid-site"),
                ("%20", 422, "invalid-site"),
                ("x" * 65, 422, "invalid-site"),
            ):
                refused = await client.post(f"/v1/sites/{path}/discount")
                assert (refused.status_code, refused.json()["type"].rpartition(":")[2]) == (status, kind)
            server.monitor.on_question("rome", Question("life", {}))
            heard = await client.post("/v1/sites/rome/discount")
            assert (heard.status_code, heard.json()) == (200, {"site": "rome", "tasks": []})

    asyncio.run(run())


def test_the_page_of_a_task_marks_a_discounted_edge_and_tells_when(engine: Engine) -> None:
    async def run() -> None:
        async with looking(engine) as there:
            story = Story(name="shop").play((0.6, 0.5, 0.55), lambda story: story.messages >= 12)
            task = f"/tasks/{await there.tell(story)}"
            page = await there.page(task)
            assert "discounted" not in page.text
            assert (await there.client.post("/v1/sites/bog/discount")).json()["tasks"] == ["shop"]
            page = await there.page(task)
            assert faults(page) == []
            assert "discounted" in page.one("tr", **{"data-key": "site-bog"}).text
            assert "discounted" not in page.one("tr", **{"data-key": "site-ams"}).text
            count = sum(".bog." in subject for subject, _ in story.records)
            entry = page.one("ol", **{"class": "events"}).text
            assert f"bog was discounted: {count} messages of it count no more" in entry

    asyncio.run(run())
