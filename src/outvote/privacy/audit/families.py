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
from outvote.privacy.audit.times import longest_delay

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
            groups.setdefault((edge, event.ticket.group), []).append(event)
    for each, decoded in accounts.decoded:
        message = cast(Tally, decoded)
        where, group = str(each.subject), groups.get((each.subject.edge, message.sequence), [])
        group = [event for event in group if event.decided[0] <= each.time]
        covered = len(group)
        accounts.completed += [(each, group[-1:])] if group else []
        accounts.least_events = covered if accounts.least_events is None else min(accounts.least_events, covered)
        accounts.all_or_none += message.successes in (0, message.trials)
        accounts.compared += 1
        if covered < (task.floor or 0) or message.trials < (task.floor or 0):
            told = f"a message speaks of {min(covered, message.trials)} events, the floor is {task.floor}"
            accounts.findings.append(Finding("floor", where, told))
        most = sum(event.reward for event in group)
        least = sum(event.reward for event in group if event.in_time)
        if covered != message.trials or {event.ticket.arm for event in group} - {message.arm}:
            told = f"it says {message.trials} events with arm {message.arm}; there were {covered} of its group"
            accounts.findings.append(Finding("payload", where, told))
        elif task.privacy_budget is None and not least <= message.successes <= most:
            accounts.findings.append(Finding("payload", where, "it is not the sum of its events' rewards"))


def _replayed(task: Task, edge: str, events: Sequence[Event]) -> list[tuple[Vote, list[Event]]]:
    """The votes that a site's events lead to by the protocol alone, each with the last events of the groups that
    completed it. Only votes before the first elimination are right: when an edge heard of it is not known."""
    player = protocols.player(Task.from_json(task.to_json() | {"reward_window": 0.0}), edge)
    found: list[tuple[Vote, list[Event]]] = []
    ends: dict[int, Event] = {}
    for number, event in enumerate(events):
        ticket = player.decide(number)
        if ticket.arm != event.ticket.arm or not event.in_time:
            break
        ends[event.ticket.group] = event
        player.reward(ticket, float(event.reward), number)
        for vote in player.tick(number):
            late = [end for end in ends.values() if end.decided[0] > event.decided[0] - longest_delay(task)]
            found.append((cast(Vote, vote), late))
    return found


def _compare_votes(
    task: Task, accounts: Accounts, events: Mapping[str, Sequence[Event]], heard_at: Mapping[str, float]
) -> None:
    """Votes with those that the same events lead to; and each speaks of at least an epoch of every arm that remains."""
    epoch = min(schedule.pulls(1) for schedule in task.schedules())
    expected = {
        (edge, vote.sequence): (vote, ends)
        for edge, those in events.items()
        for vote, ends in _replayed(task, edge, those)
    }
    for each, message in accounts.decoded:
        where, edge = str(each.subject), each.subject.edge
        before = sum(event.decided[0] + task.reward_window <= each.time for event in events[edge])
        accounts.least_events = before if accounts.least_events is None else min(accounts.least_events, before)
        before_news = each.time < heard_at.get(edge, float("inf"))
        least = epoch * (len(task.arms) if before_news else 2)
        if before < least:
            told = f"a vote after {before} events of its site whose window was over, an epoch has {least}"
            accounts.findings.append(Finding("floor", where, told))
        if before_news and (edge, message.sequence) in expected:
            accounts.compared += 1
            vote, ends = expected[edge, message.sequence]
            accounts.completed.append((each, ends))
            if vote != message:
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
