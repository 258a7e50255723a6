"""What an audit can find fault with.

One rule: a finding says where it is, what is there, and what should be there; a marker is never repeated in full.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

MOST: Final = 50
"""Findings of one kind that are told; a leak is seldom alone."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that should not be."""

    kind: str
    """marker, frame, payload, floor, time, field, log or account."""
    where: str
    what: str


def shortened(findings: list[Finding]) -> list[Finding]:
    """Each once, and of each kind so many at most."""
    counts: Counter[str] = Counter()
    kept = []
    for each in dict.fromkeys(findings):
        counts[each.kind] += 1
        if counts[each.kind] <= MOST:
            kept.append(each)
    return kept
