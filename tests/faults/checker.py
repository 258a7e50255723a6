"""Judges a run by what it left behind: the log, what was acknowledged, what servers and edges say, and the stores.

It trusts nobody: the log is folded by a fresh core, task by task, and everything else is compared with that. Each
finding begins with what it is: lost, counted twice, disagreement, unjustified, wrong, not recovered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from faults.next_rules import learnt
from faults.proxy import Acknowledged
from faults.traffic import Told
from network.audit import Kept, Record, faults, sent
from outvote.core import protocols
from outvote.core.errors import OutvoteError
from outvote.core.messages import Tally
from outvote.core.tally_server import TallyServer
from outvote.core.task import Task
from outvote.core.votes import VoteServer
from outvote.network.fold import Fold, FoldedTask
from outvote.network.records import Coder, DownSubject, UpSubject, parse, read_task

View = Mapping[str, Any]


class Finding(NamedTuple):
    """Something that must not be."""

    kind: str
    what: str


@dataclass(frozen=True)
class Evidence:
    """What a run left behind."""

    log: Sequence[Record]
    acknowledged: Sequence[Acknowledged] = ()
    stores: Sequence[Kept] = ()
    """Of edges that say that nothing waits."""
    servers: Mapping[str, Mapping[str, View]] = field(default_factory=dict)
    """By name: what each says of each task, by id."""
    edges: Mapping[str, Mapping[str, View]] = field(default_factory=dict)
    told: Mapping[tuple[str, str], Told] = field(default_factory=dict)
    """By edge and task: more than this no tally may speak of. Sites that are not here are not looked at."""
    damaged: frozenset[str] = frozenset()
    """Edges that lost a store: lives of theirs may have none."""
    newer: frozenset[str] = frozenset()
    """Processes of the next version of the rules: they know tasks that others do not."""


def judge(evidence: Evidence) -> list[Finding]:
    """All that is wrong; nothing, if all is well."""
    return [
        *_lost(evidence),
        *_against_stores(evidence),
        *_counted_twice(evidence),
        *_unjustified(evidence),
        *_disagreements(evidence),
    ]


# ---- lost


def _lost(evidence: Evidence) -> Iterator[Finding]:
    """What the engine has acknowledged is where it said that it is."""
    there = {record.number: record for record in evidence.log}
    for subject, payload, sequence, _ in evidence.acknowledged:
        record = there.get(sequence)
        if record is None:
            yield Finding("lost", f"{subject} was acknowledged as record {sequence}, and there is none")
        elif (record.subject, record.payload) != (subject, payload):
            yield Finding("lost", f"{subject} was acknowledged as record {sequence}, which is {record.subject}")


def _against_stores(evidence: Evidence) -> Iterator[Finding]:
    """Every message is in its store and in the log, once and with one content."""
    lives = {(each.edge, each.incarnation) for each in evidence.stores}
    with_store: list[Record] = []
    for record in evidence.log:
        where = _up(record)
        if where is None or (where.edge, where.incarnation) in lives:
            with_store.append(record)
        elif where.edge not in evidence.damaged:
            yield Finding("counted twice", f"{record.subject} is in the log, of a life that has no store")
    for told in faults(with_store, evidence.stores):
        yield Finding("lost" if "and not in the log" in told else "counted twice", told)


# ---- counted twice


def _counted_twice(evidence: Evidence) -> Iterator[Finding]:
    often = Counter(record.subject for record in evidence.log)
    for subject, count in often.items():
        if count > 1:
            yield Finding("counted twice", f"{subject} is {count} times in the log")
    said: dict[tuple[str, str], Told] = {}
    tasks = _tasks(evidence.log)
    for record in evidence.log:
        where = _up(record)
        if where is None or where.task_id not in tasks or tasks[where.task_id].protocol != "tally":
            continue
        task = tasks[where.task_id]
        try:
            tally = Coder(task).read_up(where, record.payload)
        except OutvoteError as error:
            yield Finding("wrong", f"{record.subject} is no message: {error}")
            continue
        assert isinstance(tally, Tally)
        counter = said.setdefault((where.edge, task.name), Counter())
        counter[task.arms[tally.arm], 1] += tally.successes
        counter[task.arms[tally.arm], 0] += tally.trials - tally.successes
    for (edge, name), counter in said.items():
        if (edge, name) not in evidence.told:
            continue
        for (arm, outcome), count in counter.items():
            told = evidence.told[edge, name][arm, outcome]
            if count > told:
                what = f"{edge} says of {arm} in {name} {count} times {outcome}, its users said it {told} times"
                yield Finding("counted twice", what)


# ---- unjustified


def _unjustified(evidence: Evidence) -> Iterator[Finding]:
    """A core server that reads the messages of a task must have come to each elimination before the log has it; and to
    none that the log does not have in the end."""
    tasks = _tasks(evidence.log)
    cores = {task_id: protocols.server(task) for task_id, task in tasks.items()}
    announced = {task_id: tuple(range(len(task.arms))) for task_id, task in tasks.items()}
    for record in evidence.log:
        where = _where(record)
        if where is None or where.task_id not in tasks:
            continue
        core, coder = cores[where.task_id], Coder(tasks[where.task_id])
        try:
            if isinstance(where, UpSubject):
                core.receive(where.edge, coder.read_up(where, record.payload), incarnation=where.incarnation)
            elif where.kind == "elim":
                out = coder.read_down(announced[where.task_id], record.payload).arms
                unfounded = [arm for arm in out if arm not in core.eliminated]
                if unfounded:
                    yield Finding("unjustified", f"{record.subject}: nothing before it speaks against {unfounded}")
                announced[where.task_id] = tuple(arm for arm in announced[where.task_id] if arm not in out)
        except OutvoteError as error:
            yield Finding("wrong", f"{record.subject}: {error}")
    for task_id, core in cores.items():
        pending = [arm for arm in core.eliminated if arm in announced[task_id]]
        if pending:
            yield Finding("not recovered", f"{task_id}: nobody has announced that {pending} are out")
        snapshot = core.snapshot()
        if snapshot.get("duplicates"):
            yield Finding("counted twice", f"{task_id}: the core met {snapshot['duplicates']} messages again")


# ---- disagreements


def _disagreements(evidence: Evidence) -> Iterator[Finding]:
    for newer in (False, True):
        folded = fold(evidence.log, newer=newer).tasks
        for name, views in evidence.servers.items():
            if (name in evidence.newer) == newer:
                yield from _server_disagrees(name, views, folded)
        for name, views in evidence.edges.items():
            if (name in evidence.newer) == newer:
                yield from _edge_disagrees(name, views, folded)


def fold(log: Iterable[Record], *, newer: bool = False) -> Fold:
    """The log as a server of one version or of the next has it."""
    found = Fold()
    with learnt() if newer else nullcontext():
        for number, subject, payload in log:
            found.apply(subject, payload, number)
    return found


def _server_disagrees(name: str, views: Mapping[str, View], folded: Mapping[str, FoldedTask]) -> Iterator[Finding]:
    if set(views) != set(folded):
        yield Finding("disagreement", f"{name} knows the tasks {sorted(views)}, the log has {sorted(folded)}")
    for task_id in set(views) & set(folded):
        said, known = _said_by_server(views[task_id]), _known(folded[task_id])
        for what, value in known.items():
            if said[what] != value:
                yield Finding("disagreement", f"{name} says that {what} of {task_id} is {said[what]}, it is {value}")


def _edge_disagrees(name: str, views: Mapping[str, View], folded: Mapping[str, FoldedTask]) -> Iterator[Finding]:
    if set(views) != set(folded):
        yield Finding("disagreement", f"{name} hosts the tasks {sorted(views)}, the log has {sorted(folded)}")
    for task_id in set(views) & set(folded):
        task, view = folded[task_id], views[task_id]
        remaining = [task.task.arms[arm] for arm in task.announced]
        if list(view["remaining"]) != remaining:
            what = f"{name} has {list(view['remaining'])} of {task_id}, of which {remaining} remain"
            yield Finding("disagreement", what)
        winner = None if task.winner is None else task.task.arms[task.winner]
        if view["winner"] != winner:
            yield Finding("disagreement", f"{name} says that {view['winner']} has won {task_id}, it is {winner}")
        if view["messages_waiting"]:
            yield Finding("not recovered", f"{name} has {view['messages_waiting']} messages of {task_id} to send")


def _said_by_server(view: View) -> dict[str, Any]:
    return {
        "what remains": list(view["remaining"]),
        "the winner": view["winner"],
        "the number of messages": view["messages"]["up"],
        "the number refused": view["refused"],
        "what is counted": [[arm.get(each) for each in ("trials", "successes", "votes")] for arm in view["arms"]],
        "the eliminations": sorted(
            {(arm["eliminated"]["number"], arm["arm"]) for arm in view["arms"] if arm["eliminated"]}
        ),
        "the lives": {(each["edge"], life["incarnation"]) for each in view["edges"] for life in each["incarnations"]},
    }


def _known(task: FoldedTask) -> dict[str, Any]:
    """What a server ought to say, told from a fold of the log."""
    arms, server = task.task.arms, task.server
    counted: list[list[Any]] = []
    for arm in range(len(arms)):
        if isinstance(server, TallyServer):
            counted.append([server.trials(arm), server.successes(arm), None])
        else:
            assert isinstance(server, VoteServer)
            counted.append([None, None, [server.votes(arm, each) for each in range(len(task.task.instances))]])
    return {
        "what remains": [arms[arm] for arm in task.announced],
        "the winner": None if task.winner is None else arms[task.winner],
        "the number of messages": task.ledger.up_messages,
        "the number refused": task.refused,
        "what is counted": counted,
        "the eliminations": sorted(
            (number, arms[arm]) for number, each in enumerate(task.eliminations) for arm in each.arms
        ),
        "the lives": set(task.highest),
    }


# ---- records


def _where(record: Record) -> UpSubject | DownSubject | None:
    try:
        return parse(record.subject)
    except OutvoteError:
        return None


def _up(record: Record) -> UpSubject | None:
    where = _where(record)
    return where if isinstance(where, UpSubject) else None


def _tasks(log: Iterable[Record]) -> dict[str, Task]:
    """All tasks of a log, of all rules."""
    found: dict[str, Task] = {}
    with learnt():
        for record in log:
            where = _where(record)
            if isinstance(where, DownSubject) and where.kind == "task":
                found[where.task_id] = read_task(record.payload)
    return found


def messages(log: Sequence[Record]) -> int:
    return len(sent(log))
