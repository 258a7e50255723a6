"""Every upward payload, decoded with the core's codes; every bit is accounted for, and every count compared.

One rule: a message says what its protocol says and no bit more: of a tally the audit knows the events and their sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from outvote.core import protocols
from outvote.core.codes import packed_bits
from outvote.core.errors import OutvoteError
from outvote.core.messages import Tally, UpMessage, Vote
from outvote.core.task import Task
from outvote.log.records import Coder
from outvote.privacy.audit.findings import Finding
from outvote.privacy.audit.frames import Sent
from outvote.privacy.audit.people import Event


@dataclass
class Accounts:
    """What the payloads hold, in bits, and what they say."""

    messages: int = 0
    repeated: int = 0
    bits: int = 0
    """Of messages, as the ledger counts them."""
    marks: int = 0
    """One in each payload, at its end, and the zeros after it."""
    payload_bytes: int = 0
    least_events: int | None = None
    """Fewest events that one message speaks of."""
    all_or_none: int = 0
    """Tallies in which all or none succeeded."""
    compared: int = 0
    """Messages whose content was computed again from the events."""
    decoded: list[tuple[Sent, UpMessage]] = field(default_factory=list)
    completed: list[tuple[Sent, Event]] = field(default_factory=list)
    """Messages with the event that completed each, where it is known."""
    findings: list[Finding] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "messages": self.messages,
            "repeated": self.repeated,
            "bytes": self.payload_bytes,
            "bits": {"messages": self.bits, "end_marks": self.marks, "total": 8 * self.payload_bytes},
            "least_events": self.least_events,
            "compared_with_events": self.compared,
            "all_or_none": self.all_or_none,
        }


def accounted(
    task: Task,
    sent: Sequence[Sent],
    events: Mapping[str, Sequence[Event]],
    ledger: Mapping[str, int],
    heard_at: Mapping[str, float],
) -> Accounts:
    """All payloads; `ledger` is what the server says: messages and bits; `heard_at` is when an edge may first have
    known of an elimination."""
    accounts = Accounts()
    coder = Coder(task)
    known: dict[str, bytes] = {}
    for each in sent:
        subject = str(each.subject)
        if subject in known:
            accounts.repeated += 1
            if known[subject] != each.payload:
                accounts.findings.append(Finding("payload", subject, "a message was sent again with other content"))
            continue
        known[subject] = each.payload
        try:
            message = coder.read_up(each.subject, each.payload)
            same = coder.up(message) == each.payload
        except OutvoteError as error:
            accounts.findings.append(Finding("payload", subject, f"no message of the task: {error}"))
            continue
        if not same:
            accounts.findings.append(Finding("payload", subject, "not the bits that the code makes of this message"))
        bits = packed_bits(each.payload)
        accounts.messages += 1
        accounts.bits += bits
        accounts.marks += 8 * len(each.payload) - bits
        accounts.payload_bytes += len(each.payload)
        accounts.decoded.append((each, message))
    for what, mine in (("messages", accounts.messages), ("bits", accounts.bits)):
        if ledger[what] != mine:
            told = f"the server counted {ledger[what]} {what}, on the wire were {mine}"
            accounts.findings.append(Finding("account", "the server's ledger", told))
    if task.protocol == "tally":
        _compare_tallies(task, accounts, events)
    else:
        _compare_votes(task, accounts, events, heard_at)
    return accounts


def _compare_tallies(task: Task, accounts: Accounts, events: Mapping[str, Sequence[Event]]) -> None:
    """Each tally with the sum of its events: how many there are, and without noise what they earned."""
    groups: dict[tuple[str, int], list[Event]] = {}
    for edge, those in events.items():
        for event in those:
            groups.setdefault((edge, event.ticket), []).append(event)
    for each, message in accounts.decoded:
        if not isinstance(message, Tally):
            continue
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
        for vote in player.reward(event.arm, float(event.reward), ticket=event.ticket):
            if isinstance(vote, Vote):
                found.append((vote, event))
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
