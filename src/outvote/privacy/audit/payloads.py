"""Every upward payload, decoded with the core's codes; every bit is accounted for. `families` compares what they say.

One rule: a message says what its protocol says and no bit more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from outvote.core.codes import packed_bits
from outvote.core.errors import OutvoteError
from outvote.core.messages import UpMessage
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
    completed: list[tuple[Sent, Sequence[Event]]] = field(default_factory=list)
    """Messages with the last event of each group that completed them, where it is known."""
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


def accounted(task: Task, sent: Sequence[Sent], ledger: Mapping[str, int]) -> Accounts:
    """All payloads; `ledger` is what the server says: messages and bits."""
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
    return accounts
