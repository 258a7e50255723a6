"""The tasks of a load: a mix of all protocols, and what their variants earn. Pure: every process can work it out.

A task's name tells its means, so whoever plays for a site needs to be told nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

ARMS = ("a", "b", "c", "d")
MIX = ("tally", "dme", "tally", "edme")
"""One after the other: half of all tasks are of `tally`."""
VOTERS = 12
"""Players of a task of votes, by name, with the first two arms: each has to see some hundred events before it votes."""
TALLYING = 200
"""Players of most tasks of `tally`, by name."""
WINDOW = 1.0
"""For rewards, in seconds: they come at once."""
OPEN_EVERY = 24
"""Of so many tasks one, of `tally`, is for every edge that there is."""


def name_of(number: int) -> str:
    return f"{MIX[number % len(MIX)]}-{number}"


def arms_of(name: str) -> tuple[str, ...]:
    return ARMS if name.startswith("tally") else ARMS[:2]


def means_of(name: str) -> list[float]:
    """What each arm earns on average: tallies tell close ones apart, votes need a wide gap to be done in minutes."""
    rng = random.Random(name)
    if name.startswith("tally"):
        base, gap = rng.uniform(0.1, 0.3), rng.uniform(0.02, 0.04)
    else:
        base, gap = rng.uniform(0.05, 0.15), rng.uniform(0.7, 0.8)
    means = [base] * len(arms_of(name))
    means[rng.randrange(len(means))] += gap
    return means


def best_of(name: str) -> str:
    """The arm that ought to win."""
    means = means_of(name)
    return ARMS[means.index(max(means))]


def describe(number: int, edges: Sequence[str], everywhere: Sequence[str]) -> dict[str, Any]:
    """The body that creates a task; `everywhere` are edges that take part in each."""
    name, rng = name_of(number), random.Random(number)
    protocol = MIX[number % len(MIX)]
    told: dict[str, Any] = {
        "name": name, "variants": list(arms_of(name)), "reward_window": WINDOW, "delta": 0.05, "protocol": protocol
    }  # fmt: skip
    if protocol == "tally":
        wanted = TALLYING
        told["epsilon"] = 0
    else:
        wanted = VOTERS
        told["epsilon"] = 0.9
    if protocol == "edme":
        told["instances"] = 2
    if number % OPEN_EVERY == 0:
        told["sites"] = len(edges) + len(everywhere)
    else:
        told["sites"] = sorted({*rng.sample(list(edges), min(wanted, len(edges))), *everywhere})
    return told
