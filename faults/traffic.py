"""Users of one site, with outcomes that a seed decides: they ask the edge, and reward each decision at most once.

As `outvote.client` does, a request is made again only where no connection came about. What the edge took, or may have
taken, is counted: no tally may ever speak of more.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

PAUSE: Final = 0.002
"""Seconds between two events of a site."""
AWAY: Final = 0.05
"""Seconds before users come again to an edge that does not answer."""
PATIENCE: Final = 1.0
LATE: Final = 0.2
"""The part of rewards that come some events later."""
Told = Counter[tuple[str, int]]
"""By arm and outcome: how many rewards were told."""


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
        means: Mapping[str, Mapping[str, float]],
        seed: str,
        *,
        weights: Mapping[str, int] | None = None,
    ) -> None:
        """`means` by task and arm; `weights` by task: how much more often than once it is visited."""
        self.told: dict[str, Told] = {task: Counter() for task in means}
        self.events = 0
        self.finished: set[str] = set()
        """Tasks of which the users need ask no more."""
        self._caller = Caller(door)
        self._means = dict(means)
        self._weights = weights or {}
        self._rng = random.Random(seed)
        self._late: list[tuple[str, dict[str, Any]]] = []

    def add_task(self, name: str, means: Mapping[str, float]) -> None:
        """A new one, or one of a name that was there before."""
        self.told.setdefault(name, Counter())
        self._means[name] = means
        self.finished.discard(name)

    async def come(self, going: asyncio.Event) -> None:
        """Until `going` is cleared."""
        while going.is_set():
            open_tasks = [task for task in self._means if task not in self.finished]
            try:
                if open_tasks:
                    weights = [self._weights.get(task, 1) for task in open_tasks]
                    await self._event(self._rng.choices(open_tasks, weights)[0])
                await asyncio.sleep(PAUSE)
            except (NotReached, Lost):
                await asyncio.sleep(AWAY)
        self._caller.close()

    async def _event(self, task: str) -> None:
        status, decision = await self._caller.ask("POST", f"/v1/tasks/{task}/decide")
        if status != 200:
            await asyncio.sleep(AWAY)  # the edge has not heard of the task yet
            return
        self.events += 1
        arm = decision["variant"]
        outcome = int(self._rng.random() < self._means[task][arm])
        self._late.append((task, {"variant": arm, "ticket": decision["ticket"], "reward": outcome}))
        while self._late and self._rng.random() >= LATE:
            await self._reward(*self._late.pop(self._rng.randrange(len(self._late))))

    async def _reward(self, task: str, body: dict[str, Any]) -> None:
        told, key = self.told[task], (body["variant"], body["reward"])
        told[key] += 1  # before: it may be taken, and the answer lost
        try:
            status, _ = await self._caller.ask("POST", f"/v1/tasks/{task}/reward", body)
        except NotReached:
            told[key] -= 1
            self._late.append((task, body))
            raise
        if status != 204:  # of a decision that a kill made the edge forget
            told[key] -= 1


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
