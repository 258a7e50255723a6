"""Whether anything was lost, counted twice or understood differently: the log is read and folded anew, and compared.

What is right is what the log says: a fresh fold of all its records. The server's answers, every edge's state and all
that an engine acknowledged to an edge are held against it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outvote.engine.nats_log import NatsLog
from outvote.log.log import Record
from outvote.log.log_state import LogState
from outvote.log.records import DOWN, LIVE, UP, UpSubject, parse


@dataclass
class Log:
    """All records, and what they come to."""

    state: LogState = field(default_factory=LogState)
    payloads: dict[str, bytes] = field(default_factory=dict)
    """Of edges, by subject."""
    repeated: int = 0
    """Records whose subject was there before."""
    eliminated: dict[str, float] = field(default_factory=dict)
    """When each elimination was stored, by its subject."""
    records: int = 0
    record_bytes: int = 0
    """Subjects and payloads."""
    up: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Messages by edge, incarnation and task."""

    def take(self, record: Record) -> None:
        subject, payload = record.subject, record.payload
        self.state.apply(record)
        self.records += 1
        self.record_bytes += len(subject) + len(payload)
        if subject.startswith(UP):
            self.repeated += subject in self.payloads
            self.payloads[subject] = payload
            where = parse(subject)
            assert isinstance(where, UpSubject)
            self.up[where.edge, where.incarnation, where.task_id] += 1
        elif ".elim." in subject:
            self.eliminated[subject] = record.stored


async def read_log(url: str) -> Log:
    """From its beginning, by a connection of our own."""
    log = Log()
    async with await NatsLog.connect(url, name="checker", patience=10) as link:
        follower = await link.follow(log.take)
        await follower.wait_current()
        end = await link.log_end()
        while follower.read < end:
            follower.end = end
            await follower.wait_current()
    return log


@dataclass
class Findings:
    """What was compared, and what was wrong."""

    acknowledged: int = 0
    """Messages that an engine acknowledged to an edge."""
    lost: int = 0
    """Of those: not in the log, or there with other content."""
    made: int = 0
    """Messages in the stores of edges, of tasks that are there."""
    missing: int = 0
    """Of those: not in the log."""
    messages: int = 0
    """In the log."""
    twice: int = 0
    """Messages that are there more than once, or that the server counted more than once."""
    edges: int = 0
    states: int = 0
    """Tasks at edges and at the server whose state was compared."""
    disagreements: int = 0
    examples: list[str] = field(default_factory=list)

    def wrong(self, what: str) -> None:
        if len(self.examples) < 20:
            self.examples.append(what)

    @property
    def clean(self) -> bool:
        return not (self.lost or self.missing or self.twice or self.disagreements)


def check_acknowledged(found: Findings, log: Log, files: Iterable[Path]) -> None:
    for path in files:
        for line in path.read_text(encoding="utf-8").splitlines():
            subject, _, content = line.partition(" ")
            found.acknowledged += 1
            there = log.payloads.get(subject)
            if there is None or there.hex() != content:
                found.lost += 1
                found.wrong(f"{subject} was acknowledged as {content}, the log has {there!r}")


def check_edges(found: Findings, log: Log, states: Mapping[str, Mapping[str, Any]]) -> None:
    """Every edge hosts the tasks that are for it, and knows of each what the log says."""
    found.edges += len(states)
    for edge, state in states.items():
        mine = {task_id: task for task_id, task in log.state.tasks.items() if not task.players or edge in task.players}
        hosted = state["tasks"]
        for task_id in {*mine, *hosted}:
            found.states += 1
            task = mine.get(task_id)
            here = hosted.get(task_id)
            said = None if task is None else [list(task.announced), task.stopped]
            if here is None or said != here[:2]:
                found.disagreements += 1
                found.wrong(f"{edge} says of {task_id} {here}, the log {said}")
                continue
            found.made += here[2]
            there = log.up[edge, state["incarnation"], task_id]
            if there < here[2]:
                found.missing += here[2] - there
                found.wrong(f"{edge} has made {here[2]} messages of {task_id}, the log has {there}")


def check_server(found: Findings, log: Log, tasks: Any, edges: Any) -> None:
    """Its answers to `GET /v1/tasks` and `GET /v1/sites`."""
    found.messages = len(log.payloads)
    found.twice += log.repeated
    said = {each["id"]: each for each in tasks["tasks"]}
    for task_id in {*said, *log.state.tasks}:
        found.states += 1
        here, task = said.get(task_id), log.state.tasks.get(task_id)
        if here is None or task is None:
            found.disagreements += 1
            found.wrong(f"of {task_id} the server says {here}, the log {task}")
            continue
        remaining = [task.task.arms[arm] for arm in task.announced]
        mine = [remaining, task.stopped, task.ledger.up_messages, task.refused]
        theirs = [list(here["remaining"]), here["stopped"], here["messages"]["up"], here["refused"]]
        if mine != theirs:
            found.disagreements += 1
            found.twice += max(0, theirs[2] - mine[2])
            found.wrong(f"of {task_id} the server says {theirs}, the log {mine}")
    for each in edges["sites"]:
        history = log.state.edges.get(each["site"])
        counted = 0 if history is None else history.messages
        if each["messages"] != counted:
            found.disagreements += 1
            found.twice += max(0, each["messages"] - counted)
            found.wrong(f"of {each['site']} the server counts {each['messages']} messages, the log {counted}")


def heard_by_all(log: Log, files: Iterable[Path]) -> list[dict[str, float]]:
    """Of each elimination: how many edges heard it live, and after how many seconds the last of them did."""
    told: dict[str, list[list[float]]] = {}
    for path in files:
        for subject, noted in json.loads(path.read_text(encoding="utf-8"))["heard"].items():
            told.setdefault(subject, []).append(noted)
    return [
        {
            "edges": sum(each[0] for each in told[live]),
            "first_ms": (min(each[1] for each in told[live]) - stored) * 1e3,
            "last_ms": (max(each[2] for each in told[live]) - stored) * 1e3,
        }
        for subject, stored in log.eliminated.items()
        if (live := LIVE + subject[len(DOWN) :]) in told
    ]
