"""What operators do while a fleet is in trouble, decided by the seed: which task or edge it is about, when, and which
server is asked first. Pure; `operators` does it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

OPERATIONS: Final = ("stop-task", "kill-task", "revive-task", "delete-task", "create-task", "discount")
STORIES: Final = (
    ("stop-task",),
    ("kill-task",),
    ("kill-task", "revive-task"),
    ("delete-task",),
    ("delete-task", "create-task"),
    ("kill-task", "stop-task"),
    ("stop-task", "delete-task"),
)
"""What may become of one task. It can be created again under its name once it was deleted."""
NEW: Final = "late"
"""The name of a task that is not there at the beginning."""
HANGS_UP: Final = ("stop-task", "delete-task", "create-task")
"""Of kill and revive the last word counts: who asks again must have heard that the first word is not under way."""
LATEST: Final = 3.0
"""Seconds in which they begin."""


@dataclass(frozen=True)
class Operation:
    """Something that an operator wants. What is about one target is done one after the other."""

    at: float
    """Seconds after users begin to come."""
    kind: str
    target: str
    """The name of a task; of a discount that of an edge."""
    server: str
    """The one that is asked first."""
    hangs_up: bool = False
    """The first answer is lost: it must be harmless to ask again, at once and elsewhere."""


def make_operations(
    seed: int, *, tasks: Sequence[str], edges: Sequence[str], servers: Sequence[str], secured: bool
) -> tuple[Operation, ...]:
    """Of the tasks that may be touched, what happens to which; only a fleet with credentials can discount an edge.

    They have a generator of their own: the faults of a seed are the same with them and without.
    """
    rng = random.Random(f"operations {seed}")
    found: list[Operation] = []
    for task in rng.sample(tasks, min(len(tasks), rng.choice((0, 1, 1, 1, 2)))):
        story = rng.choice(STORIES)
        moments = sorted(rng.uniform(0.2, LATEST) for _ in story)
        found += [
            Operation(round(at, 3), kind, task, rng.choice(servers)) for at, kind in zip(moments, story, strict=True)
        ]
    if rng.random() < 0.35:
        found.append(Operation(round(rng.uniform(0.2, LATEST), 3), "create-task", NEW, rng.choice(servers)))
    if secured and rng.random() < 0.7:
        at = round(rng.uniform(0.5, LATEST), 3)  # there must be something to be taken out
        found.append(Operation(at, "discount", rng.choice(edges), rng.choice(servers)))
    found = [replace(each, hangs_up=each.kind in HANGS_UP and rng.random() < 0.3) for each in found]
    return tuple(sorted(found, key=lambda each: (each.at, each.kind)))
