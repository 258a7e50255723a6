"""Whether what operators did is so at the end, in the log and with everybody.

What was acknowledged must be there, and have its effect. What was not may have happened or not: then the log says
which, and everybody must agree with it, which `checker` looks at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from faults.reading import Finding, fold, where_of
from outvote.core.messages import Tally
from outvote.log.log import Record
from outvote.log.log_state import LogState, TaskState
from outvote.log.records import DownSubject, UpSubject, read_discount, read_switch

SWITCHES = {"kill-task": True, "revive-task": False}


class Action(NamedTuple):
    """What an operator did. Those about one task are in their order."""

    kind: str
    target: str
    """The name of a task or of an edge."""
    task_id: str
    """Empty where there is none, or a creation was not acknowledged."""
    acknowledged: bool
    end: int | None = None
    """Of a discount: how far the log went when it was acknowledged, if that could be read."""


def lost_actions(log: Sequence[Record], actions: Sequence[Action]) -> Iterator[Finding]:
    """Acknowledged, and not in the log; or there, and without its effect."""
    folded = fold(log)
    subjects = {record.subject for record in log}
    ended = {each.task_id for each in actions if each.kind == "delete-task"}
    for action in actions:
        said = f"{action.kind} of {action.target} ({action.task_id or 'an edge'}) was acknowledged, and"
        if not action.acknowledged:
            continue
        if action.kind in ("stop-task", "delete-task"):
            where = DownSubject(action.task_id, action.kind.removesuffix("-task"))
            if str(where) not in subjects:
                yield Finding("lost", f"{said} is not in the log")
        elif action.kind == "create-task" and action.task_id not in ended:
            named = [each.task_id for each in folded.tasks.values() if each.task.name == action.target]
            if named != [action.task_id]:
                yield Finding("lost", f"{said} the tasks of that name are {named}")
        elif action.kind == "discount":
            yield from _lost_discount(log, action.target, action.end)
    yield from _lost_switches(log, folded, actions)


def _lost_switches(log: Sequence[Record], folded: LogState, actions: Sequence[Action]) -> Iterator[Finding]:
    """The last word counts, of those that were acknowledged or came after them."""
    for task_id in {each.task_id for each in actions if each.kind in SWITCHES}:
        used = [each for each in actions if each.task_id == task_id and each.kind in SWITCHES]
        stored = set()
        for record in log:
            where = where_of(record)
            if isinstance(where, DownSubject) and (where.task_id, where.kind) == (task_id, "kill"):
                stored.add(read_switch(record.payload))
        for each in used:
            if each.acknowledged and SWITCHES[each.kind] not in stored:
                yield Finding("lost", f"{each.kind} of {task_id} was acknowledged, and is not in the log")
        last = max((place for place, each in enumerate(used) if each.acknowledged), default=None)
        possible = {SWITCHES[each.kind] for each in used[last or 0 :]} | ({False} if last is None else set())
        if task_id in folded.tasks and folded.tasks[task_id].killed not in possible:
            yield Finding("lost", f"{task_id}: killed is {folded.tasks[task_id].killed}, {used} were the last words")


def _lost_discount(log: Sequence[Record], edge: str, end: int | None) -> Iterator[Finding]:
    """When it was acknowledged nothing of this edge counted in a task that still ran, and nothing of it came in
    afterwards, since the engine was told before. A task that was decided meanwhile is left as it is."""
    counted = Counted()
    for place, record in enumerate(log):
        where = where_of(record)
        if isinstance(where, UpSubject) and where.edge == edge and end is not None and record.sequence > end:
            yield Finding("wrong", f"{record.subject} came in, and the edge was revoked before")
        counted.read(record)
        if record.sequence == end or place == len(log) - 1:
            for task_id, count in counted.of(edge).items():
                yield Finding("lost", f"discount of {edge} was acknowledged, {count} of it count in {task_id}")


class Counted:
    """The messages that count, by hand: what is in the log, but for what was discounted while its task ran."""

    def __init__(self) -> None:
        self.messages: dict[str, list[tuple[UpSubject, bytes]]] = {}
        """By task."""
        self._fold = LogState()

    def read(self, record: Record) -> None:
        where = where_of(record)
        task = None if where is None else self._fold.tasks.get(where.task_id)
        if where is not None and task is not None:
            kept = self.messages.setdefault(where.task_id, [])
            if isinstance(where, UpSubject):
                kept.append((where, record.payload))
            elif where.kind == "discount" and task.running:
                edge = read_discount(record.payload)
                kept[:] = [each for each in kept if each[0].edge != edge]
            elif where.kind == "delete":
                del self.messages[where.task_id]
        self._fold.apply(record)

    def of(self, edge: str) -> Counter[str]:
        """How many of an edge count, by task that runs now."""
        found: Counter[str] = Counter()
        for task_id, kept in self.messages.items():
            if self._fold.tasks[task_id].running:
                found[task_id] += sum(where.edge == edge for where, _ in kept)
        return +found


def counted_by_hand(log: Sequence[Record], folded: Mapping[str, TaskState]) -> dict[str, list[list[int]]]:
    """Of each task of Tally: trials and successes of every arm."""
    counted = Counted()
    for record in log:
        counted.read(record)
    found: dict[str, list[list[int]]] = {}
    for task_id, task in folded.items():
        if task.task.protocol != "tally" or task_id not in counted.messages:
            continue
        sums = found[task_id] = [[0, 0] for _ in task.task.arms]
        for where, payload in counted.messages[task_id]:
            tally = task.coder.read_up(where, payload)
            assert isinstance(tally, Tally)
            sums[tally.arm][0] += tally.trials
            sums[tally.arm][1] += tally.successes
    return found


def served_otherwise(name: str, served: Mapping[str, str | None], folded: LogState) -> Iterator[Finding]:
    """What an edge gives to users of tasks that were stopped, killed or deleted, by their names; None is nothing."""
    for task_name, arm in served.items():
        task = folded.named(task_name)
        if task is not None and not (task.stopped or task.killed):
            continue  # it was deleted and created again, or revived meanwhile
        expected = None if task is None else _served(task)
        if arm != expected:
            yield Finding("disagreement", f"{name} serves {arm} in {task_name}, it ought to serve {expected}")


def _served(task: TaskState) -> str:
    """As documented: a winner outlives a stop, and not a kill."""
    arms, fallback = task.task.arms, task.task.fallback
    if fallback is None or (task.stopped and task.winner is not None):
        return arms[task.announced[0]]
    return fallback
