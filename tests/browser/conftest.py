"""One fleet for all tests of a process, a browser for each file, and windows that are watched for each test.

Playwright keeps an event loop running for as long as its browser is there: tests of other folders need their own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from browser.fleet import Fleet
from browser.gallery import Gallery
from browser.windows import CHROMIUM, MISSING, PATIENCE, Windows, launched


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE)
    with launched() as browser:
        yield browser


@pytest.fixture
def look(chromium: Browser) -> Iterator[Windows]:
    windows = Windows(chromium)
    yield windows
    windows.close()


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """For tests that leave each other alone."""
    if CHROMIUM is None:
        pytest.skip(MISSING)
    running = Fleet(tmp_path_factory.mktemp("fleet"))
    yield running
    running.close()


@pytest.fixture(scope="session")
def gallery(fleet: Fleet) -> Gallery:
    return Gallery(fleet)
