"""The demo as a moving picture for the README: a real fleet, seen on its dashboard. `make screenshots` runs it.

Frames are taken while it happens; those in which nothing has changed are one, shown for longer.
"""

from __future__ import annotations

import argparse
import asyncio
import io
from pathlib import Path

from PIL import Image
from playwright.async_api import Page, async_playwright
from screenshots import ARGUMENTS, CHROMIUM

from outvote.demo import setting, story

SIZE = {"width": 900, "height": 690}
EVERY = 0.5
"""Seconds between two frames."""
AT_THE_END = 4.0
COLOURS = 64


async def film(page: Page, url: str, frames: list[Image.Image], over: asyncio.Event) -> None:
    """Frames of the task's page until it is over, and a moment longer."""
    loop = asyncio.get_running_loop()
    while not (await page.goto(f"{url}/tasks/{setting.TASK}", wait_until="load")).ok:  # type: ignore[union-attr]
        await asyncio.sleep(0.1)
    await page.evaluate("document.querySelector('header').scrollIntoView()")
    end: float | None = None
    while end is None or loop.time() < end:
        frames.append(Image.open(io.BytesIO(await page.screenshot())).convert("RGB"))
        await asyncio.sleep(EVERY)
        if over.is_set() and end is None:
            end = loop.time() + AT_THE_END


def write(frames: list[Image.Image], path: Path) -> None:
    """A GIF that goes round for ever."""
    first, times = [frames[0]], [0]
    for frame in frames:
        if frame.tobytes() != first[-1].tobytes():
            first.append(frame)
            times.append(0)
        times[-1] += int(1000 * EVERY)
    times[-1] += 2000
    packed = [frame.quantize(COLOURS) for frame in first]
    packed[0].save(path, save_all=True, append_images=packed[1:], duration=times, loop=0, optimize=True)
    print(f"{path}: {len(packed)} frames, {path.stat().st_size / 1e6:.1f} MB")


async def work(path: Path) -> None:
    frames: list[Image.Image] = []
    over = asyncio.Event()
    filming: list[asyncio.Task[None]] = []
    chosen = setting.choose(protocol="tally", sites=8, variants=5, rate=60, seed=2, reward_window=10)
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = await chromium.new_page(viewport=SIZE, color_scheme="light")  # type: ignore[arg-type]

        def look(told: story.Story) -> None:
            if told.page and not filming:
                filming.append(asyncio.create_task(film(page, told.page, frames, over)))
            if told.winner is not None:
                over.set()

        async def stay(ended: story.Story) -> None:
            await asyncio.gather(*filming)

        await story.tell(chosen, look=look, stay=stay)
        await chromium.close()
    write(frames, path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", type=Path, default=Path(__file__).parent / "figures" / "demo.gif")
    asyncio.run(work(parser.parse_args().path))
