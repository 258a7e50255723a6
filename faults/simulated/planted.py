"""Bugs put in on purpose: each must be found by some of the schedules, or the simulation proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from unittest import mock

from faults.simulated.disk import MemoryStore
from outvote.core.decisions import Count, Decisions, Group, Ticket
from outvote.edge.site import Edge
from outvote.edge.store import Save
from outvote.log.log_state import TaskState
from outvote.log.memory import MemoryLog
from outvote.log.records import UpSubject, parse

append, receive, read_to = MemoryLog.append, TaskState.receive, MemoryLog._read_to
save = MemoryStore.save
await_close, count, reward, restore = Decisions._await, Decisions._count, Decisions.reward, Decisions.restore


def acknowledge_before_commit(self: MemoryStore, saves: Iterable[Save]) -> None:
    """A store says that messages are saved before its disk has them for good."""
    disk = self._writable()
    with mock.patch.object(disk, "sync"):
        save(self, saves)


async def publish_twice(self: MemoryLog, subject: str, payload: bytes) -> bool:
    """An edge sends each message again under another incarnation."""
    where = parse(subject)
    if isinstance(where, UpSubject):
        await append(self, str(where._replace(incarnation="0" * 16)), payload)
    return await append(self, subject, payload)


def count_twice(self: TaskState, subject: UpSubject, payload: bytes, at: int) -> bool:
    """A server that restarted counts the messages of one edge twice."""
    counted = receive(self, subject, payload, at)
    if subject.edge == "e1":
        receive(self, subject._replace(incarnation="again"), payload, at)
    return counted


def forget_a_deletion(self: MemoryStore, task_id: str) -> None:
    """An edge keeps in its store what is left of a deleted task."""


def apply_out_of_order(self: MemoryLog, end: int) -> None:
    """A server reads two records in the wrong order."""
    records = self._engine.records
    if self.connected and self._on_record is not None and end - self.read >= 2:
        self.read += 2
        self._on_record(records[self.read - 1])
        self._on_record(records[self.read - 2])
    read_to(self, end)


def count_repeats(self: Decisions, counted: Count, ticket: Ticket, value: float) -> None:
    """A reward that is sent again counts again."""
    counted.largest[ticket.place] = -1.0
    count(self, counted, ticket, value)


def keep_its_name(self: Decisions, record: Mapping[str, Any], *, out: Iterable[int]) -> None:
    """An edge gives decisions after a crash the tickets of those that were lost."""
    restore(self, record, out=out)
    self._run = next((group.run for group in self.groups), "")


def take_for_another(self: Decisions, ticket: Ticket, value: float, now: int) -> None:
    """A reward of before a crash is taken for the decision that has its place now."""
    group = self._groups.get(ticket.group)
    reward(self, ticket if group is None else ticket._replace(run=group.run), value, now)


def close_early(self: Decisions, group: Group, now: int) -> None:
    """A group closes half a window after its last decision."""
    await_close(self, group, now - self.window // 2)


def go_by_the_wall(self: Edge) -> int:
    """An edge times its decisions by a clock that jumps."""
    return int(self._wall_clock() * 1000)


BUGS: Final[dict[str, tuple[Any, str, Callable[..., Any]]]] = {
    "acknowledge before commit": (MemoryStore, "save", acknowledge_before_commit),
    "publish twice": (MemoryLog, "append", publish_twice),
    "count twice": (TaskState, "receive", count_twice),
    "forget a deletion": (MemoryStore, "drop_task", forget_a_deletion),
    "apply out of order": (MemoryLog, "_read_to", apply_out_of_order),
    "count repeats": (Decisions, "_count", count_repeats),
    "keep its name": (Decisions, "restore", keep_its_name),
    "take for another": (Decisions, "reward", take_for_another),
    "close early": (Decisions, "_await", close_early),
    "go by the wall": (Edge, "now", go_by_the_wall),
}


@contextmanager
def planted(bug: str) -> Iterator[None]:
    where, name, wrong = BUGS[bug]
    with mock.patch.object(where, name, wrong):
        yield
