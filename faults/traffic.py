"""Users of one site, with outcomes that a seed decides: they ask the edge, and send rewards once, again, late or never.

As `outvote.client` does, a reward is sent again where no answer came. What the edge took, or may have taken, is taken
down: a tally must speak of just that.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import random
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from faults.schedule import Planned
from faults.told import Notes, Visit, rewards
from outvote.core.decisions import Ticket

PAUSE: Final = 0.002
"""Seconds between two events of a site."""
AWAY: Final = 0.05
"""Seconds before users come again to an edge that does not answer."""
PATIENCE: Final = 1.0
ASTRAY: Final = 0.03
"""The share of rewards that are also sent with the name of another process."""


class NotReached(Exception):
    """No connection came about: nothing was sent."""


class Lost(Exception):
    """The request may have been received, and there was no answer."""


@dataclass(frozen=True)
class Door:
    """Where an HTTP API of this machine is, and what opens it."""

    port: int
    host: str = "127.0.0.1"
    context: ssl.SSLContext | None = None
    """Of one that speaks TLS, as `localhost`."""
    token: str = ""


class Caller:
    """One connection to an HTTP API on this machine, which is made anew when it is lost."""

    def __init__(self, door: Door, patience: float = PATIENCE) -> None:
        self._door = door
        self._called = door.host if door.context is None else "localhost"
        self._patience = patience
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status and what was answered."""
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._called}:{self._door.port}\r\n"
        head += "Content-Type: application/json\r\n"
        if self._door.token:
            head += f"Authorization: Bearer {self._door.token}\r\n"
        reader, writer = await self._connection()
        try:
            writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
            async with asyncio.timeout(self._patience):
                return await _answer(reader)
        except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError) as error:
            self.close()
            raise Lost(str(error)) from None
        except asyncio.CancelledError:
            self.close()
            raise

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._open is not None and (self._open[0].at_eof() or self._open[1].is_closing()):
            self.close()  # the edge has gone since
        if self._open is None:
            try:
                door = self._door
                name = None if door.context is None else self._called
                async with asyncio.timeout(self._patience):
                    self._open = await asyncio.open_connection(
                        door.host, door.port, ssl=door.context, server_hostname=name
                    )
            except (OSError, TimeoutError) as error:
                raise NotReached(str(error)) from None
        return self._open

    def close(self) -> None:
        if self._open is not None:
            self._open[1].transport.abort()
            self._open = None


async def _answer(reader: asyncio.StreamReader) -> tuple[int, Any]:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(fields.get("content-length", 0)))
    return int(first.split(" ")[1]), json.loads(body) if body else None


class Users:
    """Of one site: they visit all tasks in turn, at whichever edge has the site's name now."""

    def __init__(
        self,
        door: Door,
        tasks: Mapping[str, Planned],
        seed: str,
        *,
        weights: Mapping[str, int],
        life: Callable[[], int],
    ) -> None:
        """`weights` by task: how much more often than once it is visited. `life` counts the processes of the edge."""
        self.notes: dict[str, Notes] = {}
        """By task."""
        self.events = 0
        self.finished: set[str] = set()
        """Tasks of which the users need ask no more."""
        self._caller = Caller(door)
        self._tasks: dict[str, Planned] = {}
        self._weights = weights
        self._life = life
        self._rng = random.Random(seed)
        self._due: list[tuple[float, int, str, Visit, float]] = []
        """Rewards to be sent: when, and of which task."""
        for planned in tasks.values():
            self.add_task(planned)

    def add_task(self, planned: Planned) -> None:
        """A new one, or one of a name that was there before."""
        self._tasks[planned.name] = planned
        self.notes.setdefault(planned.name, Notes(planned.window))
        self.finished.discard(planned.name)

    async def come(self, going: asyncio.Event) -> None:
        """Until `going` is cleared."""
        while going.is_set():
            open_tasks = [task for task in self._tasks if task not in self.finished]
            try:
                if open_tasks:
                    weights = [self._weights.get(task, 1) for task in open_tasks]
                    await self._event(self._rng.choices(open_tasks, weights)[0])
                await asyncio.sleep(PAUSE)
            except (NotReached, Lost):
                await asyncio.sleep(AWAY)
        self._caller.close()

    async def _event(self, task: str) -> None:
        asked = time.time()
        try:
            status, decision = await self._caller.ask("POST", f"/v1/tasks/{task}/decide")
        except Lost:
            self.notes[task].unseen += 1
            raise
        if status != 200:
            await asyncio.sleep(AWAY)  # the edge has not heard of the task yet
            return
        self.events += 1
        ticket, planned = Ticket.parse(decision["ticket"]), self._tasks[task]
        if ticket is not None:
            visit = Visit(ticket, asked, time.time())
            self.notes[task].decided(visit)
            for part, reward in rewards(self._rng, self._rng.random() < planned.means[decision["variant"]]):
                self._later(asked + part * planned.window, task, visit, reward)
        while self._due and self._due[0][0] <= time.time():
            at, _, task, visit, reward = heapq.heappop(self._due)
            try:
                await self._reward(task, visit, reward)
            except (NotReached, Lost):
                self._later(at, task, visit, reward)
                raise

    def _later(self, at: float, task: str, visit: Visit, reward: float) -> None:
        heapq.heappush(self._due, (at, self._rng.getrandbits(64), task, visit, reward))

    async def _reward(self, task: str, visit: Visit, reward: float) -> None:
        path = f"/v1/tasks/{task}/reward"
        if self._rng.random() < ASTRAY:
            astray = visit.ticket._replace(run=visit.ticket.run[::-1])
            await self._caller.ask("POST", path, {"ticket": str(astray), "reward": 1})
        sent, life = time.time(), self._life()
        try:
            status, _ = await self._caller.ask("POST", path, {"ticket": str(visit.ticket), "reward": reward})
        except Lost:
            self.notes[task].rewarded(visit, reward, sent, time.time(), 0, {life, self._life()})
            raise
        self.notes[task].rewarded(visit, reward, sent, time.time(), status, {life, self._life()})


async def ask(door: Door, method: str, path: str, body: object = None, *, patience: float) -> tuple[int, Any]:
    """What an API answers to one request, on a connection of its own."""
    caller = Caller(door, patience=patience)
    try:
        return await caller.ask(method, path, body)
    finally:
        caller.close()


async def view(door: Door, path: str) -> tuple[int, Any]:
    """What an API answers to one question; status 0 if it does not."""
    with suppress(NotReached, Lost):
        return await ask(door, "GET", path, patience=5.0)
    return 0, None
