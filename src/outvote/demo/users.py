"""Synthetic users: they ask the edges for a variant over HTTP, like it or not, and say so.

A user's browser is a connection kept open, and no more than that: a general HTTP client would cost more than the edge.
"""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from outvote.demo.setting import TASK, Setting

BROWSERS = 4
"""Connections to each edge: so many of its users are busy at once."""
_RETRY = 0.1


class Browser:
    """One connection to an edge, made anew when it is lost."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = str(parts.hostname), int(parts.port or 80)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, method: str, path: str, body: Any = None, *, headers: str = "") -> tuple[int, bytes]:
        """Status and body; an OSError if there is no answer. `headers` are whole lines."""
        text = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: {self._host}\r\n{headers}content-length: {len(text)}\r\n\r\n"
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection(self._host, self._port)
            reader, writer = self._streams
            writer.write(head.encode() + text)
            status, *fields = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
            length = next((int(each[15:]) for each in fields if each.lower().startswith(b"content-length:")), 0)
            return int(status.split()[1]), await reader.readexactly(length)
        except (EOFError, ValueError) as error:  # the edge was killed in the middle of its answer
            self.close()
            raise ConnectionError(str(error)) from None
        except OSError:
            self.close()
            raise

    async def get(self, path: str) -> Any:
        """What a page holds; an OSError if it cannot be had."""
        status, body = await self.send("GET", path)
        if status != 200:
            raise ConnectionError(f"{path} answered {status}")
        return body

    def close(self) -> None:
        if self._streams is not None:
            with suppress(OSError, RuntimeError):
                self._streams[1].close()
            self._streams = None


class Users:
    """All users of all sites, at a steady rate."""

    def __init__(self, setting: Setting, edges: dict[str, str]) -> None:
        """`edges` are the addresses of the edges, by name."""
        self.events = 0
        """Decisions whose reward was taken."""
        self._setting = setting
        self._edges = edges
        self._rng = random.Random(setting.seed)

    async def live(self) -> None:
        """Until cancelled; raises what cannot be."""
        pause = len(self._edges) * BROWSERS / self._setting.rate
        browsers = [Browser(url) for url in self._edges.values() for _ in range(BROWSERS)]
        living = [asyncio.create_task(self._browse(browser, pause)) for browser in browsers]
        try:
            await asyncio.gather(*living)
        finally:
            for each in living:
                each.cancel()
            await asyncio.gather(*living, return_exceptions=True)
            for browser in browsers:
                browser.close()

    async def _browse(self, browser: Browser, pause: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + pause * self._rng.random()
        while True:
            await asyncio.sleep(max(due - loop.time(), 0))
            try:
                await self._visit(browser)
                due = max(due + 2 * pause * self._rng.random(), loop.time() - 1)
            except OSError:  # the edge is away: its users come again
                due = loop.time() + _RETRY

    async def _visit(self, browser: Browser) -> None:
        status, answer = await browser.send("POST", f"/v1/tasks/{TASK}/decide")
        if status == 404:  # it has not heard of the task yet
            raise ConnectionError("too early")
        decision = json.loads(answer)
        likes = self._rng.random() < self._setting.means[self._setting.task.arms.index(decision["variant"])]
        reward = {"ticket": decision["ticket"], "reward": int(likes)}
        status, _ = await browser.send("POST", f"/v1/tasks/{TASK}/reward", reward)
        if status == 204:  # else the edge was killed since, and has forgotten the decision
            self.events += 1
