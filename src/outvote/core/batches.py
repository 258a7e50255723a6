"""Batches: how delayed and missing rewards are counted without bias.

A batch is the next decisions of one arm at one player; its number is the `ticket` that `decide()` returns and that a
reward names. Only counters are kept, never a decision.

    open ──last decision──▶ full ──one reward window later──▶ closed
      └───────────elimination of the arm───────────┴────────▶ discarded

With a reward window, a batch is counted as a whole when it closes: what was not answered by then counts 0. Neither its
content nor its time then depends on which outcome is reported sooner. Without one, a reward is an observation when it
comes, which is right only if neither answering nor its delay depends on the outcome.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from outvote.core import snapshots
from outvote.core.errors import MalformedSnapshot

ENDLESS = -1
"""The size of a batch that never becomes full: nothing is left to learn, but decisions go on."""


class Batch:
    """The counters of one batch."""

    __slots__ = ("answer", "arm", "left", "size", "ticket", "total", "waiting")

    def __init__(self, ticket: int, arm: int, size: int) -> None:
        self.ticket = ticket
        self.arm = arm
        self.size = size
        self.left = size
        """Decisions still to come: 0 is full. An endless batch starts below 0 and never gets there."""
        self.waiting = 0
        """Decisions that have no reward yet."""
        self.total = 0.0
        """The rewards so far; kept only where a reward window makes the batch count as a whole."""
        self.answer = (arm, ticket)


class BatchBook:
    """The batches of one player that are not closed, in the order in which they were opened."""

    def __init__(self) -> None:
        self.by_ticket: dict[int | None, Batch] = {}
        self.next_ticket = 0

    def open(self, arm: int, size: int) -> Batch:
        batch = Batch(self.issue_ticket(), arm, size)
        self.by_ticket[batch.ticket] = batch
        return batch

    def issue_ticket(self) -> int:
        self.next_ticket += 1
        return self.next_ticket - 1

    def issued(self, ticket: object) -> bool:
        return isinstance(ticket, int) and not isinstance(ticket, bool) and 0 <= ticket < self.next_ticket

    def discard(self, arms: Collection[int]) -> None:
        """The batches of eliminated arms will never count."""
        self.by_ticket = {ticket: batch for ticket, batch in self.by_ticket.items() if batch.arm not in arms}

    def of(self, arm: int) -> list[Batch]:
        """An arm's batches, the newest first."""
        return [batch for batch in reversed(self.by_ticket.values()) if batch.arm == arm]

    def snapshot(self) -> list[list[int | float]]:
        return [
            [batch.ticket, batch.arm, batch.size, batch.left, batch.waiting, float(batch.total)]
            for batch in self.by_ticket.values()
        ]

    def restore(self, batches: object, next_ticket: object, remaining: Collection[int]) -> None:
        """Take over what `snapshot` wrote: every remaining arm must have one batch, its newest, that is not full."""
        self.next_ticket = snapshots.whole(next_ticket, "next_ticket", 0)
        self.by_ticket = {}
        open_arms: list[int] = []
        for item in snapshots.items(batches, "batches"):
            batch = _restore_batch(item, self.next_ticket)
            if batch.ticket in self.by_ticket or list(self.by_ticket)[-1:] > [batch.ticket]:
                raise MalformedSnapshot(f"tickets of batches must increase, got {batches!r}")
            if batch.arm not in remaining or batch.arm in open_arms:
                raise MalformedSnapshot(
                    f"a batch must belong to a remaining arm with no older open batch, got {item!r}"
                )
            if batch.left != 0:
                open_arms.append(batch.arm)
            self.by_ticket[batch.ticket] = batch
        if sorted(open_arms) != sorted(remaining):
            raise MalformedSnapshot(f"each remaining arm of {sorted(remaining)} must have one open batch: {batches!r}")


def _restore_batch(item: Any, next_ticket: int) -> Batch:
    ticket, arm, size, left, waiting, total = snapshots.items(item, "a batch", 6)
    batch = Batch(
        snapshots.whole(ticket, "a batch's ticket", 0, next_ticket - 1),
        snapshots.whole(arm, "a batch's arm", 0),
        snapshots.whole(size, "a batch's size", ENDLESS),
    )
    least = 0 if batch.size > 0 else -math.inf
    batch.left = snapshots.whole(left, "a batch's left", least, batch.size)
    decided = batch.size - batch.left
    batch.waiting = snapshots.whole(waiting, "a batch's waiting", 0, decided)
    batch.total = snapshots.real(total, "a batch's total", 0, decided)
    return batch
