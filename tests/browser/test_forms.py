"""What people type on pages: what is refused, names of every kind, what is expected. `tests/dashboard` has the rest."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from browser.fleet import Fleet
from browser.gallery import HOSTILE, LONGEST, WIDE, Gallery
from browser.windows import LOOKS, Open, labelled, sideways


def test_what_is_refused_is_said_and_nothing_typed_is_lost(look: Open, fleet: Fleet) -> None:
    page = look(fleet.url, "/tasks/new", forgive="status of 4")
    page.get_by_text("More", exact=True).click()
    given = {"Name": "refused-here", "Variants": "one\ntwo", "Sites how": "12", "Floor": "5", "Error allowed": "2"}
    given["Reward window"] = "30m"
    for label, text in given.items():
        labelled(page, label).fill(text)
    page.get_by_role("button", name="Create task").click()
    problem = page.get_by_role("alert")
    expect(problem).to_contain_text("Delta must be a number above 0 and below 1")
    expect(problem).to_be_focused()
    for label, text in given.items():
        expect(labelled(page, label)).to_have_value(text)


@pytest.mark.parametrize("size", LOOKS)
def test_names_are_text_whatever_they_hold_and_however_wide_they_are(look: Open, gallery: Gallery, size: str) -> None:
    task = gallery.tasks["hostile"]
    for path in (f"/tasks/{task}", "/", f"/tasks/{task}/stop", f"/tasks/{task}/delete"):
        page = look(gallery.fleet.url, path, **LOOKS[size])
        page.on("dialog", lambda dialog: pytest.fail(f"it was run: {dialog.message}"))
        expect(page.get_by_text(LONGEST).first).to_be_visible()
        assert sideways(page) <= 0, path
        if path == f"/tasks/{task}":
            for arm in HOSTILE:
                expect(page.get_by_role("rowheader", name=arm).first).to_be_attached()
            assert page.locator("main script, main img[onerror]").count() == 0
            expect(page.locator(".chart").first).to_contain_text("<script>alert")
            expect(page.locator(".chart").first).to_contain_text(WIDE[:20])
        page.context.close()


def test_what_is_expected_is_saved_and_the_planner_says_what_is_left(look: Open, fleet: Fleet) -> None:
    task = fleet.create("expecting", variants=3)
    page = look(fleet.url, f"/tasks/{task}")
    left = page.get_by_role("region", name="What is left")
    expect(left).to_contain_text("No difference is declared")
    left.get_by_text("Declare what you expect").click()
    for label, text in (("Events a day", "50 000"), ("Difference worth", "0.071"), ("Baseline", "0.2")):
        left.get_by_label(label).fill(text)
    left.get_by_role("button", name="Save").click()
    expect(left).to_contain_text(re.compile("the planner (is at work|expects)", re.IGNORECASE))
    expect(left).to_contain_text("he planner expects")
    expect(left.get_by_role("definition").first).to_contain_text("about")
    expect(left).to_contain_text("in 19 of 20 cases")
    assert fleet.shown(task)["expectation"] == {"traffic": 50_000, "difference": 0.071, "baseline": 0.2}
    left.get_by_text("Declare what you expect").click()
    expect(left.get_by_label("Difference worth")).to_have_value("0.071")
