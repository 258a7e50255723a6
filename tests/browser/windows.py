"""Windows of a real Chromium that are watched: whatever a page does that it must not is found out at the end of a test.

A page may not log an error, throw, be refused something by its own policy, or ask for anything that is not its own.
"""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    WebError,
    expect,
    sync_playwright,
)

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
MISSING = "no Chromium: install Debian's package chromium-headless-shell"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LAPTOP, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": LAPTOP, "color_scheme": "light"},
    "dark": {"viewport": LAPTOP, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "color_scheme": "light", "has_touch": True, "is_mobile": True},
}
PATIENCE = 30_000
"""Milliseconds that anything on a page may take: this machine may be busy."""


@dataclass
class Conduct:
    """What the pages of one window did."""

    origin: str
    faults: list[str] = field(default_factory=list)
    forgiven: list[str] = field(default_factory=list)
    """Parts of what a test itself brings about: a server that is away, a page that is not there."""

    def watch(self, context: BrowserContext) -> None:
        context.on("request", self._asked)
        context.on("console", self._said)
        context.on("weberror", self._threw)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.origin + "/", "data:", "blob:")):
            self.faults.append(f"asked for {request.url}")

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error" or "Content Security Policy" in message.text:
            self.faults.append(f"said {message.text} ({message.location.get('url', '')})")

    def _threw(self, error: WebError) -> None:
        self.faults.append(f"threw {error.error}")

    @property
    def unforgiven(self) -> list[str]:
        return [fault for fault in self.faults if not any(each in fault for each in self.forgiven)]


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser; while it is there its event loop runs, and no other can. Without one the test is skipped."""
    if CHROMIUM is None:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, *_: object) -> None:
        """The test says what went wrong."""


@contextmanager
def another_origin(folder: Path) -> Iterator[str]:
    """The address of a web server with the files of a folder; it has nothing to do with the fleet."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as serving:
        threading.Thread(target=serving.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{serving.server_port}"
        finally:
            serving.shutdown()


class Windows:
    """All windows of one test."""

    def __init__(self, chromium: Browser) -> None:
        self._chromium = chromium
        self._open: list[tuple[BrowserContext, Conduct]] = []

    def __call__(self, url: str, path: str = "/", *, forgive: str | None = None, **options: Any) -> Page:
        """A page in a window of its own, which knows nothing of the others; `options` are Playwright's."""
        context = self._chromium.new_context(**{"viewport": LAPTOP, **options})
        context.set_default_timeout(PATIENCE)
        conduct = Conduct(url, forgiven=[forgive] if forgive else [])
        conduct.watch(context)
        self._open.append((context, conduct))
        page = context.new_page()
        page.goto(url + path)
        return page

    def close(self) -> None:
        """All of them; says what they did that they must not."""
        for context, _ in self._open:
            context.close()
        faults = [fault for _, conduct in self._open for fault in conduct.unforgiven]
        assert not faults, "\n".join(faults)


Open: TypeAlias = Callable[..., Page]
"""Opens a page: the fixture `look`."""


def mark(page: Page) -> None:
    """From now on it is known whether the page was loaded again."""
    page.evaluate("window.notLoadedAgain = true")


def marked(page: Page) -> bool:
    return bool(page.evaluate("window.notLoadedAgain === true"))


def sideways(page: Page) -> int:
    """Pixels by which a page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


def labelled(page: Page, label: str) -> Locator:
    """The field whose label begins like this."""
    return page.get_by_role("main").get_by_label(re.compile(f"^{label}"))


def headline(page: Page) -> Locator:
    """Where a task stands, as it is announced."""
    return page.get_by_role("main").get_by_role("status").first


def lives(page: Page, says: str = "live") -> None:
    """The page hears what changes; or says something else."""
    expect(page.get_by_role("banner").get_by_role("status")).to_have_text(says)


def settled(page: Page) -> None:
    """All that a page brings later is there: a plan that was asked for; forecasts may be at work."""
    expect(page.locator("#plan[aria-busy=true]")).to_have_count(0)
