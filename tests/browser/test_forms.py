"""What people do on pages: stop, delete, expect something; and what they are told when something cannot be."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from browser.fleet import Fleet
from browser.gallery import HOSTILE, LONGEST, WIDE, Gallery
from browser.windows import LOOKS, Open, labelled, sideways
from network.processes import request

FIELDS = {
    "Name": "refused-here",
    "Variants": "one\ntwo",
    "Sites": "12",
    "Events a day, whole fleet": "40 000",
    "Difference worth finding": "0.125",
    "Mean of the others": "0.25",
    "δ": "0.07",
    "ε": "0",
}


def test_a_task_is_stopped_after_a_question(look: Open, fleet: Fleet) -> None:
    task = fleet.create("to-stop", fallback="bad")
    page = look(fleet.url, f"/tasks/{task}")
    page.get_by_role("link", name="Stop", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Stop to-stop?")
    expect(page.get_by_role("main")).to_contain_text("they serve bad")
    page.get_by_role("link", name="Keep it as it is").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("running")
    assert fleet.shown(task)["status"] == "running"
    page.get_by_role("link", name="Stop", exact=True).click()
    page.get_by_role("button", name="Stop to-stop").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("stopped")
    expect(page.get_by_role("link", name="Stop", exact=True)).to_have_count(0)
    assert fleet.shown(task)["status"] == "stopped"


def test_a_task_is_deleted_after_a_question_and_its_name_is_free_again(look: Open, fleet: Fleet) -> None:
    task = fleet.create("to-delete")
    page = look(fleet.url, f"/tasks/{task}")
    page.get_by_role("link", name="Delete", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Delete to-delete?")
    page.get_by_role("button", name="Delete to-delete").click()
    expect(page).to_have_url(fleet.url + "/")
    expect(page.locator(f"[data-key={task}]")).to_have_count(0)
    assert fleet.create("to-delete") != task


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"Name": "taken-already"}, "exists already"),
        ({"Name": "<script>alert(1)</script>"}, "letters, digits"),
        ({"Difference worth finding": "much"}, "Difference must be a number"),
        ({"δ": "2"}, "Delta must be a number above 0 and below 1"),
        ({"Variants": "just one"}, "Arms must be at least 2"),
    ],
)
def test_what_is_refused_is_said_and_nothing_typed_is_lost(
    look: Open, fleet: Fleet, wrong: dict[str, str], said: str
) -> None:
    if fleet_lacks(fleet, "taken-already"):
        fleet.create("taken-already")
    page = look(fleet.url, "/tasks/new", forgive="status of 4")
    page.get_by_text("More", exact=True).click()
    given = {**FIELDS, "Floor": "5", **wrong}
    for label, text in given.items():
        labelled(page, label).fill(text)
    page.get_by_role("button", name="Create task").click()
    problem = page.get_by_role("alert")
    expect(problem).to_contain_text(said)
    expect(problem).to_be_focused()
    for label, text in given.items():
        expect(labelled(page, label)).to_have_value(text)


def test_liars_are_refused_beside_their_field_and_tolerated(look: Open, fleet: Fleet) -> None:
    """On a phone in the dark: a narrow page, and colours of its own."""
    given = "name=with-liars&protocol=tally&arms=2&players=3&delta=0.05&epsilon=0&tolerate=3"
    in_the_dark = {**LOOKS["phone"], "color_scheme": "dark"}
    page = look(fleet.url, f"/tasks/new?{given}", forgive="status of 422", bypass_csp=True, **in_the_dark)  # for axe
    field = labelled(page, "Tolerate lying sites")
    with page.expect_request(re.compile(r"/tasks/new/plan\?.*tolerate=2")):  # the planner hears of it
        field.fill("2")
    page.get_by_role("button", name="Create task").click()
    expect(page.get_by_role("alert")).to_contain_text("less than half of the 3 players, got 2")
    expect(field).to_have_value("2")
    expect(field).to_have_accessible_description(re.compile("^Tolerate must be .* less than half of the 3 players"))
    expect(page.locator("#wrong")).to_be_visible()
    assert sideways(page) <= 0
    report = Axe().run(page, context="#new-task")  # the planner beside it may be at work, and is pale then
    assert report.violations_count == 0, report.generate_report()
    field.fill("1")
    page.get_by_role("button", name="Create task").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("with-liars")
    expect(page.get_by_role("main")).to_contain_text("Sites that may lie")
    assert fleet.shown("with-liars")["task"]["tolerate"] == 1


def fleet_lacks(fleet: Fleet, name: str) -> bool:
    return all(task["name"] != name for task in request(f"{fleet.url}/v1/tasks")["tasks"])


def test_an_unknown_task_has_a_page_that_says_so(look: Open, fleet: Fleet) -> None:
    page = look(fleet.url, "/tasks/%3Cimg%20src=x%20onerror=alert(1)%3E", forgive="status of 404")
    answer = page.reload()
    assert answer is not None
    assert (answer.status, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    expect(page.get_by_role("main")).to_contain_text("<img src=x onerror=alert(1)>")
    page.get_by_role("link", name="All tasks").click()
    expect(page).to_have_title("Tasks · Outvote")


@pytest.mark.parametrize("size", LOOKS)
def test_names_are_text_whatever_they_hold_and_however_wide_they_are(look: Open, gallery: Gallery, size: str) -> None:
    task = gallery.tasks["hostile"]
    for path in (f"/tasks/{task}", "/", f"/tasks/{task}/stop", f"/tasks/{task}/delete"):
        page = look(gallery.fleet.url, path, **LOOKS[size])
        page.on("dialog", lambda dialog: pytest.fail(f"it was run: {dialog.message}"))
        expect(page.get_by_text(LONGEST).first).to_be_visible()
        assert sideways(page) <= 0, path
        if path == f"/tasks/{task}":
            expect(page.locator("[data-chart] .main-svg").first).to_be_visible()
            for arm in HOSTILE:
                expect(page.get_by_role("rowheader", name=arm).first).to_be_attached()
            assert page.locator("main script, main img[onerror]").count() == 0
            expect(page.locator("[data-chart]").first).to_contain_text("<script>alert")
            expect(page.locator("[data-chart]").first).to_contain_text(WIDE[:20])
        page.context.close()


def test_what_is_expected_is_saved_and_the_planner_says_what_is_left(look: Open, fleet: Fleet) -> None:
    task = fleet.create("expecting", arms=3)
    page = look(fleet.url, f"/tasks/{task}")
    left = page.get_by_role("region", name="What is left")
    expect(left).to_contain_text("No difference is declared")
    left.get_by_text("Declare what you expect").click()
    for label, text in (("Events a day", "50 000"), ("Difference worth", "0.071"), ("Mean of the", "0.2")):
        left.get_by_label(label).fill(text)
    left.get_by_role("button", name="Save").click()
    expect(left).to_contain_text(re.compile("the planner (is at work|expects)", re.IGNORECASE))
    expect(left).to_contain_text("he planner expects")
    expect(left.get_by_role("definition").first).to_contain_text("about")
    expect(left).to_contain_text("in 19 of 20 cases")
    assert fleet.shown(task)["expectation"] == {"traffic": 50_000, "difference": 0.071, "baseline": 0.2}
    left.get_by_text("Declare what you expect").click()
    expect(left.get_by_label("Difference worth")).to_have_value("0.071")
