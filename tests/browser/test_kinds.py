"""Tasks of every kind: a page shows what its protocol tells, and nothing that it does not."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browser.gallery import GOOD, Gallery
from browser.windows import Open, headline, mark, marked


@pytest.mark.parametrize("protocol", ["dme", "edme"])
def test_votes_are_held_against_the_quorum_and_no_mean_is_made_up(look: Open, gallery: Gallery, protocol: str) -> None:
    task = gallery.tasks[protocol]
    page = look(gallery.fleet.url, f"/tasks/{task}")
    shown = gallery.fleet.shown(task)
    table = page.get_by_role("region", name="Table of variants")
    for needed in shown["votes_needed"]:
        expect(table.get_by_role("columnheader").filter(has_text=f"of {needed:g} needed").first).to_be_visible()
    for arm in shown["arms"]:
        cells = table.locator(f"[data-key=arm-{arm['index']}]").get_by_role("cell")
        expect(cells).to_have_text([str(votes) for votes in arm["votes"]])
    main = page.get_by_role("main")
    expect(main).to_contain_text("Votes do not tell which of them is ahead")
    expect(page.locator("[data-chart] .main-svg").first).to_be_visible()
    words = main.inner_text().replace("so no mean is known here", "").replace("no reward and no mean was sent", "")
    for word in ("mean reward", "interval", "lift", "regret", "points", "successes", "leads"):
        assert word not in words.lower(), word
    assert not {"leader", "lifts"} & {key for key, value in shown.items() if value}
    expect(page.get_by_role("columnheader", name="Mean")).to_have_count(0)


def test_a_vote_that_comes_while_the_page_is_open_is_shown(look: Open, gallery: Gallery) -> None:
    fleet = gallery.fleet
    task = fleet.create("one-more-vote", protocol="dme", active_players=3, epsilon=0.99, delta=0.9)
    page = look(fleet.url, f"/tasks/{task}")
    mark(page)
    row = page.get_by_role("region", name="Table of variants").locator("[data-key=arm-1]")
    expect(row.get_by_role("cell")).to_have_text(["0"])
    fleet.visit("one-more-vote", {"bog": GOOD}, done=lambda shown: shown["messages"]["up"] > 0, events=200)
    expect(row.get_by_role("cell")).to_have_text(["1"])
    fleet.visit("one-more-vote", {"che": GOOD}, done=lambda shown: shown["winner"] == "good", events=200)
    expect(headline(page)).to_contain_text("good wins")
    assert marked(page)


def test_a_task_whose_sites_differ_warns(look: Open, gallery: Gallery) -> None:
    page = look(gallery.fleet.url, f"/tasks/{gallery.tasks['held']}")
    expect(page.get_by_role("alert")).to_contain_text("The decision is held back")
    expect(page.get_by_role("alert")).to_contain_text(gallery.fleet.shown(gallery.tasks["held"])["hold_reason"])
    expect(page.get_by_role("heading", level=1)).to_contain_text("held")
    page.goto(gallery.fleet.url)
    expect(page.get_by_role("list", name="Summary")).to_contain_text("held back")
    expect(page.locator(f"[data-key={gallery.tasks['held']}]")).to_contain_text("held")


def test_a_private_task_says_so(look: Open, gallery: Gallery) -> None:
    page = look(gallery.fleet.url, f"/tasks/{gallery.tasks['private']}")
    expect(page.get_by_role("region", name="The task")).to_contain_text("Privacy budget")
    expect(page.get_by_role("region", name="Variants", exact=True)).to_contain_text("with noise")
    expect(page.get_by_role("region", name="What an eavesdropper has seen")).to_contain_text("by a factor of 2.72")


def test_a_stopped_task_says_what_is_served(look: Open, gallery: Gallery) -> None:
    page = look(gallery.fleet.url, f"/tasks/{gallery.tasks['stopped']}")
    expect(headline(page)).to_contain_text("Stopped, without a winner")
    expect(headline(page)).to_contain_text("serve bad")
    expect(page.get_by_role("region", name="What is left")).to_have_count(0)
