"""The kill switch on the pages: asked before, shown while it is on, and taken back."""

from __future__ import annotations

import asyncio

import pytest

from dashboard.html import Page, faults, outside
from dashboard.looking import Looking, looking
from dashboard.stories import Story
from outvote.engine.process import Engine


def banners(page: Page) -> list[str]:
    return [each.text for each in page.all("div", role="alert") if each.attributes.get("data-key") == "killed"]


@pytest.mark.parametrize("fallback", [None, "bold"])
def test_a_task_is_killed_and_revived_by_forms(engine: Engine, fallback: str | None) -> None:
    serves = fallback or "classic"

    async def visit(there: Looking) -> None:
        task = f"/tasks/{await there.tell(Story(name='shop', fallback=fallback))}"
        page = await there.page(task)
        assert f"{task}/kill" in page.links
        assert f"{task}/revive" not in page.links
        assert banners(page) == []
        sure = await there.page(f"{task}/kill")
        assert faults(sure) == outside(sure) == []
        form = sure.one("form", method="post")
        assert form.attributes["action"] == f"{task}/kill"
        assert f"sites serve {serves} to everybody at once" in sure.text
        assert ("names no fallback" in sure.text) == (fallback is None)
        assert task in sure.links, "it can be kept as it is"
        assert not (await there.client.get(f"/v1{task}")).json()["killed"], "to look is not to kill"

        killed = await there.send(f"{task}/kill")
        assert (killed.status_code, killed.headers["location"]) == (303, task)
        assert (await there.client.get(f"/v1{task}")).json()["killed"]
        page = await there.page(task)
        assert faults(page) == []
        [said] = banners(page)
        assert "The kill switch is on" in said
        assert f"Sites serve {serves} to everybody" in said
        assert f"{task}/revive" in page.links
        assert f"{task}/kill" not in page.links
        assert "killed" in (await there.page("/")).one("tr", **{"data-key": task.removeprefix("/tasks/")}).text

        sure = await there.page(f"{task}/revive")
        assert sure.one("form", method="post").attributes["action"] == f"{task}/revive"
        revived = await there.send(f"{task}/revive")
        assert (revived.status_code, revived.headers["location"]) == (303, task)
        assert banners(await there.page(task)) == []
        assert "killed" not in (await there.page("/")).one("tr", **{"data-key": task.removeprefix("/tasks/")}).text

    async def run() -> None:
        async with looking(engine) as there:
            await visit(there)

    asyncio.run(run())
