"""The audit's users: every request carries markers wherever a request has room for them, also those that are refused.

One rule: at each site one request follows the other, so the audit knows the order and the time of every event. Some
rewards are sent twice.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from outvote.core.decisions import Ticket
from outvote.demo.setting import TASK, Setting
from outvote.demo.users import Browser
from outvote.privacy.audit.markers import Markers

PEOPLE: Final = 20
"""Users of each site, who come again and again."""
REPEATED: Final = 0.1
"""Share of rewards that are sent twice."""
REFUSED_EVERY: Final = 10
"""Events between two requests that are wrong on purpose."""
_RETRY: Final = 0.05


@dataclass(frozen=True, slots=True)
class Event:
    """One event as its user knows it."""

    ticket: Ticket
    reward: int
    decided: tuple[float, float]
    """The span of the request, from its first byte to its answer."""
    in_time: bool
    """Its reward surely came within the window."""


class People:
    """All users of all sites."""

    def __init__(self, setting: Setting, edges: dict[str, str], markers: Markers) -> None:
        """`edges` are the addresses of the edges, by name."""
        self.events: dict[str, list[Event]] = {name: [] for name in edges}
        self.count = 0
        """Decisions that were served and answered, also those that are not counted."""
        self.requests = 0
        self.refused = 0
        self._ending = False
        self._setting = setting
        self._edges = edges
        self._mark = markers.new
        self._rng = random.Random(setting.seed)
        self._people = {name: [markers.person(f"{name}-user-{n}") for n in range(PEOPLE)] for name in edges}

    async def live(self) -> None:
        """Until `end` was called and every user has had their answer; raises what cannot be."""
        await asyncio.gather(*(self._visit_all(name, Browser(url)) for name, url in self._edges.items()))

    def end(self) -> None:
        """Nobody else comes. Who is there is answered: an event that the audit did not know of would be a riddle."""
        self._ending = True

    async def _visit_all(self, name: str, browser: Browser) -> None:
        pause = len(self._edges) / self._setting.rate
        loop = asyncio.get_running_loop()
        due = loop.time()
        try:
            while not self._ending:
                await asyncio.sleep(max(due - loop.time(), 0))
                try:
                    await self._visit(name, browser)
                    if len(self.events[name]) % REFUSED_EVERY == 1:
                        await self._err(name, browser)
                    due = max(due + self._rng.expovariate(1 / pause), loop.time() - 1)
                except OSError:
                    due = loop.time() + _RETRY
        finally:
            browser.close()

    async def _visit(self, name: str, browser: Browser) -> None:
        """One event: a decision, by either API, and its reward."""
        user = self._rng.choice(self._people[name])
        began = time.monotonic()
        if self._rng.random() < 0.5:
            status, answer = await self._send(browser, f"/v1/tasks/{TASK}/decide", user, {"user": self._mark("body")})
        else:
            context = {"context": {"targetingKey": user, "email": self._mark("context"), "seen": {"at": time.time()}}}
            status, answer = await self._send(browser, f"/ofrep/v1/evaluate/flags/{TASK}", user, context)
        decided = began, time.monotonic()
        if status != 200:  # it has not heard of the task yet
            raise ConnectionError("too early")
        found = json.loads(answer)
        text = found["ticket"] if "ticket" in found else found["metadata"]["ticket"]
        ticket = Ticket.parse(text)
        self.count += 1
        if ticket is None:
            return  # the task has ended
        reward = int(self._rng.random() < self._setting.means[ticket.arm])
        body = {"ticket": text, "reward": reward}
        for _ in range(1 + (self._rng.random() < REPEATED)):
            status, _ = await self._send(browser, f"/v1/tasks/{TASK}/reward", user, body)
        in_time = status == 204 and time.monotonic() - began <= self._setting.task.reward_window
        self.events[name].append(Event(ticket, reward, decided, in_time))

    async def _err(self, name: str, browser: Browser) -> None:
        """Requests that are refused: what they hold must not be logged either."""
        user, mark = self._rng.choice(self._people[name]), self._mark
        kind, arm = self._rng.randrange(6), self._setting.task.arms[0]
        path, body = f"/v1/tasks/{TASK}/reward", {"variant": arm, "reward": 1, "user": mark("field")}
        if kind == 1:
            body = {"variant": mark("variant"), "reward": 1, "ticket": "uncounted"}
        elif kind == 2:
            body = {"variant": arm, "reward": 1, "ticket": mark("ticket")}
        elif kind == 3:
            path = f"/v1/tasks/{mark('task')}/decide"
        elif kind == 4:
            path = f"/{mark('path')}"
        elif kind == 5:  # not refused: a bulk evaluation, which counts nothing
            path, body = "/ofrep/v1/evaluate/flags", {"context": {"targetingKey": user, mark("key"): mark("context")}}
        status, _ = await self._send(browser, path, user, body)
        self.refused += status >= 400

    async def _send(self, browser: Browser, path: str, user: str, body: object) -> tuple[int, bytes]:
        mark = self._mark
        headers = (
            f'if-none-match: "{mark("tag")}"\r\n'
            f"cookie: session={user}\r\nuser-agent: {mark('agent')}\r\nx-user-id: {user}\r\n"
            f"x-forwarded-for: {mark('address')}\r\nreferer: https://shop.example/{mark('page')}\r\n"
        )
        self.requests += 1
        return await browser.send("POST", f"{path}?user={quote(user)}&visit={mark('query')}", body, headers=headers)
