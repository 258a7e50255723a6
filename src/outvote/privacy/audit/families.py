"""What the audit knows of each family of protocols: what its messages must say, what is stored, and what they tell.

Of a tally the audit knows the events and their sum; of a vote the events that lead to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from outvote.core import protocols
from outvote.core.messages import Tally, Vote
from outvote.core.task import Task
from outvote.privacy import schemas
from outvote.privacy.audit.findings import Finding
from outvote.privacy.audit.payloads import Accounts
from outvote.privacy.audit.people import Event

Compare: TypeAlias = Callable[[Task, Accounts, Mapping[str, Sequence[Event]], Mapping[str, float]], None]
"""Compares messages with the events of each edge; the last argument is when it may first have heard an elimination."""


@dataclass(frozen=True)
class Family:
    """What is stored of a player, how its messages are compared with events, and two sentences for the report."""

    state: schemas.Schema
    compare: Compare
    floor: Callable[[Task, int], str]
    learnt: Callable[[Task, Accounts], list[str]]


def _told_by_tallies(task: Task, accounts: Accounts) -> list[str]:
    said = "Of each group of events with a variant how many succeeded"
    if task.privacy_budget is not None:
        odds = f"one event's reward changes the odds of all that is seen by a factor of e^{task.privacy_budget:g}"
        return [f"{said}, with noise: {odds} at most."]
    share = accounts.all_or_none / max(accounts.messages, 1)
    return [
        f"{said}.",
        f"In {accounts.all_or_none} of {accounts.messages} messages ({share:.0%}) all or none succeeded: these "
        "tell what every event of the group earned, though not whose it was. A privacy budget hides it.",
    ]


def _compare_tallies(
    task: Task, accounts: Accounts, events: Mapping[str, Sequence[Event]], heard_at: Mapping[str, float]
) -> None:
    """Each tally with the sum of its events: how many there are, and without noise what they earned."""
    groups: dict[tuple[str, int], list[Event]] = {}
    for edge, those in events.items():
        for event in those:
            groups.setdefault((edge, event.ticket), []).append(event)
    for each, decoded in accounts.decoded:
        message = cast(Tally, decoded)
        where, group = str(each.subject), groups.get((each.subject.edge, message.sequence), [])
        group = [event for event in group if event.decided[0] <= each.time]
        covered = len(group)
        accounts.completed += [(each, event) for event in group[-1:]]
        accounts.least_events = covered if accounts.least_events is None else min(accounts.least_events, covered)
        accounts.all_or_none += message.successes in (0, message.trials)
        accounts.compared += 1
        if covered < (task.floor or 0) or message.trials < (task.floor or 0):
            told = f"a message speaks of {min(covered, message.trials)} events, the floor is {task.floor}"
            accounts.findings.append(Finding("floor", where, told))
        if covered != message.trials or {event.arm for event in group} - {message.arm}:
            told = f"it says {message.trials} events with arm {message.arm}; there were {covered} of its group"
            accounts.findings.append(Finding("payload", where, told))
        elif task.privacy_budget is None and message.successes != sum(event.reward for event in group):
            accounts.findings.append(Finding("payload", where, "it is not the sum of its events' rewards"))


def _replayed(task: Task, edge: str, events: Sequence[Event], until: float) -> list[tuple[Vote, Event]]:
    """The votes that a site's events lead to by the protocol alone, each with the event that completed it.

    Only up to the first elimination, at `until`: when exactly an edge heard of it is not known.
    """
    player = protocols.player(task, edge)
    found: list[tuple[Vote, Event]] = []
    for event in events:
        if event.rewarded[1] >= until or player.decide() != (event.arm, event.ticket):
            break
        votes = player.reward(event.arm, float(event.reward), ticket=event.ticket)
        found += [(cast(Vote, vote), event) for vote in votes]
    return found


def _compare_votes(
    task: Task, accounts: Accounts, events: Mapping[str, Sequence[Event]], heard_at: Mapping[str, float]
) -> None:
    """Votes with those that the same events lead to; and each speaks of at least an epoch of every arm that remains."""
    epoch = min(schedule.pulls(1) for schedule in task.schedules())
    expected = {
        (edge, vote.sequence): (vote, event)
        for edge, those in events.items()
        for vote, event in _replayed(task, edge, those, heard_at.get(edge, float("inf")))
    }
    for each, message in accounts.decoded:
        where, edge = str(each.subject), each.subject.edge
        before = sum(event.rewarded[0] <= each.time for event in events[edge])
        accounts.least_events = before if accounts.least_events is None else min(accounts.least_events, before)
        least = epoch * (len(task.arms) if each.time < heard_at.get(edge, float("inf")) else 2)
        if before < least:
            told = f"a vote after {before} events of its site, an epoch has {least}"
            accounts.findings.append(Finding("floor", where, told))
        if task.reward_window is None and (edge, message.sequence) in expected:
            accounts.compared += 1
            vote, event = expected[edge, message.sequence]
            accounts.completed.append((each, event))
            if vote != message or each.time < event.rewarded[0]:
                told = f"the site's events lead to {vote}, sent was {message}"
                accounts.findings.append(Finding("payload", where, told))


_TALLIES: Final = Family(
    schemas.TALLY_STATE,
    _compare_tallies,
    lambda task, least: f"The fewest that one message speaks of is {least}; the floor of this task is {task.floor}.",
    _told_by_tallies,
)
_VOTES: Final = Family(
    schemas.VOTES_STATE,
    _compare_votes,
    lambda task, least: (
        f"The fewest that a site had before a vote is {least:,}: it speaks of an epoch of every variant."
    ),
    lambda task, accounts: ["Which variants each site would drop, and nothing else: no count, no reward."],
)
_UNKNOWN: Final = Family(
    schemas.Schema("State of an unknown player", ()),
    lambda task, accounts, events, heard_at: None,
    lambda task, least: "The audit does not know how many events a message of this protocol speaks of.",
    lambda task, accounts: ["Messages of a protocol that the audit does not know."],
)
_FAMILIES: Final = {"tally": _TALLIES, "dme": _VOTES, "edme": _VOTES}


def family(protocol: str) -> Family:
    """Return what the audit knows of a protocol: of an unknown one that every bit is accounted for, and no more."""
    return _FAMILIES.get(protocol, _UNKNOWN)
