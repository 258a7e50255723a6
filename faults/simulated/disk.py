"""The disk of a simulated site: what it holds survives a crash, and a power cut as far as it was synced."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from outvote.edge.store import Save, StoreFailed


@dataclass
class Content:
    """What is written."""

    tasks: dict[str, str] = field(default_factory=dict)
    snapshots: dict[str, str] = field(default_factory=dict)
    messages: dict[str, dict[int, bytes]] = field(default_factory=dict)
    """By task and sequence."""
    clean: bool = True
    """The last process has saved everything before it ended."""

    def copy(self) -> Content:
        messages = {task: dict(messages) for task, messages in self.messages.items()}
        return Content(dict(self.tasks), dict(self.snapshots), messages, self.clean)


class Disk:
    """Holds one store."""

    def __init__(self, rng: random.Random) -> None:
        self.full = False
        self.wipe(rng)

    def wipe(self, rng: random.Random) -> None:
        """Lose everything: the next store is another one."""
        self.incarnation = f"{rng.getrandbits(64):016x}"
        self.written = Content()
        self._synced = Content()

    def sync(self) -> None:
        self._synced = self.written.copy()

    def cut_power(self) -> None:
        """Lose what was not synced."""
        self.written = self._synced.copy()


class MemoryStore:
    """A store as `EdgeStore` is one, on a simulated disk."""

    renewed = False

    def __init__(self, disk: Disk) -> None:
        self.incarnation = disk.incarnation
        self._disk: Disk | None = disk
        self.clean = disk.written.clean
        self._mark(clean=False)

    def detach(self) -> None:
        """The process is gone: nothing that still runs of it can write."""
        self._disk = None

    def close(self) -> None:
        self.detach()

    def tasks(self) -> dict[str, str]:
        return dict(sorted(self._read().tasks.items()))

    def put_task(self, task_id: str, record: str) -> None:
        self._writable().written.tasks[task_id] = record
        self._writable().sync()

    def drop_task(self, task_id: str) -> None:
        content = self._writable().written
        for table in (content.tasks, content.snapshots, content.messages):
            table.pop(task_id, None)
        self._writable().sync()

    def save(self, saves: Iterable[Save]) -> None:
        disk, durable = self._writable(), False
        for task_id, snapshot, messages in saves:
            kept = disk.written.messages.setdefault(task_id, {})
            for sequence, payload in messages:
                if kept.setdefault(sequence, payload) != payload:
                    raise ValueError(f"message {sequence} of {task_id} is stored with other content")
                durable = True
            disk.written.snapshots[task_id] = snapshot
        if durable:
            disk.sync()

    def snapshot(self, task_id: str) -> str | None:
        return self._read().snapshots.get(task_id)

    def messages(self, task_id: str) -> list[tuple[int, bytes]]:
        return sorted(self._read().messages.get(task_id, {}).items())

    def mark_clean(self) -> None:
        self._mark(clean=True)

    def _mark(self, *, clean: bool) -> None:
        self._writable().written.clean = clean
        self._writable().sync()

    def _read(self) -> Content:
        if self._disk is None:
            raise StoreFailed("the process of this store is gone")
        return self._disk.written

    def _writable(self) -> Disk:
        if self._disk is None or self._disk.full:
            raise StoreFailed("the disk is full")
        return self._disk
