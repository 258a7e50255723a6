"""What an audit can find fault with.

One rule: a finding says where it is, what is there, and what should be there; a marker is never repeated in full.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
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

    def to_json(self) -> dict[str, str]:
        return asdict(self)


def shortened(findings: list[Finding]) -> list[Finding]:
    """Each once, and of each kind so many at most."""
    kept: dict[Finding, None] = {}
    counts: dict[str, int] = {}
    for each in findings:
        if each not in kept and counts.get(each.kind, 0) < MOST:
            counts[each.kind] = counts.get(each.kind, 0) + 1
            kept[each] = None
    return list(kept)
