"""What happens in one run, all of it decided by a seed: the fleet, its tasks, which fault meets whom and when, and what
operators do meanwhile.

A seed gives the same schedule on every machine. What a fault meets, a message half sent or not yet saved, is up to the
machine; what must come of it is not.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from faults.operations import NEW, Operation, make_operations
from outvote.core.task import Task

LENGTH: Final = 3.0
"""Seconds in which faults begin."""
PULSE: Final = "pulse"
"""A task of every run that is never decided, so that there is always something to send: a tally of equal arms."""
STANDING: Final = "standing"
"""The same, in runs in which operators do something: what they touch shall not always be decided already."""
ON_MESSAGES: Final = ("drop", "repeat", "exchange")
RECOVERY: Final = 7
"""Every so many seeds have one fault alone, and three nodes: what it takes to recover from it is measured."""
OF_NODES: Final = ("kill-leader", "kill-node", "vanish-node")
AWAY: Final = 12.0
"""Seconds that a node is away then: the others have to go on without it."""
DAMAGE: Final = ("wipe-edge", "corrupt-store", "truncate-store", "copied-store", "set-back-store")
"""Faults after which the store of an earlier life is not there any more."""
KINDS: Final = (
    "kill-edge",
    "kill-server",
    "kill-node",
    "kill-leader",
    "kill-together",
    "pause-edge",
    "pause-server",
    "pause-node",
    "wipe-node",
    "cut-edge",
    "cut-server",
    "cut-node",
    "vanish-node",
    "one-way-up",
    "one-way-down",
    "one-way-node",
    "delay",
    *ON_MESSAGES,
    "full-disk-edge",
    "full-disk-node",
    "twin-edge",
    *DAMAGE,
)
OF_THREE: Final = ("kill-leader", "wipe-node", "cut-node", "vanish-node", "one-way-node")
"""What only a cluster survives, or has."""
LOSES_DISK: Final = ("wipe-node", "full-disk-node")
"""After which a node's copy of the log is gone."""
NEEDS_DISKS: Final = ("full-disk-edge", "full-disk-node")
IN_PLAINTEXT: Final = (*ON_MESSAGES,)
"""What a proxy can do only where it can read."""


@dataclass(frozen=True)
class Fault:
    """Something goes wrong, and is put right again."""

    at: float
    """Seconds after users begin to come."""
    kind: str
    target: str
    """Of two, `e1|n2`; `*` is all of a kind."""
    lasts: float
    """Seconds until it is put right."""
    amount: float = 0.0
    """A probability, seconds, a part of a file: what the kind makes of it."""


@dataclass(frozen=True)
class Planned:
    """A task, and the truth about its arms."""

    name: str
    protocol: str
    means: dict[str, float]
    epsilon: float
    delta: float
    fallback: str | None = None
    window: float = 1.0
    """For rewards, in seconds."""

    def task(self, players: Sequence[str]) -> Task:
        more: dict[str, Any] = {"instances": 2} if self.protocol == "edme" else {}
        if self.protocol == "dme":
            more = {"active_players": 2}
        return Task(
            name=self.name,
            protocol=self.protocol,
            arms=list(self.means),
            players=list(players),
            epsilon=self.epsilon,
            delta=self.delta,
            fallback=self.fallback,
            reward_window=self.window,
            **more,
        )

    @property
    def best(self) -> str:
        return max(self.means, key=lambda arm: self.means[arm])


@dataclass(frozen=True)
class Schedule:
    """One run."""

    seed: int
    nodes: int
    edges: tuple[str, ...]
    servers: tuple[str, ...]
    tasks: tuple[Planned, ...]
    faults: tuple[Fault, ...] = ()
    secured: bool = False
    """With credentials and TLS."""
    spaces: bool = False
    """Engine nodes in network namespaces of their own, parted by packet filters."""
    operations: tuple[Operation, ...] = ()
    later: tuple[Planned, ...] = ()
    """Tasks that operators create when all runs already."""
    planted: dict[str, str] = field(default_factory=dict)
    """Test-only modules that change how a process behaves, by its name; not of any seed."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def planned(self, name: str) -> Planned:
        """A task of this name, there from the beginning or created later."""
        return next(each for each in (*self.tasks, *self.later) if each.name == name)

    @property
    def undecided(self) -> set[str]:
        """Names of tasks that no winner need be awaited of: none is to be, or operators put an end to them."""
        ended = ("stop-task", "kill-task", "delete-task")
        return {PULSE, STANDING, *(each.target for each in self.operations if each.kind in ended)}

    @property
    def damaged(self) -> set[str]:
        """Edges whose store is damaged, lost or doubled: a life of theirs may have no store at the end."""
        return {each.target for each in self.faults if each.kind in (*DAMAGE, "twin-edge")}


def make_schedule(seed: int, *, disks: bool = True, namespaces: bool = True) -> Schedule:
    """The schedule of a seed; what needs small disks or network namespaces is left out where there are none."""
    rng = random.Random(f"schedule {seed}")
    if seed % RECOVERY == 0:
        return _recovery(seed, rng)
    nodes = rng.choice((1, 1, 1, 3, 3))
    secured = rng.random() < 0.25
    spaces = nodes == 3 and not secured and rng.random() < 0.35
    edges = tuple(f"e{number}" for number in range(1, rng.randint(3, 5) + 1))
    servers = ("s1", "s2")
    possible = [
        kind
        for kind in KINDS
        if (nodes == 3 or kind not in OF_THREE)
        and not (secured and kind in IN_PLAINTEXT)
        and not (secured and kind == "full-disk-node")
        and (disks or kind not in NEEDS_DISKS)
    ]
    chosen = [rng.choice(possible) for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))]
    faults = _without_impossible([_fault(kind, rng, nodes, edges, servers) for kind in chosen], nodes)
    schedule = Schedule(seed, nodes, edges, servers, _tasks(rng), faults, secured, spaces and namespaces)
    return _with_operations(schedule)


def _with_operations(schedule: Schedule) -> Schedule:
    """Operators touch any task but the pulse."""
    rng = random.Random(f"operated {schedule.seed}")
    arms = ("red", "green", "blue")
    standing = Planned(STANDING, "tally", dict.fromkeys(arms, 0.5), 0.0, 1e-9)
    tasks = [replace(each, fallback=rng.choice((None, *each.means))) for each in (*schedule.tasks[1:], standing)]
    operations = make_operations(
        schedule.seed,
        tasks=[each.name for each in tasks],
        edges=schedule.edges,
        servers=schedule.servers,
        secured=schedule.secured,
    )
    if not operations:
        return schedule
    late = Planned(NEW, "tally", dict(zip(rng.sample(arms, 3), (0.8, 0.3, 0.2), strict=True)), 0.0, 0.1)
    later = (late,) if any(each.target == NEW for each in operations) else ()
    return replace(schedule, tasks=(schedule.tasks[0], *tasks), operations=operations, later=later)


def _recovery(seed: int, rng: random.Random) -> Schedule:
    kind = ("kill-leader", "kill-node", "vanish-node", "kill-server", "kill-edge")[seed // RECOVERY % 5]
    edges, servers = ("e1", "e2", "e3"), ("s1", "s2")
    node = rng.choice(("n1", "n2", "n3"))
    target = {"kill-node": node, "vanish-node": node, "kill-server": "s*", "kill-edge": "e2"}.get(kind, "")
    lasts = AWAY if kind in OF_NODES else rng.uniform(0.1, 1.0)
    fault = Fault(round(rng.uniform(0.5, 1.5), 3), kind, target, round(lasts, 3))
    return Schedule(seed, 3, edges, servers, _tasks(rng), (fault,))


def _tasks(rng: random.Random) -> tuple[Planned, ...]:
    """The pulse, and one or two that are to be decided."""
    found = [Planned(PULSE, "tally", {"red": 0.5, "green": 0.5, "blue": 0.5}, 0.0, 1e-9)]
    arms = ["red", "green", "blue"]
    kinds = rng.choice((("tally",), ("tally",), ("tally", "tally"), ("tally", "dme"), ("dme",), ("edme",)))
    for number, protocol in enumerate(kinds):
        rng.shuffle(arms)
        if protocol == "tally":
            means = dict(zip(arms, rng.choice(((0.7, 0.45, 0.4), (0.8, 0.3, 0.2), (0.5, 0.3, 0.1))), strict=True))
            found.append(Planned(f"shop-{number}", protocol, means, 0.0, 0.1))
        else:
            found.append(Planned(f"shop-{number}", protocol, {arms[0]: 0.9, arms[1]: 0.1}, 0.95, 0.3))
    return tuple(found)


def _fault(kind: str, rng: random.Random, nodes: int, edges: Sequence[str], servers: Sequence[str]) -> Fault:
    names = [f"n{number}" for number in range(1, nodes + 1)]
    at, lasts, amount = rng.uniform(0.2, LENGTH), rng.uniform(0.1, 1.5), rng.random()
    target = {
        "edge": rng.choice(edges),
        "server": rng.choice((*servers, "s*")),
        "node": rng.choice(names),
        "one": f"{rng.choice((*edges, *servers))}|{rng.choice((*names, 'n*'))}",
        "many": rng.choice((f"{rng.choice((*edges, *servers))}|n*", "e*|n*", "s*|n*", "*|n*")),
    }
    if kind == "kill-leader":
        chosen = ""
    elif kind == "kill-together":
        chosen = f"{target['edge']}|{target['server']}|{target['node']}"
    elif kind in ("cut-edge", "cut-server"):
        chosen = f"{target[kind.partition('-')[2]]}|{rng.choice((*names, 'n*'))}"
    elif kind in ("cut-node", "vanish-node", "one-way-node"):
        chosen = target["node"]
    elif kind in ("one-way-up", "one-way-down"):
        chosen = target["one"]
    elif kind == "delay" or kind in ON_MESSAGES:
        chosen = target["many"]
    elif kind.endswith(("-edge", "-store")):
        chosen = target["edge"]
    else:
        chosen = target[kind.rpartition("-")[2]]
    if kind in ("cut-node", "vanish-node", "one-way-node"):
        lasts = rng.choice((rng.uniform(0.5, 3.0), rng.uniform(6.0, 9.0)))  # too short for another leader, and not
    return Fault(round(at, 3), kind, chosen, round(lasts, 3), round(amount, 3))


def _without_impossible(faults: list[Fault], nodes: int) -> tuple[Fault, ...]:
    """A node that lost its disk must have copied the log before another is troubled: more no cluster of three can
    survive. One whose disk was full has lost it: NATS throws its copy away. And an edge that has trouble with its store
    is not killed besides: who starts it again would not know."""
    kept: list[Fault] = []
    for fault in sorted(faults, key=lambda each: (each.at, each.kind)):
        if nodes == 3 and any(
            _of_nodes(each) and {each.kind, fault.kind} & set(LOSES_DISK) for each in kept if _of_nodes(fault)
        ):
            continue
        stores = (*DAMAGE, "twin-edge", "full-disk-edge")
        if any(_edge_of(each) == _edge_of(fault) != "" and {each.kind, fault.kind} & set(stores) for each in kept):
            continue
        if fault.kind == "full-disk-node" and any(each.kind == fault.kind for each in kept):
            continue
        kept.append(fault)
    return tuple(kept)


def _of_nodes(fault: Fault) -> bool:
    return fault.kind.endswith(("-node", "-leader", "-together"))


def _edge_of(fault: Fault) -> str:
    """The edge that is ended, if one is."""
    return fault.target.partition("|")[0] if fault.kind.endswith(("-edge", "-store", "-together")) else ""
