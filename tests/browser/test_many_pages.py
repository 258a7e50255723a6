"""Pages that are open hold a connection each: many of them hold up nobody, and one that is left frees its own."""

from __future__ import annotations

import time
from pathlib import Path

from playwright.sync_api import expect

from browser.fleet import Fleet
from browser.windows import Open, lives
from helpers.processes import DEADLINE, request, until

WINDOWS, TABS = 6, 5
"""Thirty pages: a window has six connections to a server, and one must be free to load the next."""
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
"""What a browser does when another tab is shown."""


def listening(fleet: Fleet) -> int:
    """Connections of pages that the server holds, as the system counts them."""
    port = int(fleet.server.port("server"))
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return sum(int(each[1].rpartition(":")[2], 16) == port and each[3] == "01" for each in fields)


def test_thirty_open_pages_hold_up_nobody_and_leaving_one_frees_its_connection(look: Open, fleet: Fleet) -> None:
    task = fleet.create("watched-by-many")
    before = listening(fleet)
    first = [look(fleet.url, f"/tasks/{task}" if number == 0 else "/?q=watched") for number in range(WINDOWS)]
    pages = list(first)
    for page in first:
        for _ in range(TABS - 1):
            pages.append(page.context.new_page())
            pages[-1].goto(fleet.url + "/?q=watched")
    for page in pages:
        lives(page)
    assert listening(fleet) >= len(pages)
    start = time.monotonic()
    for _ in range(20):
        request(f"{fleet.url}/v1/tasks")
    assert time.monotonic() - start < DEADLINE
    fleet.change(task, "stop")
    expect(pages[0].get_by_role("heading", level=1)).to_contain_text("stopped")
    for page in pages[1:]:
        expect(page.locator(f"[data-key={task}]")).to_contain_text("stopped")
    with_all = listening(fleet)
    pages[-1].close()
    until(lambda: listening(fleet) < with_all, "the connection of one page is freed")
    for page in first:
        page.context.close()
    until(lambda: listening(fleet) <= before, "all connections are freed")


def test_a_page_that_nobody_sees_holds_no_connection_and_looks_again_when_it_is_seen(look: Open, fleet: Fleet) -> None:
    """A browser has six connections to a server: more open tabs than that must not keep the next one from loading."""
    task = fleet.create("unseen")
    page = look(fleet.url, "/?q=unseen")
    lives(page)
    before = listening(fleet)
    page.evaluate(HIDE, True)
    until(lambda: listening(fleet) < before, "the connection is freed")
    fleet.change(task, "stop")
    page.evaluate(HIDE, False)
    lives(page)
    expect(page.locator(f"[data-key={task}]")).to_contain_text("stopped")
