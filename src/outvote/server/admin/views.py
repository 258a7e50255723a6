"""The API's answers about tasks, as types. The OpenAPI document is generated from them.

Pure: everything is computed from the log state. Answers have no other fields.
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


# ---- types of answers


class Discounted(msgspec.Struct, frozen=True):
    """The edge's messages so far no longer count in these tasks: the running ones to which it had sent messages since
    its last discount."""

    edge: str
    tasks: tuple[str, ...]


class Messages(msgspec.Struct, frozen=True):
    """Number of messages; a downward message counts once for each player."""

    up: int
    down: int


class Bits(msgspec.Struct, frozen=True):
    """Payload bits. `bound` is that of Lemma 2 or Theorem 4, `most` the maximum with the codes in use; Tally has
    neither. `instance` is the part that names the instance of a vote."""

    up: int
    down: int
    total: int
    bound: int | None
    most: int | None
    instance: int


class TaskSummary(msgspec.Struct, frozen=True):
    """Summary of a task. `created` is in seconds since 1970; `refused` counts records of edges that are no valid
    message of the task."""

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
    """A task that this version of the server cannot read, and why. The server skips it; edges that can read it continue
    with it. It can be deleted by its id."""

    id: str
    why: str


class TaskList(msgspec.Struct, frozen=True):
    """All tasks of the log."""

    tasks: tuple[TaskSummary, ...]
    unreadable: tuple[UnreadableTask, ...]


class EliminationView(msgspec.Struct, frozen=True):
    """The elimination of an arm: its number, its sequence in the log, the number of the task's messages before it, and
    when it was stored, in seconds since 1970."""

    number: int
    record: int
    after_messages: int
    at: float


class ArmView(msgspec.Struct, frozen=True):
    """One arm. Tally has trials, successes, the estimated mean with its confidence interval, and the share of the
    evidence needed to eliminate the arm, from 0 to 1. Votes are counted by instance."""

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
    """Lead of the leader over one other arm: the difference of their means, absolute and relative to the rival's mean.
    None means unbounded or unknown. All intervals hold simultaneously, at all times."""

    rival: str
    difference: float
    difference_interval: tuple[float, float]
    relative: float | None
    relative_interval: tuple[float, float | None]


class EdgeView(msgspec.Struct, frozen=True):
    """The messages of one edge. `incarnations` identify its successive stores, the newest last; `last_sequence` is the
    highest sequence of the newest one. `several_lives` means more than one: the store was lost, copied or restored, or
    two processes use one name."""

    edge: str
    incarnations: tuple[str, ...]
    last_sequence: int
    several_lives: bool


class TaskDescription(TaskSummary, frozen=True):
    """Full description of one task. `task` is its record, from which it can be created again. `stopped_at` is when it
    was stopped, `expectation` what operators stated last. Tally only: `leader` is the remaining arm with the highest
    mean, `lifts` its lead over each other arm, and `disagreement` by how many standard deviations the sites' results
    differ more than chance allows, at the last check. `discounted` are the edges whose messages no longer count;
    `messages`, `bits` and `edges` still include them."""

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
    """Whether the engine is connected, its whole log was read, and it stores new records. Without a required token only
    the status is shown."""

    status: Literal["ok", "unavailable"]
    engine_connected: bool | msgspec.UnsetType = msgspec.UNSET
    log_read: bool | msgspec.UnsetType = msgspec.UNSET
    log_writable: bool | msgspec.UnsetType = msgspec.UNSET
    records: int | msgspec.UnsetType = msgspec.UNSET


# ---- from the log state


def status(state: TaskState) -> Status:
    """Return the status of a task. A task with a winner stays finished when it is stopped."""
    server = state.server
    if state.winner is not None:
        return "finished"
    if isinstance(server, VoteServer) and server.finished and state.proposal() is None:  # Remark 1: several may remain
        return "finished"
    if state.stopped:
        return "stopped"
    return "held" if isinstance(server, TallyServer) and server.held else "running"


def summary(state: TaskState) -> TaskSummary:
    """Summarize a task."""
    task, ledger, winner = state.task, state.ledger, state.winner
    return TaskSummary(
        id=state.task_id,
        name=task.name,
        protocol=task.protocol,
        created=state.history.created,
        status=status(state),
        winner=None if winner is None else task.arms[winner],
        remaining=tuple(task.arms[arm] for arm in state.announced),
        stopped=state.stopped,
        killed=state.killed,
        held=isinstance(state.server, TallyServer) and state.server.held,
        hold_reason=state.server.hold_reason if isinstance(state.server, TallyServer) else None,
        messages=Messages(ledger.up_messages, ledger.down_messages),
        bits=Bits(
            up=ledger.up_bits,
            down=ledger.down_bits,
            total=ledger.total_bits,
            bound=ledger.bound,
            most=None if ledger.bound is None else most_bits(task),
            instance=ledger.instance_bits,
        ),
        refused=state.refused,
        edge_count=len({edge for edge, _ in state.highest}),
    )


def description(state: TaskState) -> TaskDescription:
    """Describe a task in full."""
    short = summary(state)
    leader = _leader(state)
    return TaskDescription(
        **{name: getattr(short, name) for name in short.__struct_fields__},
        stopped_at=state.history.stopped,
        expectation=state.expectation,
        arms=_arms(state),
        leader=None if leader is None else state.task.arms[leader],
        disagreement=state.server.disagreement if isinstance(state.server, TallyServer) else None,
        lifts=() if leader is None else _lifts(state, leader),
        votes_needed=tuple(active / 2 for active in state.task.instances),
        edges=_edges(state),
        discounted=tuple(state.discounted),
        task=state.task,
    )


def _arms(state: TaskState) -> tuple[ArmView, ...]:
    task, server = state.task, state.server
    eliminated = {
        arm: EliminationView(number, *moment)
        for number, (elimination, moment) in enumerate(zip(state.eliminations, state.history.eliminations, strict=True))
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
            votes=UNSET if votes is None else tuple(votes.votes(index, i) for i in range(len(task.instances))),
        )
        for index, name in enumerate(task.arms)
    )


def _leader(state: TaskState) -> int | None:
    """Return the remaining arm with the highest mean, the lowest index of equals; None for tasks of votes."""
    if not isinstance(state.server, TallyServer):
        return None
    means = {arm: state.server.mean(arm) for arm in state.announced}
    known = {arm: mean for arm, mean in means.items() if mean is not None}
    return max(known, key=lambda arm: (known[arm], -arm), default=None)


def _lifts(state: TaskState, leader: int) -> tuple[LiftView, ...]:
    """Return the lead over each other arm with reported events."""
    assert isinstance(state.server, TallyServer)
    lifts = []
    for rival, name in enumerate(state.task.arms):
        if rival != leader and state.server.trials(rival):
            lift = state.server.lift(leader, rival)
            lifts.append(
                LiftView(name, lift.difference, lift.difference_interval, lift.relative, lift.relative_interval)
            )
    return tuple(lifts)


def _edges(state: TaskState) -> tuple[EdgeView, ...]:
    newest: dict[str, EdgeView] = {}
    for (edge, incarnation), last in state.highest.items():
        before = newest[edge].incarnations if edge in newest else ()
        newest[edge] = EdgeView(edge, (*before, incarnation), last, several_lives=edge in newest)
    return tuple(newest[edge] for edge in sorted(newest))


# ---- bits


def most_bits(task: Task) -> int:
    """Return the most bits that a task of votes can cost: the bound of Lemma 2 or Theorem 4, or more with longer codes.

    The theorem omits the bits that name the instance, and the longest Huffman codewords are longer than ⌈log₂K⌉.
    """
    book = Codebook(task)
    longest = max(len(word) for word in book.arm_words)
    votes = task.players * (len(task.arms) - 1)
    up = votes * len(task.instances) * (longest + book.instance_bits)
    return max(bits_bound(task), up + votes * longest)
