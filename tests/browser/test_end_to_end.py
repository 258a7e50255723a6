"""One task from the form to its winner, by the keyboard alone, and what open pages show of it meanwhile."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from browser.fleet import SITES, Fleet, everywhere
from browser.windows import Open, headline, labelled, mark, marked
from helpers.processes import request

MEANS = {"classic": 0.1, "bold": 0.9, "green": 0.15}


def typed(page: Page, text: str) -> None:
    """Instead of what is in the field that has the focus."""
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def tab_to(page: Page, label: str) -> None:
    """Go on with the Tab key until the field of this label has the focus."""
    field = labelled(page, label)
    for _ in range(60):
        page.keyboard.press("Tab")
        if field.evaluate("field => field === document.activeElement"):
            return
    raise AssertionError(f"{label} cannot be reached by the Tab key")


def test_a_task_is_created_with_the_keyboard_and_seen_to_its_end_on_pages_that_stay_open(
    look: Open, fleet: Fleet
) -> None:
    page = look(fleet.url)
    page.get_by_role("link", name="New task").first.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_title("New task · Outvote")
    for label, text in (
        ("Name", "keyboard"),
        ("Variants", "\n".join(MEANS)),
        ("Sites how", "\n".join(SITES)),
        ("Reward window", "1s"),
        ("Events a day, whole fleet", "50000"),
        ("Difference worth finding", "0.2"),
        ("Baseline", "0.1"),
    ):
        tab_to(page, label)
        typed(page, text)
    planner = page.get_by_role("complementary", name="Planner")
    expect(planner).to_contain_text("3 variants, 3 sites")
    expect(planner).not_to_have_attribute("aria-busy", "true")
    private = planner.locator("[data-key^=tally]").filter(has_text="privacy budget")
    use = private.get_by_role("link", name="Use this")
    use.focus()
    page.keyboard.press("Enter")
    expect(labelled(page, "Privacy budget")).not_to_have_value("")
    expect(labelled(page, "Name")).to_be_focused()
    use = planner.locator("[data-key^=tally]").first.get_by_role("link", name="Use this")
    use.focus()
    page.keyboard.press("Enter")
    expect(labelled(page, "Privacy budget")).to_have_value("")
    expect(labelled(page, "Protocol")).to_have_value("tally")
    expect(labelled(page, "Name")).to_have_value("keyboard")
    labelled(page, "Name").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("keyboard")

    task = page.url.rpartition("/")[2]
    expect(headline(page)).to_contain_text("No site has sent anything yet")
    overview = page.context.new_page()
    overview.goto(fleet.url + "/?q=keyboard")
    row = overview.locator(f"[data-key={task}]")
    expect(row).to_contain_text("running")
    expect(row).to_contain_text("3 of 3")
    mark(page)
    mark(overview)
    fleet.visit("keyboard", everywhere(MEANS), done=lambda shown: len(shown["remaining"]) < 3, events=6)
    page.bring_to_front()
    expect(page.get_by_role("row").filter(has_text=re.compile(r"\bout\b")).first).to_be_visible()
    fleet.visit("keyboard", everywhere(MEANS), done=lambda shown: shown["winner"] == "bold", events=6)
    expect(headline(page)).to_contain_text("bold wins")
    shows_what_the_api_says(page, fleet)
    assert marked(page)
    overview.bring_to_front()
    expect(row).to_contain_text("finished")
    expect(row).to_contain_text("1 of 3")
    expect(row).to_contain_text("bold")
    assert marked(overview)


def shows_what_the_api_says(page: Page, fleet: Fleet) -> None:
    shown = fleet.settled("keyboard")
    bits = page.get_by_role("region", name="Bits that crossed the network")
    expect(bits).to_contain_text(f"{shown['bits']['total']:,} of")
    table = page.get_by_role("region", name="Table of variants")
    for arm in shown["variants"]:
        row = table.locator(f"[data-key=variant-{arm['index']}]")
        for text in (arm["variant"], f"{arm['trials']:,}", f"{arm['successes']:,}", f"{100 * arm['mean']:.1f} %"):
            expect(row).to_contain_text(text)
        expect(row).to_contain_text("winner" if arm["variant"] == "bold" else "out")
    lifts = page.get_by_role("region", name="How much better bold is")
    for lift in shown["lifts"]:
        expect(lifts.locator(f"[data-key=lift-{lift['rival']}]")).to_contain_text(f"{100 * lift['difference']:+.1f}")
    happened = page.get_by_role("region", name="What happened").get_by_role("listitem")
    expect(happened).to_have_count(4)
    expect(happened.first).to_contain_text("created")
    expect(happened.last).to_contain_text("bold wins")
    expect(happened.filter(has_text="is out")).to_have_count(2)
    expect(bits).to_contain_text(f"{shown['bits']['up']:,} bits in {shown['messages']['up']:,} messages")
    expect(bits).to_contain_text(f"{shown['bits']['down']:,} bits in {shown['messages']['down']:,} notices")
    seen = page.get_by_role("region", name="What an eavesdropper has seen")
    expect(seen).to_contain_text(f"{shown['messages']['up']:,} messages of {shown['site_count']} sites")
    expect(seen).to_contain_text("are out")
    sites = page.get_by_role("region", name="Sites", exact=True)
    for site in request(f"{fleet.url}/v1/sites")["sites"]:
        if site["site"] in SITES:
            expect(sites.locator(f"[data-key=site-{site['site']}]")).to_contain_text(site["state"])
    expect(page.locator(".chart svg").first).to_be_visible()
