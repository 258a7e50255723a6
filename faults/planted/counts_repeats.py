"""A planted bug: an edge counts a reward that is sent again once more."""

from __future__ import annotations

from outvote.core.decisions import Count, Decisions, Ticket

_count_once = Decisions._count


def count(self: Decisions, counted: Count, ticket: Ticket, reward: float) -> None:
    counted.largest[ticket.place] = -1.0
    _count_once(self, counted, ticket, reward)


Decisions._count = count  # type: ignore[assignment,method-assign]
