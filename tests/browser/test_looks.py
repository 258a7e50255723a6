"""Light and dark, by the keyboard: all can be reached, the focus is seen, and the theme is what was chosen."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser.gallery import Gallery
from browser.windows import LOOKS, Open, settled

INTERACTIVE = """() => {
  const all = document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]');
  return [...all].filter((each) => each.checkVisibility({ visibilityProperty: true })).length;
}"""
FOCUSED = """() => {
  const here = document.activeElement, box = here.getBoundingClientRect(), style = getComputedStyle(here);
  if (!here || here === document.body) return null;
  (window.reached ??= new Set()).add(here); // not an attribute: a page that is brought up to date loses those
  return {
    what: here.outerHTML.slice(0, 80),
    outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    seen: box.width > 0 && box.right > 0 && box.left < innerWidth && box.bottom > 0 && box.top < innerHeight,
  };
}"""
GROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.mark.parametrize(
    ("name", "size"), [("tasks", "dark"), ("fleet", "light"), ("create", "dark"), ("running", "light")]
)
def test_everything_is_reached_by_the_tab_key_and_the_focus_is_seen(
    look: Open, gallery: Gallery, name: str, size: str
) -> None:
    page = look(gallery.fleet.url, gallery.pages[name], **LOOKS[size])
    settled(page)
    page.evaluate("document.querySelectorAll('details').forEach((each) => each.open = true)")
    wanted = page.evaluate(INTERACTIVE)
    reached = 0
    while (focused := pressed_tab(page)) is not None and reached <= wanted:
        assert focused["outlined"], focused["what"]
        assert focused["seen"], focused["what"]
        reached += 1
    assert page.evaluate("window.reached.size") == wanted


def pressed_tab(page: Page) -> dict[str, Any] | None:
    """What has the focus after the Tab key; None at the end of the page."""
    page.keyboard.press("Tab")
    found: dict[str, Any] | None = page.evaluate(FOCUSED)
    return found


def test_the_theme_is_the_system_s_until_somebody_chooses_and_then_stays(look: Open, gallery: Gallery) -> None:
    light = look(gallery.fleet.url, color_scheme="light").evaluate(GROUND)
    page = look(gallery.fleet.url, gallery.pages["running"], color_scheme="dark")
    dark = page.evaluate(GROUND)
    assert dark != light
    button = page.get_by_role("button", name="Theme")
    expect(button).to_have_text("Theme: auto")
    button.click()
    expect(button).to_have_text("Theme: light")
    assert page.evaluate(GROUND) == light
    page.reload()
    expect(button).to_have_text("Theme: light")
    assert page.evaluate(GROUND) == light
    button.click()
    page.emulate_media(color_scheme="light")
    expect(button).to_have_text("Theme: dark")
    assert page.evaluate(GROUND) == dark
    button.click()
    expect(button).to_have_text("Theme: auto")
    assert page.evaluate(GROUND) == light
    page.reload()
    assert page.evaluate(GROUND) == light
