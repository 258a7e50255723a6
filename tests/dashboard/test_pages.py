"""Every page in this process, on a real engine, as somebody meets it whose browser runs no script."""

from __future__ import annotations

import asyncio
import importlib.resources
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from dashboard.html import Page, faults, outside
from dashboard.looking import HOSTILE, Looking, gallery, looking, shown
from dashboard.stories import GOOD, SITES, SOON, TALLY, Story
from helpers.processes import comes
from outvote.core.task import Task
from outvote.dashboard import fleet_page
from outvote.dashboard.app import POLICY
from outvote.engine.process import Engine
from outvote.log.catch_up import Question
from outvote.log.expectation import Expectation
from outvote.presenters.task_fields import to_json
from outvote.server.liveness import SILENT_AFTER

FORM = {
    "name": "shop",
    "protocol": "tally",
    "variants": "red\ngreen",
    "sites": "2",
    "reward_window": "60s",
    "epsilon": "0",
    "delta": "0.05",
}
PROBLEM = "application/problem+json"

Look: TypeAlias = Callable[[Callable[[Looking], Coroutine[Any, Any, None]]], None]


@pytest.fixture
def look(engine: Engine) -> Look:
    """Looks at a new server."""

    def at(visit: Callable[[Looking], Coroutine[Any, Any, None]]) -> None:
        async def run() -> None:
            async with looking(engine) as there:
                await visit(there)

        asyncio.run(run())

    return at


def safe(response: httpx.Response) -> None:
    """Nothing from outside, nothing kept, and no frame around it."""
    said = dict(part.strip().split(" ", 1) for part in response.headers["content-security-policy"].split(";"))
    assert (said["default-src"], said["script-src"], said["connect-src"]) == ("'none'", "'self'", "'self'")
    assert said["style-src"] == "'self'"
    assert (said["form-action"], said["base-uri"], said["frame-ancestors"]) == ("'self'", "'none'", "'none'")
    assert not any("http" in allowed or "*" in allowed for allowed in said.values())
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "same-origin"


# ---- all pages


def test_every_page_is_whole_leads_somewhere_and_needs_nobody_else(look: Look) -> None:
    """In one test: a task in every state takes its time."""

    async def visit(there: Looking) -> None:
        stories = gallery()
        tasks = {name: await there.tell(story) for name, story in stories.items()}
        statuses = {each["name"]: each["status"] for each in (await there.client.get("/v1/tasks")).json()["tasks"]}
        assert statuses == {
            **dict.fromkeys(tasks, "running"),
            "finished": "finished",
            "won": "finished",
            "held": "held",
            "stopped": "stopped",
        }
        pages = ["/", "/?q=nobody", "/fleet", "/fleet?q=nobody", "/tasks/new", "/tasks/new?plan=1&variants=x"]
        pages += [f"/tasks/{task}" for task in tasks.values()]
        pages += [f"/tasks/{tasks['running']}/stop", f"/tasks/{tasks['hostile']}/delete"]
        found: set[str] = set()
        for path in pages:
            response = await there.client.get(path)
            page = shown(response)
            safe(response)
            assert faults(page) == [], path
            assert outside(page) == [], path
            assert page.all("script") == [each for each in page.all("script") if "src" in each.attributes]
            assert "<" not in page.text.replace(HOSTILE[0], "").replace(HOSTILE[1], ""), path
            found |= page.links
            for form in page.all("form", method="post"):
                assert urlsplit(form.attributes["action"]).path.startswith("/tasks/")
            head = await there.client.head(path)
            assert (head.status_code, head.headers["content-security-policy"]) == (200, POLICY)
        assert f"/tasks/{tasks['running']}" in found
        for link in found:
            assert (await there.client.get(link)).status_code < 400, link
        await hostile(there, tasks["hostile"])
        await figures(there, tasks, stories)

    look(visit)


async def hostile(there: Looking, task: str) -> None:
    """Names are text wherever they are shown."""
    for path in (f"/tasks/{task}", "/", f"/tasks/{task}/stop"):
        page = await there.page(path)
        assert not [each for each in page.elements if "onerror" in each.attributes]
        assert not [each for each in page.all("script") if "alert" in each.text]
    page = await there.page(f"/tasks/{task}")
    said = (await there.client.get(f"/v1/tasks/{task}")).json()
    table = page.all("tbody")[0]
    assert {each.text for each in page.all("span", **{"class": "name"}) if table in each.ancestors()} == set(HOSTILE)
    assert str(said["leader"]) in page.one("p", **{"class": "headline"}).text


async def figures(there: Looking, tasks: dict[str, str], stories: dict[str, Story]) -> None:
    """Each page has the figures of its task, and what it says is what the API says."""
    for name, wanted in {
        "new": {"timeline"},
        "running": {"means", "lifts", "timeline"},
        "dme": {"votes", "timeline"},
        "edme": {"votes", "timeline"},
    }.items():
        page = await there.page(f"/tasks/{tasks[name]}")
        drawn = {each.attributes["data-key"]: each for each in page.all("div", **{"class": "chart"})}
        assert set(drawn) == {f"chart-{each}" for each in wanted}
        for each in drawn.values():
            inside = [child for child in page.elements if each in child.ancestors()]
            assert {"svg", "line", "text"} <= {child.tag for child in inside}
            assert each.attributes["aria-label"]
        ledger = stories[name].found.ledger
        bits = page.all("p", **{"class": "figure"})[0].text
        assert bits.startswith(f"{ledger.total_bits:,} of ")
    won = await there.page(f"/tasks/{tasks['finished']}")
    (order,) = won.all("ol", **{"class": "events"})
    told = [each.text.split(" UTC ")[1] for each in won.all("li") if each.above is order]
    said = (await there.client.get(f"/v1/tasks/{tasks['finished']}")).json()
    gone = sorted(
        (arm["eliminated"]["number"], arm["index"], arm["variant"], arm["eliminated"]["after_messages"])
        for arm in said["variants"]
        if arm["eliminated"]
    )
    assert told == ["created", *(f"{name} is out, after {sent} messages" for _, _, name, sent in gone), "classic wins"]
    for name in ("running", "finished", "won"):
        await ordered(there, tasks[name])
    held = await there.page(f"/tasks/{tasks['held']}")
    assert "The decision is held back." in held.text
    for name in ("dme", "edme", "won"):
        page = await there.page(f"/tasks/{tasks[name]}")
        assert "%" not in page.text
        assert " points" not in page.text
        said = (await there.client.get(f"/v1/tasks/{tasks[name]}")).json()
        for needed in said["votes_needed"]:
            assert f", of {needed:g} needed" in page.text
        for arm in said["variants"]:
            row = page.one("tr", **{"data-key": f"variant-{arm['index']}"})
            assert [cell.text for cell in page.all("td") if cell.above is row] == list(map(str, arm["votes"]))


async def ordered(there: Looking, task: str) -> None:
    """The best variant is first, and those that are out are last, the latest of them first."""
    page = await there.page(f"/tasks/{task}")
    table = page.all("tbody")[0]
    names = [each.text for each in page.all("span", **{"class": "name"}) if table in each.ancestors()]
    arms = (await there.client.get(f"/v1/tasks/{task}")).json()["variants"]
    out = sorted((arm for arm in arms if arm["eliminated"]), key=lambda arm: -arm["eliminated"]["number"])
    left = sorted((arm for arm in arms if not arm["eliminated"]), key=lambda arm: -arm.get("mean", 0))
    assert names == [arm["variant"] for arm in (*left, *out)]


def test_an_empty_server_says_how_to_begin(look: Look) -> None:
    async def visit(there: Looking) -> None:
        page = await there.page("/")
        assert faults(page) == []
        assert "No task yet" in page.text
        assert {"/tasks/new", "/fleet"} <= page.links
        fleet = await there.page("/fleet")
        assert faults(fleet) == []
        assert "No site yet" in fleet.text

    look(visit)


# ---- who is refused, and how


def test_wrong_paths_and_methods_are_pages_to_people_and_problems_to_programs(look: Look) -> None:
    async def visit(there: Looking) -> None:
        for method, path, status in (
            ("GET", "/nothing", 404),
            ("GET", "/tasks/nobody", 404),
            ("GET", "/tasks/nobody/stop", 404),
            ("GET", "/tasks/nobody/kill", 404),
            ("POST", "/tasks/nobody/delete", 404),
            ("GET", "/tasks/", 404),
            ("GET", "/static/nothing.css", 404),
            ("PUT", "/fleet", 405),
            ("GET", "/tasks/nobody/expectation", 405),
        ):
            refused = await there.client.request(method, path)
            page = shown(refused, status)
            assert faults(page) == []
            safe(refused)
            assert page.one("a", **{"class": "button"}).attributes["href"] == "/"
            told = await there.client.request(method, path, headers={"Accept": "*/*"})
            assert (told.status_code, told.headers["content-type"]) == (status, PROBLEM)
            assert told.json()["status"] == status
        api = await there.client.get("/v1/tasks/nobody")
        assert (api.status_code, api.headers["content-type"]) == (404, PROBLEM)

    look(visit)


FOREIGN = [{"Origin": "http://elsewhere"}, {"Origin": "http://server", "Sec-Fetch-Site": "cross-site"}]
OWN: list[dict[str, str]] = [{}, {"Origin": "http://server", "Sec-Fetch-Site": "same-origin"}]


def test_other_sites_change_nothing_and_programs_and_our_own_pages_do(look: Look) -> None:
    async def visit(there: Looking) -> None:
        task = (await there.send("/tasks/new", **FORM)).headers["location"]
        before = there.server.state.read
        changes = [("POST", "/tasks/new"), ("POST", f"{task}/stop"), ("POST", f"{task}/delete")]
        changes += [("POST", f"{task}/expectation"), ("POST", "/v1/tasks"), ("DELETE", f"/v1{task}")]
        changes += [("POST", f"/v1{task}/stop"), ("PUT", f"/v1{task}/expectation")]
        changes += [("POST", f"{at}{task}/{verb}") for at in ("", "/v1") for verb in ("kill", "revive")]
        for headers in FOREIGN:
            for method, path in changes:
                refused = await there.client.request(method, path, headers=headers, content=b"{}")
                assert refused.status_code == 403, (method, path, headers)
                kind = PROBLEM if path.startswith("/v1/") else "text/html; charset=utf-8"
                assert refused.headers["content-type"] == kind
            assert (await there.client.get("/", headers=headers)).status_code == 200  # to look changes nothing
        assert there.server.state.read == before
        for number, headers in enumerate(OWN):
            made = await there.client.post("/tasks/new", data={**FORM, "name": f"t{number}"}, headers=headers)
            assert made.status_code == 303
            asked = await there.client.post(
                "/v1/tasks", json={**to_json(Task(**TALLY)), "name": f"p{number}"}, headers=headers
            )
            assert asked.status_code == 201

    look(visit)


# ---- forms


def test_a_task_is_created_expected_of_stopped_and_deleted_by_forms(look: Look) -> None:
    async def visit(there: Looking) -> None:
        made = await there.send("/tasks/new", **FORM, traffic="5 000", difference="", baseline="")
        assert made.status_code == 303
        task = made.headers["location"]
        found = there.server.state.tasks[task.removeprefix("/tasks/")]
        assert found.task == Task(
            name="shop", protocol="tally", arms=["red", "green"], players=2, reward_window=60, epsilon=0, delta=0.05
        )
        assert found.expectation == Expectation(traffic=5_000)
        page = await there.page(task)
        assert page.value("traffic") == "5000"
        said = await there.send(f"{task}/expectation", traffic="1e4", difference="0.02", baseline="0")
        assert (said.status_code, said.headers["location"]) == (303, task)
        assert found.expectation == Expectation(traffic=10_000, difference=0.02, baseline=0)
        page = await there.page(task)
        fields = [page.value(name) for name in ("traffic", "difference", "baseline")]
        assert fields == ["10000", "0.02", "0"]
        wrong = await there.send(f"{task}/expectation", traffic="many")
        assert "Traffic must be a number like 50000, 50,000, 0.05 or 5%, got 'many'." in shown(wrong, 422).text
        sure = await there.page(f"{task}/stop")
        assert sure.one("form", method="post").attributes["action"] == f"{task}/stop"
        stopped = await there.send(f"{task}/stop")
        assert (stopped.status_code, stopped.headers["location"]) == (303, task)
        page = await there.page(task)
        assert page.one("p", **{"class": "headline"}).text.startswith("Stopped, without a winner. Sites serve red")
        assert f"{task}/stop" not in page.links  # nor is there anything to be expected of it
        assert f"{task}/expectation" not in page.leads
        deleted = await there.send(f"{task}/delete")
        assert (deleted.status_code, deleted.headers["location"]) == (303, "/")
        await there.page(task, 404)

    look(visit)


def banners(page: Page) -> list[str]:
    return [each.text for each in page.all("div", role="alert") if each.attributes.get("data-key") == "killed"]


@pytest.mark.parametrize("fallback", [None, "bold"])
def test_a_task_is_killed_and_revived_by_forms(look: Look, fallback: str | None) -> None:
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

    look(visit)


def test_what_is_refused_comes_back_with_what_was_typed(look: Look) -> None:
    async def visit(there: Looking) -> None:
        typed = {
            **FORM,
            "delta": "2",
            "variants": "<b>\ngreen",
            "protocol": "edme",
            "epsilon": "0.5",
            "instances": "3",
            "quorum": "certified",
        }
        page = shown(await there.send("/tasks/new", **typed), 422)
        assert faults(page) == []
        assert page.one("div", id="problem").text.startswith("Invalid task. ")
        assert {name: page.value(name) for name in typed} == typed
        assert "open" in page.one("details").attributes  # what was typed there is seen
        for form in ({**FORM, "traffic": "-1"}, {**FORM, "difference": "0.5", "baseline": "0.9"}):
            page = shown(await there.send("/tasks/new", **form), 422)
            assert {name: page.value(name) for name in form} == form
        assert there.server.state.read == 0
        await there.send("/tasks/new", **FORM)
        page = shown(await there.send("/tasks/new", **{**FORM, "delta": "0.1"}), 409)
        assert "Name must be a new one, got 'shop', which shop-" in page.one("div", id="problem").text
        assert page.value("delta") == "0.1"

    look(visit)


def test_what_is_refused_is_said_beside_its_field(look: Look) -> None:
    async def visit(there: Looking) -> None:
        wrong = {"variants": "red", "sites": "0", "protocol": "x", "quorum": "certified", "tolerate": "1"}
        for name, value in wrong.items():
            page = shown(await there.send("/tasks/new", **{**FORM, name: value}), 422)
            assert faults(page) == []
            (marked,) = [each for each in page.elements if "aria-invalid" in each.attributes]
            assert (marked.attributes["name"], marked.attributes["aria-invalid"]) == (name, "true")
            assert marked.attributes["aria-describedby"] == "wrong"
            beside = page.one("p", id="wrong").text
            assert beside.lower().startswith(name)
            assert page.one("div", id="problem").text.endswith(beside)

    look(visit)


def test_the_new_form_holds_usual_values_or_those_of_its_address(look: Look) -> None:
    async def visit(there: Looking) -> None:
        page = await there.page("/tasks/new")
        assert (page.value("variants"), page.value("sites"), page.value("protocol")) == (
            "classic\nbold\ngreen",
            "8",
            "tally",
        )
        named = await there.page("/tasks/new?name=shop")
        assert (named.value("name"), named.value("sites")) == ("shop", "8")
        chosen = await there.page("/tasks/new?variants=a,%3Cb%3E&protocol=dme&quorum=certified&sites=")
        fields = [chosen.value(name) for name in ("variants", "protocol", "quorum", "sites", "delta")]
        assert fields == ["a,<b>", "dme", "certified", "", ""]

    look(visit)


def test_the_plan_beside_the_form_can_be_chosen_and_created(look: Look) -> None:
    async def visit(there: Looking) -> None:
        asked = "variants=2&sites=4&reward_window=20s&difference=0.4&traffic=1000&name=shop&delta=0.05&tolerate=1"
        page = await there.page(f"/tasks/new?plan=1&{asked}")
        assert faults(page) == []
        aside = page.one("aside", id="plan")
        assert "2 variants, 4 sites, 1 of which may lie; the best is better by 0.4." in aside.text
        assert "Recommended: tally" in aside.text
        assert aside.text.count("it holds even if 1 of 4 sites lie") == 6
        choices = [each for each in page.all("a") if "data-choose" in each.attributes]
        assert len(choices) == 6
        for number, choice in enumerate(choices):
            chosen = json.loads(choice.attributes["data-choose"])
            given = dict(parse_qsl(urlsplit(choice.attributes["href"]).query))
            assert {name: str(value) for name, value in chosen.items() if value}.items() <= given.items()
            made = await there.send("/tasks/new", **{**given, "name": f"t{number}"})
            assert made.status_code == 303, made.text
            task = there.server.state.tasks[made.headers["location"].removeprefix("/tasks/")].task
            assert (task.protocol, task.tolerate, task.reward_window) == (chosen["protocol"], 1, 20)
        part = await there.client.get(f"/tasks/new/plan?{asked}")
        assert (part.status_code, part.headers["content-security-policy"]) == (200, POLICY)
        alone = Page(f"<body>{part.text}</body>")
        assert alone.text.split(". Guarantee")[0] == aside.text.split(". Guarantee")[0]
        for wrong, detail in (
            ("variants=1", "Variants must be a whole number"),
            ("delta=x", "Delta must be a number like 50000, 50,000, 0.05 or 5%, got 'x'."),
            ("sites=8&tolerate=3&difference=0.4", "dme is left out: if the 3 sites that may lie said nothing"),
            ("baseline=0.8&difference=0.4", "Baseline must be a number from 0 to 0.6, got 0.8"),
            ("sites=8&active_sites=9", "Active sites must be a number above 0 and at most the 8 sites, got 9"),
            ("variants=3&baseline=0&difference=0.4", "It never ends: most variants never succeed"),
        ):
            text = (await there.client.get(f"/tasks/new/plan?{wrong}")).text
            assert detail in Page(f"<body>{text}</body>").text

    look(visit)


# ---- to find something


def test_a_task_that_cannot_be_read_is_listed_with_why(look: Look) -> None:
    async def visit(there: Looking) -> None:
        record = {**Story().task.to_json(), "rules": 7}
        await there.server.log.append("outvote.down.shop-1.task", json.dumps(record).encode())
        await comes(lambda: "shop-1" in there.server.state.unreadable, "the record is read")
        page = await there.page("/")
        assert faults(page) == []
        told = page.one("div", role="alert", **{"data-key": "unreadable-shop-1"}).text
        assert told.startswith("The task shop-1 cannot be read. This server does not judge it: rules must be")
        assert told.endswith("or delete it: outvote task delete shop-1")

    look(visit)


def test_tasks_are_found_by_name_and_status_and_those_that_need_an_eye_are_first(look: Look) -> None:
    async def visit(there: Looking) -> None:
        await there.tell(Story(name="red-stopped").stop())
        await there.tell(Story(name="red-finished").finish())
        await there.tell(Story(name="blue-running"))
        await there.tell(Story(name="Red-newer", **SOON))

        async def found(query: str) -> list[str]:
            page = await there.page(f"/{query}")
            assert faults(page) == []
            rows = [row[0].split()[0] for row in page.rows]
            if rows == ["No"]:
                assert page.rows == [["No task is like that."]]
                rows = []
            assert page.one("span", role="status", **{"class": "muted"}).text == f"{len(rows)} of 4"
            return rows

        assert await found("") == ["Red-newer", "blue-running", "red-finished", "red-stopped"]
        assert await found("?q=RED") == ["Red-newer", "red-finished", "red-stopped"]
        assert await found("?q=+blue+") == ["blue-running"]
        assert await found("?status=running") == ["Red-newer", "blue-running"]
        assert await found("?status=finished&q=blue") == []
        assert await found("?status=unheard") == ["Red-newer", "blue-running", "red-finished", "red-stopped"]
        assert await found("?q=%3Cb%3E") == []
        page = await there.page("/?q=red&status=stopped")
        assert (page.value("q"), page.value("status")) == ("red", "stopped")
        by_name = {row[0].split()[0]: row for row in (await there.page("/")).rows}
        assert by_name["red-finished"][3].startswith("classic ")
        assert by_name["Red-newer"][3] == "votes do not tell"
        assert by_name["blue-running"][3] == "–"

    look(visit)


def test_the_fleet_is_found_by_name_and_state_page_by_page(engine: Engine) -> None:
    now = [1_700_000_000.0]
    many = fleet_page.PAGE + 5

    async def run() -> None:
        async with looking(engine, clock=lambda: now[0]) as there:
            await there.tell(Story().play(GOOD, lambda story: story.messages > 0, "ams"))
            page = await there.page("/fleet")
            states = {row[0]: row[1] for row in page.rows}
            assert states == {**dict.fromkeys(SITES, "awaited"), "ams": "alive"}  # a message is a sign of life
            now[0] += SILENT_AFTER + 1
            for number in range(many):
                there.server.monitor.on_question(f"site-{number:03}", Question("life", {}))
            page = await there.page("/fleet")
            assert faults(page) == []
            assert [row[:2] for row in page.rows[:4]] == [
                ["ams", "silent"],  # in trouble: it has sent something, and is not heard of
                ["bog", "missing"],
                ["che", "missing"],
                ["site-000", "alive"],
            ]
            assert len(page.rows) == fleet_page.PAGE
            assert page.rows[0][4:] == ["1", "1", str(there.server.state.edges["ams"].bits)]
            glance = [each for each in page.all("span") if set(each.text) == {"■"}]
            assert [(each.attributes["class"], len(each.text)) for each in glance] == [
                ("silent", 1),
                ("missing", 2),
                ("alive", many),
            ]
            nav = page.one("nav", **{"aria-label": "Pages of sites"})
            links = [each for each in page.all("a") if each.above is nav]
            assert [each.text for each in links] == ["1", "2"]
            second = await there.page(links[1].attributes["href"])
            assert [row[0] for row in second.rows] == [f"site-{number:03}" for number in range(97, many)]
            for query, number in (
                ("state=alive", fleet_page.PAGE),
                ("state=alive&page=2", 5),
                ("page=99", 8),
                ("page=0", fleet_page.PAGE),
                ("page=-1", fleet_page.PAGE),
                ("page=%C2%B2", fleet_page.PAGE),
                ("page=" + "9" * 5_000, fleet_page.PAGE),
                ("q=SITE-00", 10),
                ("q=ams&state=silent", 1),
                ("state=unheard&q=bog", 1),
            ):
                rows = (await there.page(f"/fleet?{query}")).rows
                assert len(rows) == number, query
            assert (await there.page("/fleet?q=ams&state=alive")).rows == [["No site is like that."]]
            kept = await there.page("/fleet?q=site&state=alive")
            assert any(link.startswith("/fleet?q=site&state=alive&page=2") for link in kept.links)

    asyncio.run(run())


# ---- the engine is away


def test_without_its_engine_every_page_says_so_and_shows_what_was_known(look: Look, engine: Engine) -> None:
    async def visit(there: Looking) -> None:
        task = (await there.send("/tasks/new", **FORM)).headers["location"]
        assert (await there.page(task)).all("div", role="alert") == []
        await asyncio.to_thread(engine.stop)
        await comes(lambda: not there.server.log.connected)
        for path in ("/", task, "/fleet", "/tasks/new"):
            page = await there.page(path)
            assert page.one("div", role="alert").text.startswith("The engine is away. ")
            assert faults(page) == []

    look(visit)


# ---- files


TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def test_files_of_the_package_are_served_with_their_types(look: Look) -> None:
    folder = importlib.resources.files("outvote.dashboard").joinpath("static")
    files = {each.name: each.read_bytes() for each in folder.iterdir()}
    assert {"outvote.css", "outvote.js", "morph.js", "theme.js", "icon.svg"} <= set(files)

    async def visit(there: Looking) -> None:
        for name, content in files.items():
            answer = await there.client.get(f"/static/{name}")
            assert (answer.status_code, answer.content) == (200, content)
            assert answer.headers["content-type"].startswith(TYPES[Path(name).suffix])
            assert (await there.client.head(f"/static/{name}")).status_code == 200
        for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/"):
            assert (await there.client.get(httpx.URL("http://server", raw_path=path.encode()))).status_code == 404

    look(visit)


def test_no_file_of_the_pages_names_another_server() -> None:
    """Only the names of XML's own languages look like addresses; nothing is fetched from them."""
    package = importlib.resources.files("outvote.dashboard")
    for folder in ("static", "templates"):
        for each in package.joinpath(folder).iterdir():
            text = each.read_text().replace("http://www.w3.org/2000/svg", "")
            assert "http://" not in text
            assert "https://" not in text
