"""Without the script every page can be read, and everything be done by links and forms."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browser.fleet import SITES, Fleet
from browser.gallery import Gallery
from browser.windows import LOOKS, Open, labelled


@pytest.mark.parametrize("size", ["light", "phone"])
def test_every_page_can_be_read(look: Open, gallery: Gallery, size: str) -> None:
    page = look(gallery.fleet.url, java_script_enabled=False, forgive="status of 404", **LOOKS[size])
    for name, path in gallery.pages.items():
        page.goto(gallery.fleet.url + path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("button", name="Theme")).to_have_count(0)
        if name in gallery.tasks:
            expect(page.get_by_role("region", name="Table of variants").get_by_role("row").first).to_be_visible()
            expect(page.get_by_role("region", name="What happened")).to_contain_text("created")
            expect(page.get_by_role("region", name="What happened")).to_contain_text("UTC")
        assert page.locator("html").evaluate("root => root.scrollWidth - innerWidth") <= 0, name


def test_a_task_is_planned_created_stopped_and_deleted_by_plain_forms(look: Open, fleet: Fleet) -> None:
    page = look(fleet.url, "/tasks/new", java_script_enabled=False)
    for label, text in (("Name", "plain"), ("Variants", "one\ntwo"), ("Sites", "\n".join(SITES))):
        labelled(page, label).fill(text)
    labelled(page, "Difference worth finding").fill("0.3")
    page.get_by_role("button", name="Plan").click()
    planner = page.get_by_role("complementary", name="Planner")
    expect(planner).to_contain_text("2 variants, 3 sites")
    planner.locator("[data-key^=dme]").first.get_by_role("link", name="Use this").click()
    expect(labelled(page, "Protocol")).to_have_value("dme")
    expect(labelled(page, "Name")).to_have_value("plain")
    expect(labelled(page, "Variants")).to_have_value("one\ntwo")
    page.get_by_role("button", name="Create task").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("plain")
    shown = fleet.shown("plain")
    assert (shown["protocol"], shown["task"]["arms"], shown["expectation"]["difference"]) == (
        "dme",
        ["one", "two"],
        0.3,
    )
    page.get_by_text("Declare what you expect").click()
    labelled(page, "Events a day").fill("1000")
    page.get_by_role("button", name="Save").click()
    assert fleet.shown("plain")["expectation"]["traffic"] == 1000
    page.get_by_role("link", name="Stop", exact=True).click()
    page.get_by_role("button", name="Stop plain").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("stopped")
    page.get_by_role("link", name="Tasks", exact=True).first.click()
    labelled(page, "Name").fill("plain")
    labelled(page, "Status").select_option("stopped")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="plain", exact=True).click()
    page.get_by_role("link", name="Delete", exact=True).click()
    page.get_by_role("button", name="Delete plain").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Tasks")
    expect(page.get_by_role("link", name="plain", exact=True)).to_have_count(0)
