"""Logging in, over real HTTPS: by keyboard, and out again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from browser.fleet import QUIET
from browser.windows import CHROMIUM, LOOKS, MISSING, Windows, labelled, lives, sideways
from helpers.holders import Holders, server_kit
from helpers.operating import TALLY
from helpers.processes import Running, commands, until

OURS: dict[str, Any] = {"ignore_https_errors": True}
"""The certificate is nobody's that a browser knows."""


@pytest.fixture(scope="module")
def holders(tmp_path_factory: pytest.TempPathFactory) -> Holders:
    return Holders(server_kit(tmp_path_factory.mktemp("holders")))


@pytest.fixture(scope="module")
def secured(holders: Holders, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that wants tokens and speaks HTTPS."""
    if CHROMIUM is None:
        pytest.skip(MISSING)
    folder = tmp_path_factory.mktemp("secured")
    kit = str(holders.path.parent)
    with commands(folder) as start:
        yield start("server", "--kit", kit, "--port", "0", "--engine-port", "0", "--store", "log", *QUIET)


def log_in(page: Page, token: str) -> None:
    """By keyboard only: the field has the focus."""
    expect(page.get_by_label("Token")).to_be_focused()
    page.keyboard.type(token)
    page.keyboard.press("Enter")


def test_an_admin_logs_in_creates_a_task_and_logs_out(secured: Running, holders: Holders, look: Windows) -> None:
    url = secured.url("server")
    assert url.startswith("https://")
    page = look(url, "/fleet?q=a", **OURS, forgive="401")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("only to who has a token")
    log_in(page, "outvote-wrong")
    expect(page.get_by_role("alert")).to_contain_text("not known here")
    log_in(page, holders.secrets["ops"])
    expect(page.get_by_role("heading", name="Fleet")).to_be_visible()
    assert page.url == f"{url}/fleet?q=a"
    expect(page.get_by_role("banner")).to_contain_text("ops admin")
    lives(page)  # the stream of events goes over the same cookie
    [cookie] = page.context.cookies()
    assert cookie["name"] == "__Host-outvote"
    assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"]) == (True, True, "Strict")
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("link", name="New task").click()
    labelled(page, "Name").fill("by-an-admin")
    labelled(page, "Reward window").fill("60s")
    page.get_by_role("button", name="Create task").click()
    expect(page.get_by_role("heading", name="by-an-admin")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    assert page.context.cookies() == []
    page.goto(url + "/tasks/by-an-admin")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


@pytest.mark.parametrize("style", LOOKS)
def test_axe_finds_nothing_at_the_login_and_all_fits_its_window(
    style: str, secured: Running, holders: Holders, look: Windows
) -> None:
    page = look(secured.url("server"), "/login", **OURS, **LOOKS[style], bypass_csp=True)  # axe is put into the page
    for heading in ("Log in", "Tasks"):
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
        assert sideways(page) <= 0
        report = Axe().run(page)
        assert report.violations_count == 0, report.generate_report()
        if heading == "Log in":
            log_in(page, holders.secrets["looker"])


def test_a_page_whose_token_is_revoked_leads_to_the_login(secured: Running, holders: Holders, look: Windows) -> None:
    url = secured.url("server")
    holders.add("short", "viewer")
    with httpx.Client(base_url=url, verify=False, trust_env=False) as client:

        def status() -> int:
            return client.get("/v1/tasks", headers=holders.header("short")).status_code

        until(lambda: status() == 200, "the server has read the file of tokens again")
        page = look(url, **OURS, forgive="401")
        log_in(page, holders.secrets["short"])
        lives(page)
        holders.revoke("short")
        until(lambda: status() == 401, "it is revoked")
        made = client.post("/v1/tasks", json={**TALLY, "name": "news"}, headers=holders.header("ops"))
        assert made.status_code == 201  # of which the page hears, and looks again
    expect(page.get_by_role("main")).to_contain_text("not known here")
