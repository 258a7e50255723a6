"""One run of one schedule: start, let users and operators come, do harm, heal, wait until all agree, judge."""

from __future__ import annotations

import asyncio
import math
import shutil
import sqlite3
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults.checker import Evidence, judge, messages
from faults.cluster import is_well
from faults.fleet import Fleet, Member
from faults.in_force import Action
from faults.injection import Injected, Injection
from faults.nursery import Nursery
from faults.operators import Operators
from faults.proxy import Acknowledged
from faults.reading import Finding, fold
from faults.schedule import OF_NODES, ON_MESSAGES, RECOVERY, Schedule
from faults.told import Told
from faults.traffic import Lost, NotReached, ask, view
from helpers.audit import log_at, read_store

AFTER = 0.8
"""Seconds for which users come on after the last fault was put right."""
LONGEST = 4.0
"""The same if tasks are not decided."""
RECOVER = 60.0
"""Seconds in which all must agree again: an edge that missed news asks every 30."""
UNDER_WAY = 0.2
"""Seconds in which an acknowledgement may come that was under way when a node was lost."""


@dataclass
class Result:
    """What came of a run."""

    seed: int
    seconds: float
    findings: list[Finding] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=dict)
    decided: list[tuple[str, str, bool]] = field(default_factory=list)
    """Of each task that was decided: its protocol, δ as text, and whether the winner is wrong."""
    operations: dict[str, int] = field(default_factory=dict)
    """What operators did, by kind."""
    operations_acknowledged: int = 0
    operations_repeated: int = 0
    """Requests of operators that were made again, though the first may have been heard."""
    records: int = 0
    acknowledged: int = 0
    events: int = 0
    touched: int = 0
    """Messages that the proxy dropped, repeated or exchanged."""
    refused_stores: int = 0
    settled: float = 0.0
    """Seconds from the last repair until all agreed."""
    recoveries: list[tuple[str, float]] = field(default_factory=list)
    """What was lost, and seconds until it worked again."""

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {"findings": [list(each) for each in self.findings]}


async def run(
    schedule: Schedule, folder: Path, nursery: Nursery, *, number: int = 0, recover: float = RECOVER
) -> Result:
    """The folder is removed if nothing was found, and kept else."""
    began = time.monotonic()
    folder.mkdir(parents=True)
    fleet = Fleet(schedule, folder, nursery, number=number)
    result = Result(schedule.seed, 0.0)
    try:
        await fleet.start()
        injection, operators = Injection(fleet), Operators(fleet)
        fleet.let_users_come()
        operating = asyncio.create_task(operators.run(schedule.operations))
        try:
            await injection.run(schedule.faults)
            await _heal(fleet)
            await _until_done(fleet, operating)
        finally:
            operating.cancel()
        healed = time.monotonic()
        await _until_decided(fleet)
        await fleet.let_users_go()
        evidence, result.findings = await _until_agreed(fleet, operators.actions, recover)
        result.settled = time.monotonic() - healed
        _describe(result, fleet, injection, operators, evidence)
    except Exception as error:  # of the suite itself, or a deadline that passed: one run, not all
        result.findings = [*result.findings, Finding("not recovered", f"{error!r} {traceback.format_exc(limit=-2)}")]
    finally:
        await fleet.end()
    result.findings += [Finding("crashed", each) for each in fleet.deaths]
    result.seconds = time.monotonic() - began
    if not result.findings:
        await asyncio.to_thread(shutil.rmtree, folder)
    return result


async def _heal(fleet: Fleet) -> None:
    """All is put right: nodes first, then whoever ended because of them."""
    dropped = any(each.kind in ON_MESSAGES for each in fleet.schedule.faults)
    fleet.proxy.heal(reset=dropped)  # news that was dropped is asked for at a reconnection, or half a minute later
    for disk in fleet.disks.values():
        disk.free()
    for node in fleet.cluster.nodes.values():
        if not node.alive:
            node.start()
    await fleet.revive()


async def _until_done(fleet: Fleet, operating: asyncio.Task[None]) -> None:
    """Operators go on until they were answered, now that all is well."""
    while not operating.done():
        await fleet.revive()
        await asyncio.wait([operating], timeout=0.1)
    await operating


async def _until_decided(fleet: Fleet) -> None:
    """Users come for some time more, until all tasks that can be are decided or it has taken too long."""
    begun = time.monotonic()
    open_names = set(fleet.task_ids) - fleet.schedule.undecided
    while time.monotonic() < begun + LONGEST and (open_names or time.monotonic() < begun + AFTER):
        for name in list(open_names):
            for server in fleet.servers:
                _, said = await view(server.door, f"/v1/tasks/{name}")
                if said and said.get("winner"):
                    open_names.discard(name)
                    for users in fleet.users.values():
                        users.finished.add(name)
        await fleet.revive()
        await asyncio.sleep(0.1)


async def _until_agreed(fleet: Fleet, actions: list[Action], recover: float) -> tuple[Evidence, list[Finding]]:
    """Until nothing is found, or it has taken too long: then what was found last, and what was lost before that."""
    deadline = time.monotonic() + recover
    lost: list[Finding] = []
    lost_since = 0.0
    while True:
        try:
            evidence = await _collect(fleet, actions)
            found = judge(evidence)
        except _NotYet as error:
            evidence, found = Evidence(()), [Finding("not recovered", str(error))]
        if not found:
            return evidence, []
        if any(each.kind in ("lost", "counted twice", "unjustified", "wrong") for each in found):
            lost_since = lost_since if lost else time.monotonic()
            lost = found
            if time.monotonic() > lost_since + recover / 6:  # against what was still under way, this is enough
                return evidence, found
        if time.monotonic() > deadline:
            return evidence, found if found == lost else [*lost, *found]
        await fleet.revive()
        await asyncio.sleep(0.15)


class _NotYet(Exception):
    """Somebody does not answer."""


async def _collect(fleet: Fleet, actions: list[Action]) -> Evidence:
    """What is left behind now, while no users come. The log is read last, or it would lack what others tell of."""
    for node in fleet.cluster.nodes.values():
        if not await asyncio.to_thread(is_well, node):
            raise _NotYet(f"{node.name} is not well")
    revoked = {each.target for each in actions if each.kind == "discount"}
    deleted = [each.target for each in actions if each.kind == "delete-task" and each.acknowledged]
    edges: dict[str, dict[str, Any]] = {}
    served: dict[str, dict[str, str | None]] = {}
    for member in fleet.edges:
        _, said = await view(member.door, "/v1/tasks")
        if said is None:
            raise _NotYet(f"{member.name} does not answer")
        if member.identity in revoked:  # it serves its users, and hears nothing any more
            continue
        edges[member.name] = {each["id"]: each for each in said["tasks"]}
        waiting = {each["name"]: each["messages_waiting"] for each in said["tasks"]}
        if any(waiting.values()):
            raise _NotYet(f"{member.name} has messages to send: {waiting}")
        ended = [each["name"] for each in said["tasks"] if each["stopped"] or each["killed"]]
        served[member.name] = {name: await _served(member, name) for name in (*ended, *deleted)}
    servers: dict[str, dict[str, Any]] = {}
    for member in fleet.servers:
        status, said = await view(member.door, "/healthz")
        if status != 200:
            raise _NotYet(f"{member.name} is not well: {said}")
        _, listed = await view(member.door, "/v1/tasks")
        servers[member.name] = {}
        for each in (listed or {"tasks": []})["tasks"]:
            _, servers[member.name][each["id"]] = await view(member.door, f"/v1/tasks/{each['name']}")
    stores = [
        await asyncio.to_thread(read_store, member.identity, member.store)
        for member in fleet.edges
        if member.store is not None
    ]
    remembered = {name: await asyncio.to_thread(_remembered, fleet.members[name].store) for name in edges}
    acknowledged = list(fleet.proxy.acknowledged)
    log = await log_at(fleet.direct, fleet.access())
    told: dict[tuple[str, str], Told] = {}
    for name, users in fleet.users.items():
        member = fleet.members[name]
        for task, notes in users.notes.items():  # one that was deleted was forgotten, and its name may be another's
            restarted = len(member.lives) > 1 or any(
                (each.kind, each.target) == ("delete-task", task) for each in actions
            )
            told.setdefault((member.identity, task), Told()).add(notes.told(restarted=restarted))
    return Evidence(
        log=log,
        acknowledged=acknowledged,
        stores=stores,
        servers=servers,
        edges=edges,
        told=told,
        damaged=frozenset(fleet.schedule.damaged),
        actions=list(actions),
        served=served,
        remembered=remembered,
    )


async def _served(member: Member, task: str) -> str | None:
    """What an edge gives to a user of a task that has ended: it learns nothing from it. Nothing, if it knows none."""
    try:
        status, said = await ask(member.door, "POST", f"/v1/tasks/{task}/decide", patience=5.0)
    except (NotReached, Lost):
        raise _NotYet(f"{member.name} does not answer") from None
    return str(said["variant"]) if status == 200 else None


def _remembered(path: Path | None) -> set[str]:
    """All tasks of which a store has anything."""
    assert path is not None
    with closing(sqlite3.connect(path)) as store:
        return {
            task
            for table in ("tasks", "snapshots", "messages")
            for (task,) in store.execute(f"SELECT task_id FROM {table}")
        }


def _describe(result: Result, fleet: Fleet, injection: Injection, operators: Operators, evidence: Evidence) -> None:
    result.faults = dict(Counter(each.kind for each in injection.done))
    result.operations = dict(Counter(each.kind for each in operators.actions))
    result.operations_acknowledged = sum(each.acknowledged for each in operators.actions)
    result.operations_repeated = operators.repeated
    result.records = messages(evidence.log)
    result.acknowledged = len(fleet.proxy.acknowledged)
    result.events = sum(each.events for each in fleet.users.values())
    result.touched = sum(each.touched for each in fleet.proxy.ways.values())
    result.refused_stores = injection.refusals
    folded = fold(evidence.log).tasks
    for planned in (*fleet.schedule.tasks, *fleet.schedule.later):
        task = folded.get(fleet.task_ids.get(planned.name, ""))
        if task is not None and task.winner is not None:
            wrong = task.task.arms[task.winner] != planned.best
            result.decided.append((planned.protocol, str(planned.delta), wrong))
    if fleet.schedule.seed % RECOVERY == 0:
        result.recoveries += [("both servers, from their start", each) for each in injection.servers_back]
    offset = time.monotonic() - asyncio.get_running_loop().time()
    result.recoveries += list(_recoveries(fleet, injection.done, fleet.proxy.acknowledged, offset))


def _recoveries(
    fleet: Fleet, done: Iterable[Injected], acknowledged: list[Acknowledged], offset: float
) -> Iterable[tuple[str, float]]:
    """How long it took until messages were acknowledged again. Only of what was alone: else it is not its time."""
    alone = fleet.schedule.seed % RECOVERY == 0
    ups = [each for each in acknowledged if each.subject.startswith("outvote.up.")]

    def first(since: float, edge: str) -> float:
        """When this edge was next told that a message is stored."""
        return min((each.at for each in ups if each.at > since and f".{edge}." in each.subject), default=math.inf)

    for fault in done if alone else ():
        began, ended = fault.began - offset, fault.ended - offset
        if fault.kind in OF_NODES:
            what = "the leader of three nodes" if fault.leader else "another of three nodes"
            how = "no word" if fault.kind == "vanish-node" else "kill -9"
            times = [first(began + UNDER_WAY, edge) - began for edge in fleet.schedule.edges]
            yield f"{what}, {how}: first edge", min(times)
            yield f"{what}, {how}: last edge", max(times)
        elif fault.kind == "kill-edge":
            yield "an edge, from its start", first(ended, fault.target) - ended
