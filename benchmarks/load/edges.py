"""Many real edges in one process, as a program: URL FOLDER OPTIONS, the last in JSON (see `Options`).

Each is an `Edge` with a store of its own on the disk and a connection of its own, as `outvote edge` runs one; what they
share is the interpreter. Events come in visits: a burst of them at one edge for one task. What an edge was told to be
stored, and when it heard of an elimination, is noted for the checker.

It reads lines of JSON: {"do": "quiet"} ends the traffic, {"do": "report"} and {"do": "state"} are answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import msgspec
import uvloop

from benchmarks.load.tasks import means_of
from benchmarks.network.processes import allow_connections, say_json
from outvote.core.errors import OutvoteError
from outvote.edge import site as edge_module
from outvote.edge.hosted_task import HostedTask
from outvote.edge.site import Edge
from outvote.edge.store import EdgeStore
from outvote.engine.nats_log import NatsLog
from outvote.log.records import DownSubject, parse

FILES = 5
"""Of one edge: its connection, its lock, and three of its store."""
PATIENCE = 120.0
LOOK_EVERY = 2.0
"""Seconds between two looks at which tasks there are."""


class Options(msgspec.Struct, frozen=True):
    """What is asked of one process."""

    names: tuple[str, ...]
    up: int
    """How many of the names are there at a time: the others are away."""
    visits: float
    """A second, at all edges of this process together."""
    events: int
    """Of one visit, at most; half of them on average."""
    tick: float
    """Seconds between two looks of an edge at what there is to send: see `edge.TICK`."""
    swap: float = 0.0
    """Seconds after which one edge leaves and another comes; 0 is never."""
    at_a_time: int = 25
    """Edges that connect at once."""
    seed: int = 0


class Notes:
    """What the checker must know."""

    def __init__(self, acknowledged: IO[str]) -> None:
        self.acknowledged = 0
        self.again = 0
        """Of those: the log had them already."""
        self.heard: dict[str, list[float]] = {}
        """By subject of an elimination: how many edges heard it, and when the first and the last did."""
        self._file = acknowledged

    def stored(self, subject: str, payload: bytes, new: bool) -> None:
        self.acknowledged += 1
        self.again += not new
        self._file.write(f"{subject} {payload.hex()}\n")

    def hear(self, subject: str) -> None:
        now = time.time()
        noted = self.heard.get(subject)
        if noted is None:
            self.heard[subject] = [1, now, now]
        else:
            noted[0] += 1
            noted[2] = now


class NotedLog(NatsLog):
    """A log that tells what was acknowledged and what was heard."""

    def __init__(self, url: str, name: str, notes: Notes) -> None:
        super().__init__(url, name=name)
        self._notes = notes

    async def append(self, subject: str, payload: bytes) -> bool:
        new = await super().append(subject, payload)
        self._notes.stored(subject, payload, new)
        return new

    async def listen(self, hear: Callable[[str, bytes], None]) -> None:
        def hear_noted(subject: str, payload: bytes) -> None:
            hear(subject, payload)
            if ".elim." in subject and isinstance(parse(subject), DownSubject):
                self._notes.hear(subject)

        await super().listen(hear_noted)


class Site:
    """One name: its store, and its edge while it is there."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._path = folder / f"{name}.db"
        self._store: EdgeStore | None = None
        self.edge: Edge | None = None

    @property
    def tasks(self) -> dict[str, HostedTask]:
        return {} if self.edge is None else self.edge.tasks

    async def come(self, url: str, notes: Notes) -> None:
        self._store = EdgeStore(self._path)
        self.edge = Edge(self.name, self._store, clock=time.monotonic)
        await self.edge.start(NotedLog(url, self.name, notes))
        until = time.monotonic() + PATIENCE
        while self.edge.last_catch_up is None:
            if time.monotonic() > until:
                raise TimeoutError(f"{self.name} was not answered within {PATIENCE:g} s")
            await asyncio.sleep(0.05)

    async def leave(self) -> None:
        edge, self.edge = self.edge, None
        if edge is not None and self._store is not None:
            await edge.stop()
            self._store.close()


class Fleet:
    """All edges of this process, and those who visit them."""

    def __init__(self, url: str, folder: Path, options: Options, notes: Notes) -> None:
        self._url = url
        self._options = options
        self._notes = notes
        self._rng = random.Random(options.seed)
        self.sites = [Site(name, folder) for name in options.names]
        self.events = 0
        self.visits = 0
        self.swaps = 0
        self.behind = 0.0
        """Seconds by which visits came late, at most: this process was not given the processor in time."""
        self.quiet = False
        self._places: list[tuple[str, list[Site]]] = []
        """Tasks by name, and the sites that have each: visits go to all tasks alike."""
        self._means: dict[str, list[float]] = {}

    async def come(self) -> None:
        there = self.sites[: self._options.up]
        step = self._options.at_a_time
        for start in range(0, len(there), step):
            await asyncio.gather(*(site.come(self._url, self._notes) for site in there[start : start + step]))

    async def be_visited(self) -> None:
        """Visits come at random times, at a rate that does not depend on how fast they are served."""
        due = time.monotonic()
        while not self.quiet:
            due += self._rng.expovariate(self._options.visits)
            wait = due - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            elif self.visits % 20 == 0:
                await asyncio.sleep(0)
            self.behind = max(self.behind, -wait)
            if -wait > 5:  # what cannot be borne is not asked for all at once later
                due = time.monotonic()
            self._visit()

    async def look(self) -> None:
        """For ever: which task is where."""
        while not self.quiet:
            places: dict[str, list[Site]] = {}
            for site in self.sites:
                for name, task in site.tasks.items():
                    if not task.stopped and len(task.announced) > 1:
                        places.setdefault(name, []).append(site)
            self._places = list(places.items())
            await asyncio.sleep(LOOK_EVERY)

    def _visit(self) -> None:
        if not self._places:
            return
        name, sites = self._rng.choice(self._places)
        edge = self._rng.choice(sites).edge
        task = None if edge is None else edge.tasks.get(name)
        if edge is None or task is None or task.stopped or len(task.announced) == 1:
            return
        self.visits += 1
        self._play(edge, task, self._rng.randint(1, self._options.events))

    def _play(self, edge: Edge, task: HostedTask, events: int) -> None:
        means = self._means.get(task.task.name)
        if means is None:
            means = self._means[task.task.name] = means_of(task.task.name)
            if len(self._means) > 1000:
                self._means.clear()
                self._means[task.task.name] = means
        draw = self._rng.random
        for _ in range(events):
            ticket = edge.decide(task)
            edge.reward(task, ticket, 1.0 if draw() < means[ticket.arm] else 0.0)
        self.events += events

    async def swap(self) -> None:
        """For ever: one edge leaves, another that was away comes back to its store."""
        while self._options.swap and not self.quiet:
            await asyncio.sleep(self._options.swap)
            there = [site for site in self.sites if site.edge is not None]
            away = [site for site in self.sites if site.edge is None]
            if there and away and not self.quiet:
                await self._rng.choice(there).leave()
                await self._rng.choice(away).come(self._url, self._notes)
                self.swaps += 1

    async def all_come(self) -> None:
        """Those that are away come, too: what they hold must reach the log before it is looked at."""
        for site in self.sites:
            if site.edge is None:
                await site.come(self._url, self._notes)

    async def leave(self) -> None:
        await asyncio.gather(*(site.leave() for site in self.sites))

    def report(self) -> dict[str, Any]:
        edges = [site.edge for site in self.sites if site.edge is not None]
        figures = [edge.log.figures() for edge in edges if edge.log is not None]
        return {
            "there": len(edges),
            "connected": sum(edge.connected for edge in edges),
            "hosted": sum(len(edge.tasks) for edge in edges),
            "waiting": sum(task.waiting + to_count(task) for edge in edges for task in edge.tasks.values()),
            "reconnections": sum(each.reconnections for each in figures),
            "wire_bytes": sum(each.wire_bytes for each in figures),
            "events": self.events,
            "visits": self.visits,
            "swaps": self.swaps,
            "behind": self.behind,
            "acknowledged": self._notes.acknowledged,
            "again": self._notes.again,
        }

    def state(self) -> dict[str, Any]:
        """Of every edge that is there: its life, and of each task which arms remain and how many messages it made."""
        return {
            edge.name: {
                "incarnation": edge.store.incarnation,
                "tasks": {
                    task.task_id: [list(task.announced), task.stopped, len(edge.store.messages(task.task_id))]
                    for task in edge.tasks.values()
                },
            }
            for edge in (site.edge for site in self.sites)
            if edge is not None
        }


def to_count(task: HostedTask) -> int:
    """Groups of decisions whose window is not over yet."""
    return sum(not group.left for group in task.player.decisions.groups)


async def obey(fleet: Fleet, notes: Notes, folder: Path) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        do = json.loads(line)["do"]
        if do == "quiet":
            fleet.quiet = True
            await fleet.all_come()
            say_json({"quiet": True})
        elif do == "report":
            say_json(fleet.report())
        elif do == "state":
            path = folder / "state.json"
            path.write_text(json.dumps({"edges": fleet.state(), "heard": notes.heard}), encoding="utf-8")
            say_json({"state": str(path)})


async def work(url: str, folder: Path, options: Options) -> None:
    if not allow_connections(FILES * options.up):
        say_json({"error": f"{options.up} edges in one process need {FILES * options.up + 200} open files"})
        return
    edge_module.TICK = options.tick
    logging.getLogger("outvote").setLevel(logging.CRITICAL)  # thousands of edges would tell the same
    with (folder / "acknowledged.txt").open("w", encoding="utf-8") as file:
        notes = Notes(file)
        fleet = Fleet(url, folder, options, notes)
        ended = asyncio.Event()
        for by in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(by, ended.set)
        await fleet.come()
        gc.collect()
        gc.freeze()  # an edge has one connection: going through the garbage of thousands is not its work
        say_json({"connected": len(fleet.sites)})
        works = (fleet.look(), fleet.be_visited(), fleet.swap(), obey(fleet, notes, folder), _until(ended))
        running = [asyncio.create_task(each) for each in works]
        flushing = asyncio.create_task(_flush(file))
        try:
            while not ended.is_set():
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for each in done:
                    each.result()
                running = [each for each in running if not each.done()]
        finally:
            for each in (*running, flushing):
                each.cancel()
            await asyncio.gather(*running, flushing, return_exceptions=True)
            with contextlib.suppress(OutvoteError):
                await fleet.leave()


async def _until(ended: asyncio.Event) -> None:
    await ended.wait()


async def _flush(file: IO[str]) -> None:
    while True:
        await asyncio.sleep(1.0)
        file.flush()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(work(sys.argv[1], Path(sys.argv[2]), msgspec.json.decode(sys.argv[3], type=Options)))
