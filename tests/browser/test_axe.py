"""For people without a mouse, good eyes or a large screen: axe finds nothing, and nothing is out of reach.

Axe is put into the page, which the page's own policy would refuse: only these windows set it aside.
"""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe

from browser.gallery import Gallery
from browser.windows import LOOKS, Open, settled, sideways

SMALL = """() => [...document.querySelectorAll('button, .button, nav a, input, select, textarea, summary')]
  .filter((each) => each.checkVisibility({ visibilityProperty: true }) && each.getBoundingClientRect().height < 24)
  .map((each) => each.outerHTML.slice(0, 80))"""
"""WCAG 2.2 asks for 24 pixels (2.5.8)."""


TELLING = ("tasks", "fleet", "planned", "running", "dme", "held", "hostile")
"""Pages on which all parts are that there are: in the dark and on a phone these are enough."""


@pytest.mark.parametrize("size", LOOKS)
def test_axe_finds_nothing_on_any_page_and_none_is_wider_than_its_window(
    look: Open, gallery: Gallery, size: str
) -> None:
    page = look(gallery.fleet.url, bypass_csp=True, forgive="status of 404", **LOOKS[size])
    found = {}
    for name in gallery.pages if size == "light" else TELLING:
        path = gallery.pages[name]
        page.goto(gallery.fleet.url + path)
        settled(page)
        assert sideways(page) <= 0, name
        if size == "phone":
            assert page.evaluate(SMALL) == [], name
        report = Axe().run(page)
        if report.violations_count:
            found[name] = report.generate_report()
    assert found == {}, "\n".join(f"{name}: {report}" for name, report in found.items())
