"""The page of the fleet: who is alive, who is not, who never was; and how one is found among many."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browser.clocked import Clocked, clocked, give_signs
from browser.fleet import QUIET
from browser.windows import Open, labelled, mark, marked
from network.processes import Running, request
from outvote.network.engine import Engine
from outvote.network.signs import SILENT_AFTER

MANY = [f"edge-{number:03}" for number in range(250)]


@pytest.fixture
def server(chromium: Browser, tmp_path: Path) -> Iterator[Clocked]:
    with Engine(tmp_path / "engine", port=0) as engine, clocked(engine) as running:
        yield running


def test_an_edge_that_was_killed_falls_silent_and_one_that_never_came_is_missing(
    look: Open, server: Clocked, tmp_path: Path
) -> None:
    task = {"name": "roll-call", "arms": 2, "players": ["here", "gone", "never"], "epsilon": 0, "delta": 0.05}
    request(f"{server.url}/v1/tasks", {**task, "protocol": "tally"})
    page = look(server.url, "/fleet")
    mark(page)
    gone = Running(tmp_path, "edge", "gone", "--nats", server.nats, "--port", "0", *QUIET)
    try:
        expect(page.locator("[data-key=gone]")).to_contain_text("alive")
        expect(page.locator("[data-key=never]")).to_contain_text("awaited")
        gone.end(signal.SIGKILL)
    finally:
        gone.kill()
    server.ahead += SILENT_AFTER + 1
    give_signs(server.nats, ["here"])
    expect(page.locator("[data-key=here]")).to_contain_text("alive")
    expect(page.locator("[data-key=gone]")).to_contain_text("silent")
    expect(page.locator("[data-key=never]")).to_contain_text("missing")
    expect(page.locator("[data-key=never]")).to_contain_text("never")
    rows = page.get_by_role("table", name="Edges").get_by_role("rowheader")
    expect(rows).to_have_text(["gone", "never", "here"])
    counts = request(f"{server.url}/v1/edges")["counts"]
    assert counts == {"alive": 1, "awaited": 0, "silent": 1, "missing": 1}
    for state in ("alive", "silent", "missing"):
        expect(page.get_by_role("list", name="Edges by state")).to_contain_text(f"1 {state}")
    labelled(page, "State").select_option("silent")
    expect(rows).to_have_text(["gone"])
    labelled(page, "State").select_option("")
    labelled(page, "Name").fill("EV")
    expect(rows).to_have_text(["never"])
    assert marked(page)
    page.reload()
    expect(rows).to_have_text(["never"])
    expect(labelled(page, "Name")).to_have_value("EV")


def test_many_edges_have_several_pages(look: Open, server: Clocked) -> None:
    page = look(server.url, "/fleet")
    expect(page.get_by_role("heading", name="No edge yet")).to_be_visible()
    give_signs(server.nats, MANY)
    rows = page.get_by_role("table", name="Edges").get_by_role("rowheader")
    expect(rows).to_have_text(MANY[:100])
    pages = page.get_by_role("navigation", name="Pages of edges")
    expect(pages.get_by_role("link")).to_have_text(["1", "2", "3"])
    pages.get_by_role("link", name="3").click()
    expect(rows).to_have_text(MANY[200:])
    expect(pages.get_by_role("link", name="3")).to_have_attribute("aria-current", "page")
    labelled(page, "Name").fill("edge-00")
    expect(rows).to_have_text(MANY[:10])
    expect(pages).to_have_count(0)
    expect(page.get_by_role("search").get_by_role("status")).to_have_text("10 of 250")
    labelled(page, "Name").fill("nobody")
    expect(page.get_by_role("cell")).to_have_text(["No edge is like that."])
