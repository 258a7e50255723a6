"""Judges a run by what it left behind: the log, what was acknowledged, what servers and edges say, and the stores.

It trusts nobody: the log is folded by a fresh core, task by task, and everything else is compared with that. Each
finding begins with what it is: lost, counted twice, disagreement, unjustified, wrong, not recovered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from faults.in_force import Action, counted_by_hand, lost_actions, served_otherwise
from faults.justified import unjustified
from faults.proxy import Acknowledged
from faults.reading import Finding, fold, tasks_of, up_of
from faults.told import Told
from helpers.audit import StoredMessages, faults, sent
from outvote.core.errors import OutvoteError
from outvote.core.messages import Tally
from outvote.core.tally.server import TallyServer
from outvote.core.votes.server import VoteServer
from outvote.log.log import Record
from outvote.log.log_state import LogState, TaskState
from outvote.log.records import Coder

View = Mapping[str, Any]


@dataclass(frozen=True)
class Evidence:
    """What a run left behind."""

    log: Sequence[Record]
    acknowledged: Sequence[Acknowledged] = ()
    stores: Sequence[StoredMessages] = ()
    """Of edges that say that nothing waits."""
    servers: Mapping[str, Mapping[str, View]] = field(default_factory=dict)
    """By name: what each says of each task, by id."""
    edges: Mapping[str, Mapping[str, View]] = field(default_factory=dict)
    """The same of edges; none that was revoked, since it hears nothing any more."""
    told: Mapping[tuple[str, str], Told] = field(default_factory=dict)
    """By edge and task: of this its tallies must speak. Sites that are not here are not looked at."""
    damaged: frozenset[str] = frozenset()
    """Edges that lost a store: lives of theirs may have none."""
    actions: Sequence[Action] = ()
    """What operators did."""
    served: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    """By edge: what it gives to users of tasks that were stopped, killed or deleted, by name; None is nothing."""
    remembered: Mapping[str, AbstractSet[str]] = field(default_factory=dict)
    """By edge: the tasks of which its store has anything."""

    @property
    def revoked(self) -> set[str]:
        """Edges that may be shut out."""
        return {each.target for each in self.actions if each.kind == "discount"}


def judge(evidence: Evidence) -> list[Finding]:
    """All that is wrong; nothing, if all is well."""
    return [
        *_lost(evidence),
        *_against_stores(evidence),
        *_counted_twice(evidence),
        *unjustified(evidence.log),
        *lost_actions(evidence.log, evidence.actions),
        *_disagreements(evidence),
    ]


# ---- lost


def _lost(evidence: Evidence) -> Iterator[Finding]:
    """What the engine has acknowledged is where it said that it is."""
    there = {record.sequence: record for record in evidence.log}
    for subject, payload, sequence, _ in evidence.acknowledged:
        record = there.get(sequence)
        if record is None:
            yield Finding("lost", f"{subject} was acknowledged as record {sequence}, and there is none")
        elif (record.subject, record.payload) != (subject, payload):
            yield Finding("lost", f"{subject} was acknowledged as record {sequence}, which is {record.subject}")


def _against_stores(evidence: Evidence) -> Iterator[Finding]:
    """Every message is in its store and in the log, once and with one content."""
    folded = fold(evidence.log)
    lives = {(each.edge, each.incarnation) for each in evidence.stores}
    with_store: list[Record] = []
    for record in evidence.log:
        where = up_of(record)
        if where is not None and where.task_id in folded.deleted:
            continue  # its store has forgotten it, and must have
        if where is None or (where.edge, where.incarnation) in lives:
            with_store.append(record)
        elif where.edge not in evidence.damaged:
            yield Finding("counted twice", f"{record.subject} is in the log, of a life that has no store")
    stores = [_to_be_sent(each, evidence, folded) for each in evidence.stores]
    for told in faults(with_store, stores):
        yield Finding("lost" if "and not in the log" in told else "counted twice", told)


def _to_be_sent(store: StoredMessages, evidence: Evidence, folded: LogState) -> StoredMessages:
    """A store without what need not be in the log: of a deleted task; not sent before a task was stopped, or the edge
    revoked."""
    there = {where for where, _ in sent(evidence.log)}
    stopped = {task_id for task_id, task in folded.tasks.items() if task.stopped}
    kept = {}
    for (task_id, sequence), payload in store.messages.items():
        is_there = (store.edge, store.incarnation, task_id, sequence) in there
        excused = task_id in stopped or store.edge in evidence.revoked
        if task_id not in folded.deleted and (is_there or not excused):
            kept[task_id, sequence] = payload
    return store._replace(messages=kept)


# ---- counted twice


def _counted_twice(evidence: Evidence) -> Iterator[Finding]:
    often = Counter(record.subject for record in evidence.log)
    for subject, count in often.items():
        if count > 1:
            yield Finding("counted twice", f"{subject} is {count} times in the log")
    yield from _said_otherwise(evidence)


def _said_otherwise(evidence: Evidence) -> Iterator[Finding]:
    """A tally speaks of other decisions or rewards than users know of."""
    said: dict[tuple[str, str, int], list[tuple[Tally, float]]] = {}
    tasks = tasks_of(evidence.log)
    coders = {task_id: Coder(task) for task_id, task in tasks.items()}
    for record in evidence.log:
        where = up_of(record)
        if where is None or where.task_id not in tasks or tasks[where.task_id].protocol != "tally":
            continue
        try:
            tally = coders[where.task_id].read_up(where, record.payload)
        except OutvoteError as error:
            yield Finding("wrong", f"{record.subject} is no message: {error}")
            continue
        assert isinstance(tally, Tally)
        said.setdefault((where.edge, tasks[where.task_id].name, tally.sequence), []).append((tally, record.stored))
    for (edge, name, number), tallies in said.items():
        told = evidence.told.get((edge, name))
        if told is not None and (verdict := told.verdict(number, tallies)):
            yield Finding(verdict, f"{edge} says {tallies} in {name}, its users know of {told.groups.get(number)}")
    for (edge, name), told in evidence.told.items():
        for ticket in told.refused:
            yield Finding("lost", f"{edge} has refused a reward for {ticket} in {name}")


# ---- disagreements


def _disagreements(evidence: Evidence) -> Iterator[Finding]:
    folded = fold(evidence.log)
    by_hand = counted_by_hand(evidence.log, folded.tasks)
    for name, views in evidence.servers.items():
        yield from _server_disagrees(name, views, folded.tasks)
        yield from _counts_otherwise(name, views, by_hand)
    for name, views in evidence.edges.items():
        yield from _edge_disagrees(name, views, folded.tasks)
        yield from served_otherwise(name, evidence.served.get(name, {}), folded)
    for name, remembered in evidence.remembered.items():
        forgotten = sorted(remembered & folded.deleted)
        if forgotten:
            yield Finding("disagreement", f"the store of {name} has something of {forgotten}, which were deleted")


def _counts_otherwise(
    name: str, views: Mapping[str, View], by_hand: Mapping[str, list[list[int]]]
) -> Iterator[Finding]:
    for task_id in set(views) & set(by_hand):
        said = [[arm["trials"], arm["successes"]] for arm in views[task_id]["variants"]]
        if said != by_hand[task_id]:
            yield Finding("disagreement", f"{name} counts {said} in {task_id}, by hand it is {by_hand[task_id]}")


def _server_disagrees(name: str, views: Mapping[str, View], folded: Mapping[str, TaskState]) -> Iterator[Finding]:
    if set(views) != set(folded):
        yield Finding("disagreement", f"{name} knows the tasks {sorted(views)}, the log has {sorted(folded)}")
    for task_id in set(views) & set(folded):
        said, known = _said_by_server(views[task_id]), _known(folded[task_id])
        for what, value in known.items():
            if said[what] != value:
                yield Finding("disagreement", f"{name} says that {what} of {task_id} is {said[what]}, it is {value}")


def _edge_disagrees(name: str, views: Mapping[str, View], folded: Mapping[str, TaskState]) -> Iterator[Finding]:
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
        for what, is_so in (("stopped", task.stopped), ("killed", task.killed)):
            if view[what] != is_so:
                yield Finding("disagreement", f"{name} says that {task_id} is {what}: {view[what]}, it is {is_so}")
        if view["messages_waiting"]:
            yield Finding("not recovered", f"{name} has {view['messages_waiting']} messages of {task_id} to send")


def _said_by_server(view: View) -> dict[str, Any]:
    return {
        "what remains": list(view["remaining"]),
        "the winner": view["winner"],
        "stopped": view["stopped"],
        "killed": view["killed"],
        "what was discounted": [(each["site"], each["messages"]) for each in view["discounted"]],
        "the number of messages": view["messages"]["up"],
        "the number refused": view["refused"],
        "what is counted": [[arm.get(each) for each in ("trials", "successes", "votes")] for arm in view["variants"]],
        "the eliminations": sorted(
            {(arm["eliminated"]["number"], arm["variant"]) for arm in view["variants"] if arm["eliminated"]}
        ),
        "the lives": {(each["site"], life) for each in view["sites"] for life in each["incarnations"]},
    }


def _known(task: TaskState) -> dict[str, Any]:
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
        "stopped": task.stopped,
        "killed": task.killed,
        "what was discounted": [(each.edge, each.messages) for each in task.discounted],
        "the number of messages": task.ledger.up_messages,
        "the number refused": task.refused,
        "what is counted": counted,
        "the eliminations": sorted(
            (number, arms[arm]) for number, each in enumerate(task.eliminations) for arm in each.arms
        ),
        "the lives": set(task.highest),
    }


def messages(log: Sequence[Record]) -> int:
    return len(sent(log))
