"""The stock SDKs of JavaScript, unmodified from npm: in node, and in a real Chromium on a page of another origin."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Response

from browser.windows import another_origin
from helpers.processes import DEADLINE, Running, Start, an_edge, request
from outvote.edge.ofrep import FLAGS

from .conftest import JS
from .shop import SWITCH, buys, counts, create, play, tasks


def node(folder: Path, script: str, **environment: str) -> str:
    done = subprocess.run(
        ["node", script], cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True,
        timeout=2 * DEADLINE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def scripts(node_modules: Path, tmp_path: Path) -> Path:
    """The programs beside this file, where node finds the packages."""
    folder = tmp_path / "scripts"
    shutil.copytree(JS, folder)
    (folder / "node_modules").symlink_to(node_modules / "node_modules")
    return folder


# ---- node


def test_the_server_sdk_drives_a_task_to_its_winner_by_the_code_of_the_documents(
    scripts: Path, start: Start, server: Running
) -> None:
    edge = an_edge(start, server, "ams")
    create(server, edge)
    create(server, edge, **SWITCH)
    seen = json.loads(node(scripts, "drive_server.mjs", OUTVOTE_EDGE=edge.url("edge")))
    first, last = seen["first"], seen["last"]
    assert (first["value"], first["reason"]) == (first["variant"], "SPLIT")
    assert first["flagMetadata"]["ticket"].count(".") == 4
    assert (seen["unknown"]["value"], seen["unknown"]["errorCode"]) == ("mine", "FLAG_NOT_FOUND")
    assert (seen["mismatch"]["value"], seen["mismatch"]["errorCode"]) == (True, "TYPE_MISMATCH")
    assert seen["on"]["value"] is (seen["on"]["variant"] == "true")
    assert seen["events"] >= seen["tickets"] > 0  # the last are of a task that has ended
    assert (last["value"], last["reason"]) == ("green", "STATIC")
    assert tasks(edge)["shop"]["winner"] == "green"


# ---- a page


@pytest.fixture
def pages(scripts: Path, tmp_path: Path) -> Iterator[str]:
    """The address of a page, all its code in one file."""
    folder = tmp_path / "page"
    folder.mkdir()
    bundle = [str(scripts / "node_modules" / ".bin" / "esbuild"), "drive_web.mjs", "--bundle", "--format=esm"]
    subprocess.run([*bundle, f"--outfile={folder / 'shop.js'}", "--log-level=error"], cwd=scripts, check=True)
    (folder / "index.html").write_text(
        "<!doctype html><title>Shop</title><link rel=icon href=data:,>"
        "<script>window.outvoteEdge = new URLSearchParams(location.search).get('edge')</script>"
        "<script type=module src=shop.js></script>"
    )
    with another_origin(folder) as url:
        yield url


@pytest.fixture
def ams(start: Start, server: Running, pages: str) -> Running:
    edge = an_edge(start, server, "ams", "--allow-origin", pages)
    create(server, edge, variants=["red", "green", "blue"])
    return edge


class Visitor:
    """A window of its own, and what its page was answered."""

    def __init__(self, chromium: Browser, origin: str, edge: Running) -> None:
        self.window = chromium.new_context()
        self.window.set_default_timeout(1000 * DEADLINE)
        self.page: Page = self.window.new_page()
        self.answers: list[Response] = []
        self.said: list[str] = []
        self.page.on("response", self._note)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.goto(f"{origin}/?edge={edge.url('edge')}")
        self.page.wait_for_function("window.shop")

    def _note(self, response: Response) -> None:
        if response.url.endswith(FLAGS) and response.request.method == "POST":
            self.answers.append(response)

    def statuses(self) -> list[int]:
        return [each.status for each in self.answers]

    def do(self, code: str, argument: Any = None) -> Any:
        return self.page.evaluate(code, argument)

    def details(self) -> dict[str, Any]:
        found: dict[str, Any] = self.do("shop.details()")
        return found

    def waits_for(self, condition: str) -> None:
        self.page.wait_for_function(condition)


def test_the_web_sdk_in_a_page_of_another_origin_shows_what_it_was_assigned_and_keeps_it_while_it_remains(
    chromium: Browser, pages: str, server: Running, ams: Running
) -> None:
    visitor = Visitor(chromium, pages, ams)
    try:
        first = visitor.details()
        assert (first["value"], first["reason"]) == (first["variant"], "SPLIT")
        assert first["flagMetadata"] == {"ticket": "uncounted"}
        for _ in range(20):  # from the cache of the page
            assert visitor.details()["variant"] == first["variant"]
        visitor.page.wait_for_event("response", lambda each: each.url.endswith(FLAGS) and each.status == 304)
        visitor.page.wait_for_event("response", lambda each: each.url.endswith(FLAGS) and each.status == 304)
        assert visitor.statuses()[0] == 200
        assert set(visitor.statuses()[1:]) == {304}
        assert visitor.answers[-1].request.headers["if-none-match"] == visitor.answers[0].headers["etag"]
        assert visitor.details()["variant"] == first["variant"]
        assert counts(ams) == (0, 0), "flags of all tasks at once are not counted"
        visitor.page.reload()  # the packages keep the assignment and its tag in the browser
        visitor.waits_for("window.shop")
        assert visitor.details()["variant"] == first["variant"]

        request(f"{server.url('server')}/v1/tasks/shop/kill", method="POST")
        visitor.waits_for("shop.details().reason === 'DISABLED'")
        assert visitor.details()["value"] == "red"  # the first that remains
        request(f"{server.url('server')}/v1/tasks/shop/revive", method="POST")
        visitor.waits_for("shop.details().reason === 'SPLIT'")
        assert counts(ams) == (0, 0)
    finally:
        visitor.window.close()


def test_a_page_decides_and_rewards_by_the_code_of_the_documents(
    chromium: Browser, pages: str, server: Running, ams: Running
) -> None:
    visitor = Visitor(chromium, pages, ams)
    try:
        shown = visitor.do("shop.button()")
        assert shown["variant"] in ("red", "green", "blue")
        assert counts(ams) == (1, 0)
        for _ in range(3):
            visitor.do("ticket => shop.earned(ticket, 1)", shown["ticket"])
        assert counts(ams) == (1, 1)
        request(f"{server.url('server')}/v1/tasks/shop/kill", method="POST")
        visitor.waits_for("shop.details().reason === 'DISABLED'")
        killed = visitor.do("shop.button()")
        assert killed == {"variant": "red", "ticket": "uncounted"}
        visitor.do("ticket => shop.earned(ticket, 1)", killed["ticket"])
        ams.end(signal.SIGTERM)
        assert visitor.do("shop.button()") == {"variant": "green", "ticket": "uncounted"}
    finally:
        visitor.window.close()


def test_pages_drive_a_task_to_its_winner_and_what_is_out_changes_what_the_web_sdk_shows(
    chromium: Browser, pages: str, ams: Running
) -> None:
    rng = random.Random(3)
    visitors: list[Visitor] = []
    try:
        while "red" not in {each.details()["variant"] for each in visitors}:  # one who is shown what will be out
            visitors.append(Visitor(chromium, pages, ams))
        unlucky = visitors[-1]

        def visit() -> None:
            for each in visitors:
                shown = each.do("shop.button()")
                each.do(
                    "([ticket, reward]) => shop.earned(ticket, reward)", [shown["ticket"], buys(rng, shown["variant"])]
                )

        play(ams, visit)
        assert tasks(ams)["shop"]["winner"] == "green"
        for each in visitors:
            each.waits_for("shop.details().reason === 'STATIC' && shop.details().value === 'green'")
        assert 200 in unlucky.statuses()[1:], "the assignment has changed"
        assert unlucky.do("shop.button()") == {"variant": "green", "ticket": "uncounted"}
    finally:
        for each in visitors:
            each.window.close()
