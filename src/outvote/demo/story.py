"""The demo from its first process to its last: what happened, in order, and what crossed the network."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from outvote.concurrency import run_until_first_exit
from outvote.core.errors import OutvoteError
from outvote.demo.fleet import Fleet
from outvote.demo.setting import TASK, Setting
from outvote.demo.users import Browser, Users
from outvote.presenters import task_fields

LOOK_EVERY = 0.1
"""Seconds between two looks at the server and the edges."""
LEAST_PATIENCE = 60.0
"""Seconds in which a winner is expected; longer where a setting needs many events."""

_WIRE = re.compile(rb"^outvote_edge_wire_bytes_total (\S+)", re.MULTILINE)


class NoWinner(OutvoteError):
    """The time was up."""


@dataclass(frozen=True)
class Elimination:
    """A variant fell, after so many events in the whole fleet."""

    variant: str
    after_events: int


@dataclass
class Story:
    """What happened so far."""

    setting: Setting
    page: str = ""
    """Where the server shows it to people, once it runs."""
    eliminations: list[Elimination] = field(default_factory=list)
    winner: str | None = None
    events: int = 0
    """Until the winner was known."""
    messages: dict[str, int] = field(default_factory=lambda: {"up": 0, "down": 0})
    bits: dict[str, int] = field(default_factory=lambda: {"up": 0, "down": 0, "total": 0})
    shown: dict[str, Any] = field(default_factory=dict)
    """The task as the server last described it."""
    edges: dict[str, bool] = field(default_factory=dict)
    """Who answers."""
    wire: dict[str, int] = field(default_factory=dict)
    """Bytes on the wire, by edge."""
    seconds: float = 0.0
    """From the first event to the winner at every edge."""

    @property
    def wire_bytes(self) -> int:
        return sum(self.wire.values())

    @property
    def bound(self) -> int:
        """The most bits that these events can cost; 0 if nothing bounds them."""
        task = self.setting.task
        return task.entry.bits_bound(task, self.events) or 0

    def to_json(self) -> dict[str, Any]:
        task = self.setting.task
        return {
            "protocol": task.protocol,
            "sites": task.players,
            "variants": list(task.arms),
            "means": list(self.setting.means),
            "winner": self.winner,
            "correct": self.winner == self.setting.best,
            "events": self.events,
            "eliminations": [asdict(each) for each in self.eliminations],
            "messages": self.messages,
            "bits": {**self.bits, "bound": self.bound},
            "wire_bytes": self.wire_bytes,
            "seed": self.setting.seed,
            "seconds": round(self.seconds, 3),
        }


async def tell(
    setting: Setting,
    *,
    look: Callable[[Story], None],
    stay: Callable[[Story], Awaitable[None]] | None = None,
) -> Story:
    """Run a fleet until every edge serves the winner, and then for as long as `stay` goes on.

    `look` is shown the story as it happens.
    """
    with tempfile.TemporaryDirectory(prefix="outvote-demo-", ignore_cleanup_errors=True) as folder:
        fleet = Fleet(Path(folder), setting.task.player_names)
        try:
            story = Story(setting)
            look(story)
            await fleet.start()
            story.page = fleet.server.url("server")
            look(story)
            await _Teller(fleet, story, look).tell()
            if stay is not None:
                await stay(story)
        finally:
            fleet.stop()
    return story


class _Teller:
    """Follows one fleet."""

    def __init__(self, fleet: Fleet, story: Story, look: Callable[[Story], None]) -> None:
        self._story = story
        self._look = look
        edges = {name: edge.url("edge") for name, edge in fleet.edges.items()}
        self._users = Users(story.setting, edges)
        self._server = Browser(fleet.server.url("server"))
        self._edges = {name: Browser(url) for name, url in edges.items()}

    async def tell(self) -> None:
        await self._create()
        try:
            await run_until_first_exit(self._users.live(), self._follow())
        finally:
            for browser in (self._server, *self._edges.values()):
                browser.close()
        self._look(self._story)

    async def _create(self) -> None:
        status, body = await self._server.send("POST", "/v1/tasks", task_fields.to_json(self._story.setting.task))
        if status != 201:
            raise OutvoteError(f"the server refused the demo's task: {body.decode(errors='replace')}")

    async def _follow(self) -> None:
        """Until every edge serves the winner and every message was counted."""
        story = self._story
        start = time.monotonic()
        patience = max(LEAST_PATIENCE, 5 * story.setting.events / story.setting.rate)
        while True:
            with suppress(OSError):  # a server that does not answer is asked again
                self._note(json.loads(await self._server.get(f"/v1/tasks/{TASK}")))
            agreed = await self._look_at_edges()
            if story.winner is None:
                story.events = self._users.events
                story.seconds = time.monotonic() - start
            self._look(story)
            if story.winner is not None and agreed:
                return
            if time.monotonic() - start > patience:
                raise NoWinner(
                    f"no winner within {patience:.0f} s and {self._users.events:,} events; try fewer --variants"
                )
            await asyncio.sleep(LOOK_EVERY)

    def _note(self, shown: dict[str, Any]) -> None:
        """The task as the server describes it: what is new in it happened just now."""
        story = self._story
        story.shown = shown
        known = {each.variant for each in story.eliminations}
        fallen = sorted(
            (each["eliminated"]["number"], each["variant"])
            for each in shown["variants"]
            if each["eliminated"] and each["variant"] not in known
        )
        story.eliminations += [Elimination(variant, self._users.events) for _, variant in fallen]
        story.messages = dict(shown["messages"])
        story.bits = {kind: shown["bits"][kind] for kind in ("up", "down", "total")}
        if story.winner is None and shown["winner"] is not None:
            story.winner = shown["winner"]
            story.events = self._users.events

    async def _look_at_edges(self) -> bool:
        """Whether all answer and serve the winner, and the log has each of their messages, once."""
        kept = [await self._look_at(name, browser) for name, browser in self._edges.items()]
        if any(each is None for each in kept):
            return False
        stored = sum(each for each in kept if each is not None)
        return stored == self._story.messages["up"] and self._story.shown["refused"] == 0

    async def _look_at(self, name: str, browser: Browser) -> int | None:
        """How many messages an edge has stored; None if it is away, or does not serve the winner yet."""
        try:
            found = _WIRE.search(await browser.get("/metrics"))
            self._story.wire[name] = int(float(found[1])) if found else 0
            task = json.loads(await browser.get(f"/v1/tasks/{TASK}"))
        except OSError:
            self._story.edges[name] = False
            return None
        self._story.edges[name] = True
        done = self._story.winner is not None and task["winner"] == self._story.winner
        return int(task["messages_kept"]) if done else None
