"""Does to a fleet what a schedule says, and puts it right again. Each kind of fault is one method, named after it."""

from __future__ import annotations

import asyncio
import random
import re
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from faults.fleet import Fleet, Member, copy_store, remove_store
from faults.proxy import DIRECTIONS, Direction, Trouble, Way
from faults.schedule import OF_NODES, Fault
from helpers.processes import comes


@dataclass(frozen=True)
class Injected:
    """A fault as it really was."""

    kind: str
    target: str
    began: float
    """By the monotonic clock, as all times here."""
    ended: float
    leader: bool = False
    """Whether it met the node that led."""


class Injection:
    """All faults of a run."""

    def __init__(self, fleet: Fleet) -> None:
        self.done: list[Injected] = []
        self.refusals = 0
        """Stores that were damaged and refused."""
        self.servers_back: list[float] = []
        """Seconds from the start of servers that were killed until they were ready."""
        self._fleet = fleet
        self._rng = random.Random(f"injection {fleet.schedule.seed}")

    async def run(self, faults: Iterable[Fault]) -> None:
        """Returns when the last is put right."""
        await asyncio.gather(*(self._one(each, self._rng.random()) for each in faults))

    async def _one(self, fault: Fault, chance: float) -> None:
        await asyncio.sleep(fault.at)
        began = time.monotonic()
        leader = None
        if self._fleet.schedule.nodes == 3 and fault.kind in OF_NODES:
            leader = await asyncio.to_thread(self._leader)
            began = time.monotonic()
        target = (leader or "n1") if fault.kind == "kill-leader" else fault.target
        do = getattr(self, "_" + fault.kind.replace("-", "_"))
        await do(Fault(fault.at, fault.kind, target, fault.lasts, fault.amount))
        self.done.append(Injected(fault.kind, target, began, time.monotonic(), leader == target))

    def _leader(self) -> str | None:
        names = self._fleet.cluster.leader()
        for node in self._fleet.cluster.nodes.values():
            if names is not None and names in (node.name, f"fleet-engine-{node.name[1:]}"):
                return node.name
        return None

    def _named(self, pattern: str) -> list[Member]:
        return [each for name, each in self._fleet.members.items() if fnmatch(name, pattern)]

    # ---- kills and pauses

    async def _kill_edge(self, fault: Fault) -> None:
        for member in self._named(fault.target):
            self._fleet.kill(member.name)
        await asyncio.sleep(fault.lasts)
        for member in self._named(fault.target):
            self._fleet.begin(member.name)

    async def _kill_server(self, fault: Fault) -> None:
        await self._kill_edge(fault)
        began = time.monotonic()
        for member in self._named(fault.target):
            if not await self._fleet.outcome(member.name):
                return
        self.servers_back.append(time.monotonic() - began)

    async def _kill_node(self, fault: Fault) -> None:
        node = self._fleet.cluster.nodes[fault.target]
        await asyncio.to_thread(node.kill)
        await asyncio.sleep(fault.lasts)
        if not node.alive:
            node.start()

    _kill_leader = _kill_node

    async def _kill_together(self, fault: Fault) -> None:
        edge, server, node = fault.target.split("|")
        await asyncio.gather(
            self._kill_edge(_of(fault, edge)), self._kill_server(_of(fault, server)), self._kill_node(_of(fault, node))
        )

    async def _pause_edge(self, fault: Fault) -> None:
        children = [member.child for member in self._named(fault.target) if member.child is not None]
        for child in children:
            child.signal(signal.SIGSTOP)
        await asyncio.sleep(fault.lasts)
        for child in children:
            child.signal(signal.SIGCONT)

    _pause_server = _pause_edge

    async def _pause_node(self, fault: Fault) -> None:
        node = self._fleet.cluster.nodes[fault.target]
        node.signal(signal.SIGSTOP)
        await asyncio.sleep(fault.lasts)
        node.signal(signal.SIGCONT)

    async def _wipe_node(self, fault: Fault) -> None:
        """Until it has copied the log: only then may another node be troubled."""
        node = self._fleet.cluster.nodes[fault.target]
        await asyncio.to_thread(node.kill)
        node.wipe()
        await asyncio.sleep(fault.lasts)
        if self._fleet.kits is not None:
            self._fleet.kits.hand_out(node.name)
        node.start()

    # ---- the network

    def _ways(self, pattern: str) -> list[Way]:
        one, _, other = pattern.partition("|")
        ways = self._fleet.proxy.ways.items()
        return [
            way
            for (near, far), way in ways
            if fnmatch(near, one) and fnmatch(far, other) and near not in self._fleet.cluster.nodes
        ]

    async def _cut(self, ways: list[Way], fault: Fault, *directions: Direction) -> None:
        """By packet filters at the near end where there are namespaces, and else by the proxy."""
        spaces = self._fleet.spaces
        for way in ways:
            if spaces is None:
                way.cut(*directions)
            else:
                await asyncio.to_thread(spaces.part, way.near, way.begins, directions)
        await asyncio.sleep(fault.lasts)
        for way in ways:
            if spaces is None:
                way.heal(reset=fault.amount < 0.5)
                continue
            await asyncio.to_thread(spaces.join, way.near, way.begins, directions)
            if fault.amount < 0.5:
                way.reset()

    async def _cut_edge(self, fault: Fault) -> None:
        await self._cut(self._ways(fault.target), fault, *DIRECTIONS)

    _cut_server = _cut_edge

    async def _one_way_up(self, fault: Fault) -> None:
        await self._cut(self._ways(fault.target), fault, "up")

    async def _one_way_down(self, fault: Fault) -> None:
        await self._cut(self._ways(fault.target), fault, "down")

    async def _cut_node(self, fault: Fault) -> None:
        """From the other nodes, not from its clients."""
        spaces = self._fleet.spaces
        if spaces is None:
            await self._cut(self._fleet.proxy.between(fault.target, "n*"), fault, *DIRECTIONS)
            return
        others = [name for name in self._fleet.cluster.nodes if name != fault.target]
        await asyncio.to_thread(spaces.deafen, fault.target, *others)
        for other in others:
            await asyncio.to_thread(spaces.deafen, other, fault.target)
        await asyncio.sleep(fault.lasts)
        for name in self._fleet.cluster.nodes:
            await asyncio.to_thread(spaces.heal, name)

    async def _vanish_node(self, fault: Fault) -> None:
        """As if its machine had lost its power: from all others, and nobody is told."""
        ways = self._ways(f"*|{fault.target}")
        for way in ways:
            way.cut(*DIRECTIONS)
        await self._cut_node(fault)
        for way in ways:
            way.heal(reset=True)

    async def _one_way_node(self, fault: Fault) -> None:
        """It speaks, and hears no other node."""
        spaces = self._fleet.spaces
        if spaces is not None:
            others = [name for name in self._fleet.cluster.nodes if name != fault.target]
            await asyncio.to_thread(spaces.deafen, fault.target, *others)
            await asyncio.sleep(fault.lasts)
            await asyncio.to_thread(spaces.heal, fault.target)
            return
        ways = self._fleet.proxy.between(fault.target, "n*")
        for way in ways:
            way.cut("down" if way.near == fault.target else "up")
        await asyncio.sleep(fault.lasts)
        for way in ways:
            way.heal(reset=fault.amount < 0.5)

    async def _trouble(self, fault: Fault, trouble: Trouble) -> None:
        ways = self._ways(fault.target)
        for way in ways:
            for direction in DIRECTIONS:
                cut = way.troubles[direction].cut
                way.troubles[direction] = Trouble(**{**vars(trouble), "cut": cut})
        await asyncio.sleep(fault.lasts)
        for way in ways:
            way.heal()

    async def _delay(self, fault: Fault) -> None:
        await self._trouble(fault, Trouble(delay=0.2 * fault.amount, jitter=0.2 * fault.amount))

    async def _drop(self, fault: Fault) -> None:
        await self._trouble(fault, Trouble(drop=0.1 + 0.4 * fault.amount))

    async def _repeat(self, fault: Fault) -> None:
        await self._trouble(fault, Trouble(repeat=0.2 + 0.8 * fault.amount))

    async def _exchange(self, fault: Fault) -> None:
        await self._trouble(fault, Trouble(exchange=0.2 + 0.6 * fault.amount))

    # ---- disks and stores

    async def _full_disk_edge(self, fault: Fault) -> None:
        """It ends when it next saves; freed, it is started again."""
        disk = self._fleet.disks[fault.target]
        disk.fill()
        await asyncio.sleep(fault.lasts)
        disk.free()
        self._fleet.begin(fault.target)

    async def _full_disk_node(self, fault: Fault) -> None:
        """Freed, it must be started again: it writes no more before."""
        disk = self._fleet.disks[fault.target]
        disk.fill()
        await asyncio.sleep(fault.lasts + 0.5)
        disk.free()
        await asyncio.to_thread(self._fleet.cluster.nodes[fault.target].kill)
        self._fleet.cluster.nodes[fault.target].start()

    async def _wipe_edge(self, fault: Fault) -> None:
        self._fleet.kill(fault.target)
        await asyncio.sleep(fault.lasts)
        remove_store(self._store(fault.target))
        self._fleet.begin(fault.target)

    async def _corrupt_store(self, fault: Fault) -> None:
        """Some bytes of the file or of its write-ahead log are others."""
        rng = random.Random(f"{self._fleet.schedule.seed} {fault.at} corrupt")

        def damage(path: Path) -> None:
            data = bytearray(path.read_bytes())
            digits = [found.start() for found in re.finditer(rb"(?<=[ \[:])[0-9](?=[,\]}])", bytes(data))]
            if digits and fault.amount < 0.5:  # a number of a state is another one: all else fits together
                data[rng.choice(digits)] ^= 1
                _overwrite(path, bytes(data))
                return
            for _ in range(1 + int(8 * fault.amount)):
                place = rng.randrange(len(data))
                data[place] ^= 1 << rng.randrange(8)
            _overwrite(path, bytes(data))

        await self._damage(fault, damage, rng)

    async def _truncate_store(self, fault: Fault) -> None:
        def damage(path: Path) -> None:
            _overwrite(path, path.read_bytes()[: int(path.stat().st_size * fault.amount)])

        await self._damage(fault, damage, random.Random(f"{self._fleet.schedule.seed} {fault.at} truncate"))

    async def _damage(self, fault: Fault, damage: Callable[[Path], None], rng: random.Random) -> None:
        if rng.random() < 0.7:  # ended in order all is in one file; else most is in the write-ahead log, which has sums
            await self._end(fault.target)
        self._fleet.kill(fault.target)
        path = self._store(fault.target)
        there = [each for each in (path, path.with_name(path.name + "-wal")) if each.exists() and each.stat().st_size]
        if there:
            damage(rng.choice(there))
        await asyncio.sleep(fault.lasts)
        await self._start_or_start_afresh(fault.target)

    async def _end(self, name: str) -> None:
        """In order."""
        member = self._fleet.members[name]
        child, member.child = member.child, None
        if child is not None:
            child.signal(signal.SIGTERM)
            await comes(lambda: not child.alive, f"{name} has ended")

    async def _start_or_start_afresh(self, name: str) -> None:
        """A store that is refused is moved away, as its edge says."""
        self._fleet.begin(name)
        if not await self._fleet.outcome(name):
            self.refusals += 1
            self._fleet.members[name].child = None  # it had to end
            remove_store(self._store(name))
            self._fleet.begin(name)

    async def _copied_store(self, fault: Fault) -> None:
        """Two edges of one name go on from it: on the original, and on the copy."""
        self._fleet.kill(fault.target)
        path = self._store(fault.target)
        copy = path.with_name(f"{fault.target}-copy.db")
        copy_store(path, copy)
        self._fleet.begin(fault.target)
        await self._fleet.add(f"{fault.target}-copy", identity=fault.target, store=copy)

    async def _set_back_store(self, fault: Fault) -> None:
        """To what it was some time ago, in place."""
        path = self._store(fault.target)
        backup = path.with_name(f"{fault.target}-backup.db")
        self._fleet.kill(fault.target)
        copy_store(path, backup)
        self._fleet.begin(fault.target)
        await asyncio.sleep(0.5 + fault.lasts)
        self._fleet.kill(fault.target)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        copy_store(backup, path)
        remove_store(backup)
        await self._start_or_start_afresh(fault.target)

    async def _twin_edge(self, fault: Fault) -> None:
        """A second process of one name, with a store of its own."""
        await self._fleet.add(f"{fault.target}-twin", identity=fault.target)

    def _store(self, name: str) -> Path:
        store = self._fleet.members[name].store
        assert store is not None
        return store


def _of(fault: Fault, target: str) -> Fault:
    return Fault(fault.at, fault.kind, target, fault.lasts, fault.amount)


def _overwrite(path: Path, data: bytes) -> None:
    """In place: the file stays the same one."""
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()
