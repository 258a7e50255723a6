"""One audited run: the fleet is started, its users come, and all that can be seen from outside and inside is gathered.

One rule: it only gathers, and looks for markers in what does not last; everything else is judged afterwards.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from outvote.core.errors import OutvoteError
from outvote.demo.fleet import Fleet
from outvote.demo.setting import TASK, Setting
from outvote.demo.story import NoWinner
from outvote.demo.users import Browser
from outvote.presenters import task_fields
from outvote.privacy.audit.findings import Finding
from outvote.privacy.audit.markers import Markers
from outvote.privacy.audit.people import People
from outvote.privacy.audit.recorder import DOWN, UP, Conversation, Recorder

LOOK_EVERY: Final = 0.25
"""Seconds between two looks at the server."""
FILES_EVERY: Final = 1.0
"""Seconds between two looks at the edges' files: what they hold is written over after some six."""
PATIENCE: Final = 60.0
"""Seconds in which a winner is expected, or longer for many events."""
SETTLED: Final = 5.0
"""Seconds in which all that was stored is sent and counted."""
EDGE_PAGES: Final = ("/metrics", f"/v1/tasks/{TASK}", "/v1/tasks", "/healthz")
SERVER_PAGES: Final = ("/metrics", f"/v1/tasks/{TASK}", "/v1/tasks", "/v1/sites", "/", f"/tasks/{TASK}")
OPTIONS: Final = ("--log", "json", "--log-level", "debug")
"""All that can be logged is, and in a form that can be read again."""


@dataclass
class Searched:
    """What was searched for markers, by kind: how many things, how many bytes."""

    amounts: dict[str, dict[str, int]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    _known: set[bytes] = field(default_factory=set)

    def search(self, kind: str, name: str, data: bytes, markers: Markers) -> None:
        digest = hashlib.sha256(data).digest()
        if digest in self._known:  # a file that has not changed
            return
        self._known.add(digest)
        amount = self.amounts.setdefault(kind, {"things": 0, "bytes": 0})
        amount["things"] += 1
        amount["bytes"] += len(data)
        for what in markers.find(data):
            self.findings.append(Finding("marker", f"{kind}: {name}", f"{what} of a user's request was found"))


@dataclass
class Observation:
    """All that was gathered."""

    setting: Setting
    markers: Markers
    people: People
    conversations: list[Conversation]
    searched: Searched = field(default_factory=Searched)
    shown: dict[str, Any] = field(default_factory=dict)
    """The task as the server last described it."""
    stores: dict[str, dict[str, list[tuple[Any, ...]]]] = field(default_factory=dict)
    """By edge and table: the rows, as they were at the end."""
    columns: dict[str, list[str]] = field(default_factory=dict)
    """By table: its columns, in all stores."""
    locks: dict[str, dict[str, Any]] = field(default_factory=dict)
    log_lines: list[tuple[str, str]] = field(default_factory=list)
    """Who wrote it, and the line."""
    first_heard: dict[str, float] = field(default_factory=dict)
    """By edge: when news of an elimination first went to it."""
    seconds: float = 0.0


async def observe(setting: Setting, *, least_events: int, say: Callable[[str], None]) -> Observation:
    """Run a fleet until every edge serves the winner and so many events have been; gather everything."""
    markers = Markers()
    with tempfile.TemporaryDirectory(prefix="outvote-audit-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        fleet = Fleet(folder, setting.task.player_names, options=OPTIONS)
        recorder: Recorder | None = None
        began = time.monotonic()
        try:
            say("starting the fleet…")
            await fleet.start_server()
            recorder = Recorder(fleet.server.url("nats"))
            await recorder.start()
            fleet.way = recorder.url
            await fleet.start_edges()
            people = People(setting, {name: edge.url("edge") for name, edge in fleet.edges.items()}, markers)
            seen = Observation(setting, markers, people, recorder.conversations)
            watch = _Watch(seen, fleet, folder, say)
            await watch.run(least_events)
            await watch.look_at_files(everything=True)  # as they are while all runs: write-ahead logs and all
            say("stopping the fleet, and searching what it left…")
            await asyncio.to_thread(fleet.stop)
            await watch.look_at_files(everything=True)
            seen.seconds = time.monotonic() - began
            watch.gather()
        finally:
            fleet.stop()
            if recorder is not None:
                recorder.stop()
    return seen


class _Watch:
    """Looks at one fleet from all sides."""

    def __init__(self, seen: Observation, fleet: Fleet, folder: Path, say: Callable[[str], None]) -> None:
        self._seen = seen
        self._people = seen.people
        self._folder = folder
        self._say = say
        self._server = Browser(fleet.server.url("server"))
        self._edges = {name: Browser(edge.url("edge")) for name, edge in fleet.edges.items()}

    async def run(self, least_events: int) -> None:
        status, body = await self._server.send("POST", "/v1/tasks", task_fields.to_json(self._seen.setting.task))
        if status != 201:
            raise OutvoteError(f"the server refused the audit's task: {body.decode(errors='replace')}")
        living = asyncio.create_task(self._people.live())
        try:
            await self._follow(least_events, living)
            self._people.end()
            await living
            await self._settle()
            await self._look_at_pages()
        finally:
            living.cancel()
            await asyncio.gather(living, return_exceptions=True)
            for browser in (self._server, *self._edges.values()):
                browser.close()

    async def _follow(self, least_events: int, living: asyncio.Task[None]) -> None:
        start = looked = time.monotonic()
        patience = max(PATIENCE, 3 * least_events / self._seen.setting.rate)
        while True:
            shown = await self._look_at_task()
            if living.done():
                living.result()
            if shown["winner"] is not None and self._people.count >= least_events:
                return
            if time.monotonic() - start > patience:
                raise NoWinner(f"no winner within {patience:.0f} s and {self._people.count:,} events")
            if time.monotonic() - looked >= FILES_EVERY:
                await self.look_at_files(everything=False)
                looked = time.monotonic()
            await asyncio.sleep(LOOK_EVERY)

    async def _settle(self) -> None:
        """Until every edge serves the winner and the log has all that the edges have stored."""
        deadline = time.monotonic() + SETTLED
        while True:
            shown = await self._look_at_task()
            tasks = [json.loads(await browser.get(f"/v1/tasks/{TASK}")) for browser in self._edges.values()]
            sent = sum(each["messages_kept"] for each in tasks)
            waits = sum(each["messages_waiting"] for each in tasks)
            done = not waits and sent == shown["messages"]["up"]
            if done and all(each["winner"] == shown["winner"] for each in tasks):
                return
            if time.monotonic() > deadline:  # what is amiss the account will tell
                return
            await asyncio.sleep(LOOK_EVERY / 3)

    async def _look_at_task(self) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(await self._server.get(f"/v1/tasks/{TASK}"))
        self._seen.shown = shown
        self._say(f"users come: {self._people.count:,} events, {shown['messages']['up']:,} messages…")
        return shown

    async def _look_at_pages(self) -> None:
        for name, browser, pages in (
            ("server", self._server, SERVER_PAGES),
            *((name, browser, EDGE_PAGES) for name, browser in self._edges.items()),
        ):
            for page in pages:
                _, body = await browser.send("GET", page)
                self._seen.searched.search("pages and metrics", f"{name} {page}", body, self._seen.markers)

    async def look_at_files(self, *, everything: bool) -> None:
        """The files of the fleet; while users come, only those that are written over: what they held is gone later."""
        for path in sorted(_all_in(self._folder) if everything else self._folder.glob("*.db*")):
            with suppress(OSError):  # it went away while it was looked at
                name = str(path.relative_to(self._folder))
                data = await asyncio.to_thread(path.read_bytes) if path.is_file() else b""
                kind = _kind(path, self._folder)
                self._seen.searched.search(kind, name, name.encode() + b"\0" + data, self._seen.markers)

    def gather(self) -> None:
        """What is judged afterwards."""
        seen = self._seen
        for number, each in enumerate(seen.conversations, 1):
            for way in (UP, DOWN):
                seen.searched.search("traffic", f"connection {number}, {way}", each.said(way), seen.markers)
            _note_first_news(each, seen)
        for name in self._edges:
            self._read_store(name)
        for path in sorted(self._folder.glob("*.log")):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            seen.log_lines += [(path.stem, line) for line in lines]

    def _read_store(self, name: str) -> None:
        """All that a store holds, whatever its tables are."""
        path = self._folder / f"{name}.db"
        with closing(sqlite3.connect(path)) as store:
            tables = [row[0] for row in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for table in tables:
                columns = [row[1] for row in store.execute(f"PRAGMA table_info({table})")]
                self._seen.columns[table] = columns
                rows = store.execute(f"SELECT * FROM {table}").fetchall()
                self._seen.stores.setdefault(name, {})[table] = rows
        lock = path.with_name(path.name + ".lock").read_text(encoding="utf-8", errors="replace")
        self._seen.locks[name] = json.loads(lock)


def _all_in(folder: Path) -> Iterator[Path]:
    """Files and folders, however deep; one that goes away meanwhile is no error."""
    for place, folders, files in os.walk(folder):
        yield from (Path(place, name) for name in (*folders, *files))


def _kind(path: Path, folder: Path) -> str:
    if path.suffix == ".log" or ".log." in path.name:
        return "logs"
    centre = path.relative_to(folder).parts[0] in ("engine", "server.ready.json")
    return "files of the centre" if centre else "files of sites"


def _note_first_news(conversation: Conversation, seen: Observation) -> None:
    """When an edge may first have known of an elimination: only before that are its votes computed again."""
    greeting = conversation.said(UP)
    names = seen.setting.task.player_names
    edge = next((name for name in names if re.search(rf'"name": ?"{name}"'.encode(), greeting)), None)
    when = next((at for at, piece in conversation.down if b".elim." in piece or b'"eliminations"' in piece), None)
    if edge is not None and when is not None:
        seen.first_heard[edge] = min(when, seen.first_heard.get(edge, when))
