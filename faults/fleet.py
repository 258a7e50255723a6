"""The fleet of one run: engine nodes, servers and edges as real processes, with the proxy between them.

Whoever dies by itself is noted with its last words. Everything is on ports and in folders of the run's own, and nothing
is left behind.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults.cluster import NODES, Cluster, free_ports
from faults.kits import Kits
from faults.nursery import Child, Nursery
from faults.proxy import Proxy
from faults.schedule import Planned, Schedule
from faults.spaces import Spaces
from faults.traffic import Door, Users, ask
from helpers.processes import comes
from helpers.small_disk import Disk, mount, unmount
from outvote.access.engine_access import Access
from outvote.presenters.task_fields import to_json

ANSWERS = 20.0
"""Seconds in which a process must be ready, or have ended."""
VOTES_NEED = 5
"""Events of a task of votes for each of the others: it needs many before it says anything."""
EXPECTED_ENDS = (
    "could not be written",  # a full disk
    "no NATS answers",  # a server gives up after ten seconds, and is started again
    "JetStream does not answer",
    "cannot be created",
)
"""What a process may say that ends by itself."""


@dataclass
class Member:
    """An edge or a server."""

    name: str
    """Of the process; two edges may have one identity."""
    identity: str
    door: Door
    """Of its HTTP API."""
    store: Path | None
    ways: str = ""
    """The addresses of the engine, as this one knows them."""
    planted: str | None = None
    child: Child | None = None
    wanted: bool = True
    """Whether it ought to run now."""
    lives: list[float] = field(default_factory=list)
    """When it was started."""

    @property
    def alive(self) -> bool:
        return self.child is not None and self.child.alive


class Fleet:
    """All processes of a run."""

    def __init__(self, schedule: Schedule, folder: Path, nursery: Nursery, *, number: int = 0) -> None:
        self.schedule = schedule
        self.folder = folder
        self.proxy = Proxy(random.Random(f"proxy {schedule.seed}"))
        self.members: dict[str, Member] = {}
        self.users: dict[str, Users] = {}
        """By the name of the process."""
        self.disks: dict[str, Disk] = {}
        self.deaths: list[str] = []
        """Who ended by itself and said something that was not to be expected."""
        self.task_ids: dict[str, str] = {}
        """By name."""
        self._open = {each.name: each for each in schedule.tasks}
        """Tasks that users come for, by name."""
        self.going = asyncio.Event()
        self.spaces: Spaces | None = None
        self._number = number
        self._nursery = nursery
        self._at_the_end = ExitStack()
        self._visiting: list[asyncio.Task[None]] = []
        self._routes: dict[tuple[str, str], int] = {}
        self.kits: Kits | None = None

    # ---- start and end

    async def start(self) -> None:
        schedule = self.schedule
        names = list(NODES[: schedule.nodes])
        if schedule.spaces:
            self.spaces = self._at_the_end.enter_context(Spaces(names, self._number))
        for fault in schedule.faults:
            if fault.kind.startswith("full-disk") and fault.target not in self.disks:
                size = "2m" if fault.kind == "full-disk-edge" else "16m"
                place = self.folder / f"disk-{fault.target}"
                place.mkdir()
                mount(place, size)
                self._at_the_end.callback(unmount, place)
                self.disks[fault.target] = Disk(place)
        await self._start_engines(names)
        for server in schedule.servers:
            await self.add(server)
        await self.all_ready(schedule.servers)
        for planned in schedule.tasks:
            await self._create(to_json(planned.task(schedule.edges)), schedule.servers[0])
        for edge in schedule.edges:
            await self.add(edge)
        await self.all_ready(schedule.edges)

    async def _start_engines(self, names: list[str]) -> None:
        """With each way between nodes led through the proxy, or in namespaces."""
        if self.spaces is None and len(names) > 1:
            routes = [(near, far) for near in names for far in names if near != far]
            self._routes = dict(zip(routes, free_ports(len(routes)), strict=True))
        if self.schedule.secured:
            self.kits = Kits(self.folder, len(names), self.schedule.edges)
            self.cluster = self.kits.cluster()
            self.kits.lead(self.cluster, self._routes)
        else:
            self.cluster = self._plain_cluster(names)
        await self._open_routes()
        await asyncio.to_thread(self._at_the_end.enter_context, self.cluster)

    def _plain_cluster(self, names: list[str]) -> Cluster:
        return Cluster(
            self.folder / "engines",
            len(names),
            hosts=[] if self.spaces is None else [self.spaces.hosts[each] for each in names],
            prefixes=[] if self.spaces is None else [self.spaces.prefix(each) for each in names],
            routes=lambda near, far, address: (
                f"127.0.0.1:{self._routes[near, far]}" if (near, far) in self._routes else address
            ),
            stores=lambda name: self.disks[name].folder / "store" if name in self.disks else None,
        )

    async def _open_routes(self) -> None:
        for (near, far), port in self._routes.items():
            there = self.cluster.nodes[far]
            to = (there.host, there.route_port)
            await self.proxy.open(near, far, to=to, speaks_nats=False, at=("127.0.0.1", port))

    async def add(self, name: str, *, identity: str | None = None, store: Path | None = None) -> Member:
        """A new edge or server."""
        is_edge = name not in self.schedule.servers
        if is_edge and store is None:
            place = self.disks[name].folder if name in self.disks else self.folder
            store = place / f"{name}.db"
        if self.spaces is not None:
            await asyncio.to_thread(self.spaces.add, name)
        member = Member(
            name, identity or name, self._door(name, is_edge), store, planted=self.schedule.planted.get(name)
        )
        near = "127.0.0.1" if self.spaces is None else self.spaces.gateway
        host = "localhost" if self.schedule.secured else near
        urls = []
        for node in self.cluster.nodes.values():
            way = await self.proxy.open(
                name, node.name, to=(node.host, node.port), speaks_nats=not self.schedule.secured, at=(near, 0)
            )
            urls.append(f"nats://{host}:{way}")
        random.Random(f"{self.schedule.seed} {name}").shuffle(urls)
        member.ways = ",".join(urls)
        self.members[name] = member
        self.begin(name)
        if is_edge:
            weights = {each.name: VOTES_NEED for each in self.schedule.tasks if each.protocol != "tally"}
            self.users[name] = Users(
                member.door,
                self._open,
                f"users {self.schedule.seed} {name}",
                weights=weights,
                life=lambda: len(member.lives),
            )
            if self.going.is_set():
                self._visiting.append(asyncio.create_task(self.users[name].come(self.going)))
        return member

    def _door(self, name: str, is_edge: bool) -> Door:
        """Edges are asked on their own machine; servers of a secured fleet over HTTPS, with the operator's token."""
        [port] = free_ports(1)
        if self.spaces is not None:
            return Door(port, self.spaces.hosts[name])
        return Door(port) if is_edge or self.kits is None else self.kits.door(port)

    def let_users_come(self) -> None:
        self.going.set()
        self._visiting += [asyncio.create_task(each.come(self.going)) for each in self.users.values()]

    async def let_users_go(self) -> None:
        self.going.clear()
        await asyncio.gather(*self._visiting)
        self._visiting.clear()

    async def end(self) -> None:
        self.going.clear()
        for task in self._visiting:
            task.cancel()
        await asyncio.gather(*self._visiting, return_exceptions=True)
        for member in self.members.values():
            if member.child is not None:
                member.child.kill()
        await self.proxy.close()
        await asyncio.to_thread(self._at_the_end.close)

    # ---- members

    @property
    def edges(self) -> list[Member]:
        return [each for each in self.members.values() if each.store is not None]

    @property
    def servers(self) -> list[Member]:
        return [each for each in self.members.values() if each.store is None]

    def begin(self, name: str) -> None:
        """Start a process that does not run; does not wait for it."""
        member = self.members[name]
        member.wanted = True
        if member.alive:
            return
        self.look_at_the_dead(member)
        kind = ["server"] if member.store is None else ["edge", member.identity, "--store", str(member.store)]
        options = ["--nats", member.ways, "--port", str(member.door.port), "--log", "json", "--json"]
        if self.kits is not None:
            options += self.kits.options(None if member.store is None else member.identity)
        if self.spaces is not None:  # between them are its own bridge and nobody else
            options += ["--host", member.door.host, "--insecure"]
        member.lives.append(time.monotonic())
        member.child = self._nursery.bear(
            [*kind, *options],
            self.folder,
            f"{name}-{len(member.lives)}",
            planted=member.planted,
            space=None if self.spaces is None else self.spaces.path(name),
        )

    def kill(self, name: str) -> None:
        member = self.members[name]
        self.look_at_the_dead(member)
        member.wanted = False
        if member.child is not None:
            member.child.kill()
            member.child = None

    def look_at_the_dead(self, member: Member) -> None:
        """Note a process that ended and was not killed by us, if what it said was not to be expected."""
        if member.child is None or member.child.alive:
            return
        said = member.child.err.read_text(errors="replace") if member.child.err.exists() else ""
        member.child = None
        errors = [line for line in said.splitlines() if '"level": "error"' in line or not line.startswith("{")]
        if not any(each in said for each in EXPECTED_ENDS):
            self.deaths.append(f"{member.name} ended by itself: {' / '.join(errors[-6:]) or 'without a word'}")

    async def outcome(self, name: str) -> bool:
        """Wait until a process is ready (True), or has ended (False)."""
        child = self.members[name].child
        assert child is not None
        await comes(lambda: child.ready() is not None or not child.alive, f"{name} is ready", within=ANSWERS)
        return child.alive

    async def all_ready(self, names: tuple[str, ...]) -> None:
        for name in names:
            assert await self.outcome(name), f"{name} did not start"

    async def revive(self) -> None:
        """Whoever ought to run does, until all are ready."""
        for member in self.members.values():
            if member.wanted and not member.alive:
                self.begin(member.name)

    # ---- what they say

    async def _create(self, body: dict[str, Any], server: str) -> None:
        status, answer = await self._post(server, body)
        assert status == 201, f"a task was refused: {status} {answer}"
        self.task_ids[answer["name"]] = answer["id"]

    async def _post(self, server: str, body: dict[str, Any]) -> tuple[int, Any]:
        return await ask(self.members[server].door, "POST", "/v1/tasks", body, patience=12.0)

    # ---- what operators do

    def open_task(self, name: str, task_id: str) -> None:
        """It was created: users come for it."""
        planned: Planned = self.schedule.planned(name)
        self.task_ids[name] = task_id
        self._open[name] = planned
        for users in self.users.values():
            users.add_task(planned)

    def close_task(self, name: str) -> None:
        """It was deleted: users come for it no more."""
        self._open.pop(name, None)
        for users in self.users.values():
            users.finished.add(name)

    async def command(self, name: str, arguments: Sequence[str], *, server: str) -> str | None:
        """What `outvote fleet` says at its end, where it asks this server; nothing if it failed."""
        assert self.kits is not None
        self.kits.turn_to(self.members[server].door)
        folder = str(self.kits.folder)
        child = self._nursery.bear(["fleet", "--folder", folder, *arguments, "--json"], self.folder, name)
        try:
            await comes(lambda: not child.alive, f"{name} has ended", within=60.0)
        finally:
            child.kill()
        return child.out.read_text() or None

    def access(self) -> Access | None:
        """The auditor's, who may read the log."""
        return None if self.kits is None else self.kits.access()

    @property
    def direct(self) -> str:
        """The engine, past the proxy."""
        host = "localhost" if self.kits is not None else None
        return ",".join(f"nats://{host or each.host}:{each.port}" for each in self.cluster.nodes.values())


def copy_store(source: Path, target: Path) -> None:
    """A store with what belongs to it, but for its lock."""
    for suffix in ("", "-wal", "-shm"):
        there = source.with_name(source.name + suffix)
        if there.exists():
            shutil.copyfile(there, target.with_name(target.name + suffix))


def remove_store(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
