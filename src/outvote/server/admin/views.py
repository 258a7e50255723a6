"""The API's answers about tasks, as types. The OpenAPI document is generated from them.

Pure: everything is computed from the log state. Answers have no other fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from outvote.core.task import Task
from outvote.log.expectation import Expectation
from outvote.log.log_state import TaskState
from outvote.log.site_report import Notice, SiteReport
from outvote.presenters import site_words, task_fields
from outvote.presenters.lookup import presenter

Status: TypeAlias = Literal["running", "held", "killed", "finished", "stopped"]


# ---- types of answers


class Discounted(msgspec.Struct, frozen=True):
    """The site's messages so far no longer count in these tasks: the running ones to which it had sent messages since
    its last discount."""

    site: str
    tasks: tuple[str, ...]


class Messages(msgspec.Struct, frozen=True):
    """Number of messages; a downward message counts once for each player."""

    up: int
    down: int


class Bits(msgspec.Struct, frozen=True):
    """Payload bits. `bound` is that of Lemma 2 or Theorem 4, `most` the maximum with the codes in use; both only for
    votes. `instance` is the part that names the instance of a vote."""

    up: int
    down: int
    total: int
    bound: int | None
    most: int | None
    instance: int


class TaskSummary(msgspec.Struct, frozen=True):
    """Summary of a task. `created` is in seconds since 1970; `refused` counts records of sites that are no valid
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
    site_count: int


class UnreadableTask(msgspec.Struct, frozen=True):
    """A task that this version of the server cannot read, and why. The server skips it; sites that can read it continue
    with it. It can be deleted by its id."""

    id: str
    why: str


class TaskList(msgspec.Struct, frozen=True):
    """All tasks of the log."""

    tasks: tuple[TaskSummary, ...]
    unreadable: tuple[UnreadableTask, ...]


class EliminationView(msgspec.Struct, frozen=True):
    """The elimination of a variant: its number, its sequence in the log, the number of the task's messages before it,
    and when it was stored, in seconds since 1970."""

    number: int
    record: int
    after_messages: int
    at: float


class VariantView(msgspec.Struct, frozen=True):
    """One variant. Counts have trials, successes, the estimated mean with its confidence interval, and the share of the
    evidence needed to eliminate the variant, from 0 to 1. Votes are counted by instance."""

    variant: str
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
    """Lead of the leader over one other variant: the difference of their means, absolute and relative to the rival's
    mean. None means unbounded or unknown. All intervals hold simultaneously, at all times."""

    rival: str
    difference: float
    difference_interval: tuple[float, float]
    relative: float | None
    relative_interval: tuple[float, float | None]


class SiteView(msgspec.Struct, frozen=True):
    """The messages of one site. `incarnations` identify its successive stores, the newest last; `last_sequence` is the
    highest sequence of the newest one. `several_lives` means more than one: the store was lost, copied or restored, or
    two processes use one name."""

    site: str
    incarnations: tuple[str, ...]
    last_sequence: int
    several_lives: bool


class DiscountView(msgspec.Struct, frozen=True):
    """A site was discounted: its messages before this record no longer count. `messages` is how many still counted
    until then; `at` is when the record was stored, in seconds since 1970."""

    site: str
    messages: int
    record: int
    at: float


class SiteRewards(msgspec.Struct, frozen=True):
    """What a site reports of its decisions and rewards: at least so many decisions, a power of ten, and warnings. A
    site with fewer than 100 decisions reports nothing."""

    site: str
    decisions: int
    notices: tuple[Notice, ...]


class TaskDescription(TaskSummary, frozen=True):
    """Full description of one task. `task` is what it was created with, from which it can be created again.
    `stopped_at` is when it was stopped, `expectation` what operators stated last. Counts only: `leader` is the
    remaining variant with the highest mean, `lifts` its lead over each other variant, and `disagreement` by how many
    standard deviations the sites' results differ more than chance allows, at the last check. `discounted` are the sites
    whose messages no longer count; `messages`, `bits` and `sites` still include them. `rewards` is what sites report of
    their decisions and rewards, `warnings` the same in words. `first_counts` says when the first message of a site can
    come; it is empty once there is one."""

    stopped_at: float | None
    expectation: Expectation | None
    variants: tuple[VariantView, ...]
    leader: str | None
    disagreement: float | None
    lifts: tuple[LiftView, ...]
    votes_needed: tuple[int, ...]
    sites: tuple[SiteView, ...]
    discounted: tuple[DiscountView, ...]
    task: Task
    rewards: tuple[SiteRewards, ...] = ()
    warnings: tuple[str, ...] = ()
    first_counts: str = ""


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
    if state.killed and not state.stopped:
        return "killed"
    # Votes may end with several variants (Remark 1); what the core has decided and the log lacks is under way.
    if state.winner is not None or (state.server.finished and state.proposal() is None):
        return "finished"
    if state.stopped:
        return "stopped"
    return "held" if state.server.held else "running"


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
        held=state.server.held,
        hold_reason=state.server.hold_reason,
        messages=Messages(ledger.up_messages, ledger.down_messages),
        bits=Bits(
            up=ledger.up_bits,
            down=ledger.down_bits,
            total=ledger.total_bits,
            bound=ledger.bound,
            most=None if ledger.bound is None else presenter(task.protocol).bits_bound(state)[0],
            instance=ledger.instance_bits,
        ),
        refused=state.refused,
        site_count=len({edge for edge, _ in state.highest}),
    )


def description(state: TaskState) -> TaskDescription:
    """Describe a task in full."""
    task, short, present = state.task, summary(state), presenter(state.task.protocol)
    leader = present.leader(state)
    return TaskDescription(
        **{name: getattr(short, name) for name in short.__struct_fields__},
        stopped_at=state.history.stopped,
        expectation=state.expectation,
        variants=_variants(state),
        leader=None if leader is None else task.arms[leader],
        disagreement=present.disagreement(state),
        lifts=tuple(
            LiftView(task.arms[rival], lift.difference, lift.difference_interval, lift.relative, lift.relative_interval)
            for rival, lift in ([] if leader is None else present.lifts(state, leader))
        ),
        votes_needed=present.votes_needed(task),
        sites=_sites(state),
        discounted=tuple(DiscountView(*msgspec.structs.astuple(each)) for each in state.discounted),
        task=task,
    )


def with_reports(described: TaskDescription, reports: Mapping[str, SiteReport]) -> TaskDescription:
    """Add what is not in the log: what sites report of their rewards."""
    traffic = None if described.expectation is None else described.expectation.traffic
    waits = described.status == "running" and not described.messages.up
    return msgspec.structs.replace(
        described,
        rewards=tuple(SiteRewards(site, report.decisions, report.notices) for site, report in reports.items()),
        warnings=tuple(site_words.at_sites(reports)),
        first_counts=site_words.first_counts(described.task, traffic) if waits else "",
    )


def to_json(described: TaskDescription) -> dict[str, Any]:
    """Return the answer of the API: the task has the names that people know."""
    return {**msgspec.to_builtins(described), "task": task_fields.to_json(described.task)}


def _variants(state: TaskState) -> tuple[VariantView, ...]:
    eliminated = {
        arm: EliminationView(number, *moment)
        for number, (elimination, moment) in enumerate(zip(state.eliminations, state.history.eliminations, strict=True))
        for arm in elimination.arms
    }
    present = presenter(state.task.protocol)
    return tuple(
        VariantView(
            variant=name,
            index=index,
            state="eliminated" if index in eliminated else "remaining",
            eliminated=eliminated.get(index),
            **present.variant(state, index),
        )
        for index, name in enumerate(state.task.arms)
    )


def _sites(state: TaskState) -> tuple[SiteView, ...]:
    newest: dict[str, SiteView] = {}
    for (edge, incarnation), last in state.highest.items():
        before = newest[edge].incarnations if edge in newest else ()
        newest[edge] = SiteView(edge, (*before, incarnation), last, several_lives=edge in newest)
    return tuple(newest[edge] for edge in sorted(newest))
