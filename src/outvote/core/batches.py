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

from collections.abc import Collection, Iterable, Sequence
from typing import Any

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

    def row(self) -> list[int | float]:
        """Its counters in plain JSON types."""
        return [self.ticket, self.arm, self.size, self.left, self.waiting, float(self.total)]

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> Batch:
        """The batch that `row` was taken of."""
        ticket, arm, size, left, waiting, total = row
        batch = cls(ticket, arm, size)
        batch.left, batch.waiting, batch.total = left, waiting, total
        return batch


class BatchBook:
    """The batches of one player that are not closed, in the order in which they were opened."""

    def __init__(self) -> None:
        self.by_ticket: dict[int | None, Batch] = {}
        """One dictionary for ever: the player holds on to it."""
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
        for ticket in [ticket for ticket, batch in self.by_ticket.items() if batch.arm in arms]:
            del self.by_ticket[ticket]

    def of(self, arm: int) -> list[Batch]:
        """An arm's batches, the newest first."""
        return [batch for batch in reversed(self.by_ticket.values()) if batch.arm == arm]

    def snapshot(self) -> list[list[int | float]]:
        return [batch.row() for batch in self.by_ticket.values()]

    def restore(self, batches: Iterable[Sequence[Any]], next_ticket: int) -> None:
        """Take over what `snapshot` wrote."""
        self.next_ticket = next_ticket
        self.by_ticket.clear()
        for batch in map(Batch.of_row, batches):
            self.by_ticket[batch.ticket] = batch
