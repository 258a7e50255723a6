"""What happens in one simulated run, made from its seed: the fleet, its tasks, its faults and its operators. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from faults.operations import Operation, make_operations
from faults.schedule import Fault, Planned

KINDS: Final = (
    "stop-edge",
    "crash-edge",
    "power-cut-edge",
    "wipe-edge",
    "full-disk-edge",
    "cut-edge",
    "crash-server",
    "cut-server",
    "engine-away",
    "engine-full",
    "loss",
    "repetition",
    "delay",
)
"""`stop-edge` ends an edge in order. Crashed processes come back with what their disk held; what is cut off comes back
by itself. `engine-full` refuses every append, `engine-away` cuts off everybody."""
WINDOWS: Final = (1.0, 1.5, 3.0)
"""Reward windows, in seconds: edges that are away for longer miss rewards, others get them late."""
USERS: Final = 12.0
"""Seconds in which users come."""
VOTES: Final = 0.2
"""The share of schedules in which players of the paper's protocols vote."""
PULLS_FOR_A_VOTE: Final = 900
"""Decisions of one site until half of them are more than a first epoch."""
LONGEST: Final = 5.0
"""Seconds that a fault lasts at most."""


@dataclass(frozen=True)
class Schedule:
    """One run."""

    seed: int
    edges: tuple[str, ...]
    servers: tuple[str, ...]
    tasks: tuple[Planned, ...]
    later: tuple[Planned, ...]
    """Tasks that operators create meanwhile."""
    decisions: int
    """Fewer are made where an edge is shut out: at least 300."""
    faults: tuple[Fault, ...]
    operations: tuple[Operation, ...]
    delay: float
    """Seconds that a message is under way on average, without any fault."""
    loss: float
    """The share of messages that are lost without any fault."""

    @property
    def damaged(self) -> frozenset[str]:
        """Edges that lose a store."""
        return frozenset(fault.target for fault in self.faults if fault.kind == "wipe-edge")


def make_schedule(seed: int) -> Schedule:
    rng = random.Random(f"schedule {seed}")
    edges = tuple(f"e{number + 1}" for number in range(rng.choice((3, 3, 4, 5))))
    servers = tuple(f"s{number + 1}" for number in range(rng.choice((2, 2, 3))))
    votes = rng.random() < VOTES
    tasks = (_votes(rng) if votes else _task("clear", rng), _task("standing", rng))
    later = (_task("late", rng),)
    operations = make_operations(seed, tasks=["standing"], edges=edges[2:], servers=servers, secured=rng.random() < 0.5)
    return Schedule(
        seed,
        edges,
        servers,
        tasks,
        later,
        len(edges) * PULLS_FOR_A_VOTE if votes else rng.randint(450, 550),
        tuple(sorted((_fault(rng, edges, servers) for _ in range(rng.randint(5, 9))), key=lambda fault: fault.at)),
        operations,
        rng.choice((0.001, 0.01, 0.05)),
        rng.choice((0.0, 0.0, 0.01, 0.05)),
    )


def _votes(rng: random.Random) -> Planned:
    """A task of the paper whose first epoch is as short as it can be, so that players vote."""
    means = {"red": rng.uniform(0.0, 0.1), "green": rng.uniform(0.9, 1.0)}
    return Planned("clear", rng.choice(("dme", "edme")), means, 0.999, 0.49, "red", rng.choice(WINDOWS))


def _task(name: str, rng: random.Random) -> Planned:
    """One is decided soon; the others go on for long, and votes are never reached."""
    good, bad = (rng.uniform(0.85, 1.0), rng.uniform(0.0, 0.15)) if name == "clear" else (0.5, 0.5)
    means = {"red": bad, "green": good, "blue": bad} if rng.random() < 0.3 else {"red": bad, "green": good}
    protocol = "tally" if name == "clear" else rng.choice(("tally", "tally", "dme", "edme"))
    fallback = "red" if rng.random() < 0.5 else None
    return Planned(name, protocol, means, 0.3, 0.05, fallback, rng.choice(WINDOWS))


def _fault(rng: random.Random, edges: tuple[str, ...], servers: tuple[str, ...]) -> Fault:
    kind = rng.choice(KINDS)
    target = rng.choice(edges) if kind.endswith("edge") else rng.choice(servers) if kind.endswith("server") else "*"
    return Fault(rng.uniform(0.5, USERS), kind, target, rng.uniform(0.2, LONGEST), rng.uniform(0.2, 0.7))
