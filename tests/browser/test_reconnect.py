"""A page outlives its server: it says that it is alone, keeps what it has, and goes on when the server is back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.fleet import Fleet, everywhere
from browser.gallery import GOOD
from browser.windows import Open, headline, labelled, lives, mark, marked

AWAY = "Failed to load resource: net::ERR_"
"""What Chromium itself says of a server that is away."""


def test_pages_outlive_a_server_that_is_killed_and_come_back_to_life_without_being_loaded_again(
    look: Open, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    fleet = Fleet(tmp_path)
    request.addfinalizer(fleet.close)
    task = fleet.create("outliving")
    page = look(fleet.url, f"/tasks/{task}", forgive=AWAY)
    tasks = look(fleet.url, forgive=AWAY)
    new = look(fleet.url, "/tasks/new", forgive=AWAY)
    lives(page)
    lives(tasks)
    left = page.get_by_role("region", name="What is left")
    left.get_by_text("Declare what you expect").click()
    traffic = left.get_by_label("Events a day")
    traffic.fill("123")
    labelled(tasks, "Name").fill("outl")
    expect(tasks.get_by_role("search").get_by_role("status")).to_have_text("1 of 1")
    labelled(new, "Name").fill("half-typed")
    for each in (page, tasks, new):
        mark(each)
    before = page.get_by_role("main").inner_text()

    fleet.kill_server()
    for each in (page, tasks):
        lives(each, "reconnecting…")
    assert steady(page.get_by_role("main").inner_text()) == steady(before)
    expect(tasks.locator(f"[data-key={task}]")).to_contain_text("running")

    fleet.restart_server()
    lives(page)
    lives(tasks)
    fleet.visit("outliving", everywhere(GOOD), done=lambda shown: shown["winner"] == "good")
    expect(headline(page)).to_contain_text("good wins")
    expect(tasks.locator(f"[data-key={task}]")).to_contain_text("finished")
    expect(labelled(tasks, "Name")).to_have_value("outl")
    expect(labelled(tasks, "Name")).to_be_focused()
    expect(labelled(new, "Name")).to_have_value("half-typed")
    assert all(marked(each) for each in (page, tasks, new))


def steady(text: str) -> str:
    """Without how long ago things were, and the hours at the axis of the timeline, which goes on as the page lives."""
    return "\n".join(line for line in text.splitlines() if not re.search(r" ago|\d\d:\d\d", line))


def test_what_somebody_types_and_has_opened_stays_while_the_page_changes_around_it(look: Open, fleet: Fleet) -> None:
    task = fleet.create("typing", variants=["good", "bad", "ugly"])
    page = look(fleet.url, f"/tasks/{task}")
    mark(page)
    left = page.get_by_role("region", name="What is left")
    left.get_by_text("Declare what you expect").click()
    traffic = left.get_by_label("Events a day")
    traffic.fill("4567")
    means = everywhere({"good": 0.6, "bad": 0.5, "ugly": 0.5})
    fleet.visit("typing", means, done=lambda shown: shown["messages"]["up"] >= 6, events=10)
    expect(page.get_by_role("region", name="Bits that crossed the network")).to_contain_text(
        f"{fleet.settled('typing')['bits']['total']:,} of"
    )
    expect(traffic).to_be_visible()
    expect(traffic).to_be_focused()
    expect(traffic).to_have_value("4567")
    assert marked(page)
