"""What operators are shown: a task as the log tells it, in the very types from which the API's document is made.

Pure: everything is computed from the fold. A field that is not here is not answered.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from outvote.core.codes import Codebook
from outvote.core.ledger import bits_bound
from outvote.core.tally.server import TallyServer
from outvote.core.task import Task
from outvote.core.votes.server import VoteServer
from outvote.log.expectation import Expectation
from outvote.log.history import Discount
from outvote.log.log_state import TaskState

Status: TypeAlias = Literal["running", "held", "finished", "stopped"]


# ---- what is answered


class Discounted(msgspec.Struct, frozen=True):
    """What an edge had sent counts no more in these tasks: those that run, and in which it had sent something since it
    was last discounted."""

    edge: str
    tasks: tuple[str, ...]


class Messages(msgspec.Struct, frozen=True):
    """How many there were; one downward for each player."""

    up: int
    down: int


class Bits(msgspec.Struct, frozen=True):
    """Payload bits. `bound` is that of Lemma 2 or Theorem 4, `most` what the codes can cost at most; the bits of Tally
    have neither before it ends. `instance` is the part that says the instance of a vote."""

    up: int
    down: int
    total: int
    bound: int | None
    most: int | None
    instance: int


class TaskSummary(msgspec.Struct, frozen=True):
    """A task in short. `created` is in seconds since 1970, `refused` counts records of edges that are no message of
    the task."""

    id: str
    name: str
    protocol: str
    created: float
    status: Status
    winner: str | None
    remaining: tuple[str, ...]
    stopped: bool
    killed: bool
    held: bool
    hold_reason: str | None
    messages: Messages
    bits: Bits
    refused: int
    edge_count: int


class UnreadableTask(msgspec.Struct, frozen=True):
    """A task of the log that this version of the server cannot read, and why. It is not judged; edges that can read it
    go on with it. It can be deleted by its id."""

    id: str
    why: str


class TaskList(msgspec.Struct, frozen=True):
    """All tasks of the log."""

    tasks: tuple[TaskSummary, ...]
    unreadable: tuple[UnreadableTask, ...]


class EliminationView(msgspec.Struct, frozen=True):
    """When an arm went out: the number of the elimination, its place in the log, how many messages of the task were
    there before it, and when it was stored, in seconds since 1970."""

    number: int
    record: int
    after_messages: int
    at: float


class ArmView(msgspec.Struct, frozen=True):
    """One arm. Tally has trials, successes, the likeliest mean and an interval that holds it, and how much of the
    evidence is in that would refute the arm, from 0 to 1; votes are counted by instance."""

    arm: str
    index: int
    state: Literal["remaining", "eliminated"]
    eliminated: EliminationView | None
    trials: int | UnsetType = UNSET
    successes: int | UnsetType = UNSET
    mean: float | UnsetType | None = UNSET
    interval: tuple[float, float] | UnsetType = UNSET
    evidence: float | UnsetType = UNSET
    votes: tuple[int, ...] | UnsetType = UNSET


class LiftView(msgspec.Struct, frozen=True):
    """By how much the leader is better than one other arm: the difference of their means, and the same relative to the
    rival's mean; None is without a bound, or not known. All intervals hold together, at all times."""

    rival: str
    difference: float
    difference_interval: tuple[float, float]
    relative: float | None
    relative_interval: tuple[float, float | None]


class EdgeView(msgspec.Struct, frozen=True):
    """What the log holds of one edge. `incarnations` are the lives of its store, the newest last; `last_sequence` is
    the highest number of the newest one's messages. `several_lives`: there is more than one. The store was lost, copied
    or set back, or two processes use one name."""

    edge: str
    incarnations: tuple[str, ...]
    last_sequence: int
    several_lives: bool


class TaskDescription(TaskSummary, frozen=True):
    """All about one task; `task` is its record, from which it can be created again. `stopped_at` is when it was
    stopped, `expectation` what operators said last that they expect of it. Of Tally, `leader` is the arm with the
    highest mean of those that remain, `lifts` says by how much it is better than each other one, and `disagreement` by
    how many standard deviations more than chance allows the sites' results differ, at the last glance. `discounted` are
    the edges whose messages count no more: they are still among `messages`, `bits` and `edges`, for they were sent."""

    stopped_at: float | None
    expectation: Expectation | None
    arms: tuple[ArmView, ...]
    leader: str | None
    disagreement: float | None
    lifts: tuple[LiftView, ...]
    votes_needed: tuple[float, ...]
    edges: tuple[EdgeView, ...]
    discounted: tuple[Discount, ...]
    task: Task


class Health(msgspec.Struct, frozen=True):
    """Whether the engine is connected, all that is in its log was read, and more can be stored there. Where tokens are
    needed, who has none is told the status only."""

    status: Literal["ok", "unavailable"]
    engine_connected: bool | msgspec.UnsetType = msgspec.UNSET
    log_read: bool | msgspec.UnsetType = msgspec.UNSET
    log_writable: bool | msgspec.UnsetType = msgspec.UNSET
    records: int | msgspec.UnsetType = msgspec.UNSET


# ---- from the fold


def status(found: TaskState) -> Status:
    """Where the task stands; one that has found its winner stays finished when it is stopped."""
    server = found.server
    if found.winner is not None:
        return "finished"
    if isinstance(server, VoteServer) and server.finished and found.proposal() is None:  # Remark 1: several may remain
        return "finished"
    if found.stopped:
        return "stopped"
    return "held" if isinstance(server, TallyServer) and server.held else "running"


def summary(found: TaskState) -> TaskSummary:
    """A task in short."""
    task, ledger, winner = found.task, found.ledger, found.winner
    return TaskSummary(
        id=found.task_id,
        name=task.name,
        protocol=task.protocol,
        created=found.history.created,
        status=status(found),
        winner=None if winner is None else task.arms[winner],
        remaining=tuple(task.arms[arm] for arm in found.announced),
        stopped=found.stopped,
        killed=found.killed,
        held=isinstance(found.server, TallyServer) and found.server.held,
        hold_reason=found.server.hold_reason if isinstance(found.server, TallyServer) else None,
        messages=Messages(ledger.up_messages, ledger.down_messages),
        bits=Bits(
            up=ledger.up_bits,
            down=ledger.down_bits,
            total=ledger.total_bits,
            bound=ledger.bound,
            most=None if ledger.bound is None else most_bits(task),
            instance=ledger.instance_bits,
        ),
        refused=found.refused,
        edge_count=len({edge for edge, _ in found.highest}),
    )


def description(found: TaskState) -> TaskDescription:
    """All about one task."""
    short = summary(found)
    leader = _leader(found)
    return TaskDescription(
        **{name: getattr(short, name) for name in short.__struct_fields__},
        stopped_at=found.history.stopped,
        expectation=found.expectation,
        arms=_arms(found),
        leader=None if leader is None else found.task.arms[leader],
        disagreement=found.server.disagreement if isinstance(found.server, TallyServer) else None,
        lifts=() if leader is None else _lifts(found, leader),
        votes_needed=tuple(active / 2 for active in found.task.instances),
        edges=_edges(found),
        discounted=tuple(found.discounted),
        task=found.task,
    )


def _arms(found: TaskState) -> tuple[ArmView, ...]:
    task, server = found.task, found.server
    eliminated = {
        arm: EliminationView(number, *moment)
        for number, (elimination, moment) in enumerate(zip(found.eliminations, found.history.eliminations, strict=True))
        for arm in elimination.arms
    }
    tally = server if isinstance(server, TallyServer) else None
    votes = server if isinstance(server, VoteServer) else None
    return tuple(
        ArmView(
            arm=name,
            index=index,
            state="eliminated" if index in eliminated else "remaining",
            eliminated=eliminated.get(index),
            trials=UNSET if tally is None else tally.trials(index),
            successes=UNSET if tally is None else tally.successes(index),
            mean=UNSET if tally is None else tally.mean(index),
            interval=UNSET if tally is None else tally.interval(index),
            evidence=UNSET if tally is None else tally.evidence_share(index),
            votes=UNSET if votes is None else tuple(votes.votes(index, each) for each in range(len(task.instances))),
        )
        for index, name in enumerate(task.arms)
    )


def _leader(found: TaskState) -> int | None:
    """Votes cannot tell; of equal ones the lowest index."""
    if not isinstance(found.server, TallyServer):
        return None
    means = {arm: found.server.mean(arm) for arm in found.announced}
    known = {arm: mean for arm, mean in means.items() if mean is not None}
    return max(known, key=lambda arm: (known[arm], -arm), default=None)


def _lifts(found: TaskState, leader: int) -> tuple[LiftView, ...]:
    """Over each arm of which something was reported."""
    assert isinstance(found.server, TallyServer)
    told = []
    for rival, name in enumerate(found.task.arms):
        if rival != leader and found.server.trials(rival):
            lift = found.server.lift(leader, rival)
            told.append(
                LiftView(name, lift.difference, lift.difference_interval, lift.relative, lift.relative_interval)
            )
    return tuple(told)


def _edges(found: TaskState) -> tuple[EdgeView, ...]:
    newest: dict[str, EdgeView] = {}
    for (edge, incarnation), last in found.highest.items():
        before = newest[edge].incarnations if edge in newest else ()
        newest[edge] = EdgeView(edge, (*before, incarnation), last, several_lives=edge in newest)
    return tuple(newest[edge] for edge in sorted(newest))


# ---- bits


def most_bits(task: Task) -> int:
    """What a task of votes can cost: the bound of Lemma 2 or Theorem 4, or more where its codes can.

    The theorem leaves out the bits that name the instance, and the longest of Huffman's words are longer than ⌈log₂K⌉.
    """
    book = Codebook(task)
    longest = max(len(word) for word in book.arm_words)
    votes = task.players * (len(task.arms) - 1)
    up = votes * len(task.instances) * (longest + book.instance_bits)
    return max(bits_bound(task), up + votes * longest)
