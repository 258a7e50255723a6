"""What a real Chromium says of a page: how long it took to load, and whether it ever stood still while it changed."""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page

PATIENCE = 60_000
"""Milliseconds."""

WATCH_DRAWING = """(() => {
  const look = () => {
    if (document.querySelector(".chart")) window.drawnAt = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})()"""
LOADED = """() => {
  const [page] = performance.getEntriesByType("navigation");
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  const parts = performance.getEntriesByType("resource");
  return {
    load_ms: page.loadEventEnd,
    paint_ms: paint ? paint.startTime : null,
    drawn_ms: window.drawnAt ?? null,
    kib: [page, ...parts].reduce((sum, each) => sum + each.transferSize, 0) / 1024,
  };
}"""
WATCH_UPDATES = """() => {
  const seen = window.seen = { longest_task_ms: 0, longest_frame_ms: 0, counts: [], from: performance.now() };
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) seen.longest_task_ms = Math.max(seen.longest_task_ms, each.duration);
  }).observe({ type: "longtask" });
  let last = performance.now();
  const frame = (now) => {
    seen.longest_frame_ms = Math.max(seen.longest_frame_ms, now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  const before = new Map();
  const number = (text) => Number(text.replace(/[^0-9]/g, ""));
  const look = () => {
    const found = new Map();
    const said = /in ([0-9,]+) messages?/.exec(document.querySelector("main").textContent);
    if (said) found.set("", number(said[1]));
    for (const table of document.querySelectorAll("main table")) {
      const heads = [...table.querySelectorAll("thead th")].map((each) => each.textContent.trim());
      const place = heads.indexOf("Messages");
      if (place < 0) continue;
      for (const row of table.querySelectorAll("tbody tr[data-key]")) {
        found.set(row.dataset.key, number(row.children[place].textContent));
      }
    }
    const at = performance.timeOrigin + performance.now();
    for (const [key, count] of found) {
      if (before.get(key) !== count) seen.counts.push([at, key, count]);
      before.set(key, count);
    }
  };
  look();
  const all = { subtree: true, childList: true, characterData: true };
  new MutationObserver(look).observe(document.querySelector("main"), all);
}"""
UPDATED = """() => ({
  ...window.seen,
  kib: performance.getEntriesByType("resource").filter((each) => each.startTime >= window.seen.from)
    .reduce((sum, each) => sum + each.transferSize, 0) / 1024,
  looks: performance.getEntriesByType("resource").filter((each) => each.startTime >= window.seen.from).length,
})"""


async def loads(chromium: Browser, url: str, *, rounds: int, draws: bool) -> dict[str, Any]:
    """Medians: cold is a window that has never been here; warm is the same page once more."""
    cold, warm = [], []
    for _ in range(rounds):
        context = await window(chromium)
        page = await context.new_page()
        cold.append(await loaded(page, url, draws=draws))
        warm.append(await loaded(page, url, draws=draws))
        await context.close()
    return {"cold": medians(cold), "warm": medians(warm)}


async def window(chromium: Browser) -> BrowserContext:
    context = await chromium.new_context(viewport={"width": 1280, "height": 860})
    context.set_default_timeout(PATIENCE)
    await context.add_init_script(WATCH_DRAWING)
    return context


async def comes(page: Page, condition: str) -> None:
    """Wait for it. Playwright's own way would evaluate text within the page, which the page's policy refuses."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not await page.evaluate(condition):
        assert time.monotonic() < deadline, condition
        await asyncio.sleep(0.02)


async def loaded(page: Page, url: str, *, draws: bool) -> dict[str, float | None]:
    await page.goto(url)
    await comes(page, "performance.getEntriesByType('navigation')[0].loadEventEnd > 0")
    await comes(page, "performance.getEntriesByName('first-contentful-paint').length > 0")
    if draws:
        await comes(page, "window.drawnAt > 0")
    found: dict[str, float | None] = await page.evaluate(LOADED)
    return found


def medians(found: list[dict[str, float | None]]) -> dict[str, float | None]:
    middle: dict[str, float | None] = {}
    for key in found[0]:
        values = [value for each in found if (value := each[key]) is not None]
        middle[key] = statistics.median(values) if values else None
    return middle
