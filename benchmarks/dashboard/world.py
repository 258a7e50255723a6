"""A server with much to show: a hundred tasks of all protocols and states, a thousand edges, and real messages of them.

Every message is what a player of the core sent, coded; only the edges' processes are left out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.network.records import Record
from outvote.core import protocols
from outvote.core.task import Task
from outvote.log.records import Coder, DownSubject, UpSubject, task_record

TASKS, EDGES = 100, 1_000
SITES = 40
"""Edges that send messages of one task."""
BUSY = 20
"""Tasks that get a message every second while pages are watched."""
EVENTS = 60
"""Of each site and task before that."""
WINDOW = 1.0
"""For rewards, in seconds: the next event of a site comes so much later that all earlier ones are counted."""
PACE = 3_000
"""Milliseconds between two events of a task, whichever site has them."""
KINDS = ("tally",) * 14 + ("dme",) * 4 + ("edme",) * 2
"""What every twenty tasks are."""


def edge_name(number: int) -> str:
    return f"edge-{number:04}"


@dataclass
class Told:
    """One task, and the players that send messages of it."""

    task: Task
    task_id: str
    means: list[float]
    players: dict[str, protocols.Player]
    rng: random.Random
    coder: Coder = field(init=False)
    now: int = 10**12

    def __post_init__(self) -> None:
        self.coder = Coder(self.task)

    def events(self, site: str, count: int) -> Iterator[Record]:
        """So many at one site: what it sends of them."""
        player = self.players[site]
        for _ in range(count):
            self.now += PACE
            ticket = player.decide(self.now)
            player.reward(ticket, float(self.rng.random() < self.means[ticket.arm]), self.now)
            for message in player.tick(self.now):
                where = UpSubject(site, self.task_id, "0123456789abcdef", message.sequence)
                yield str(where), self.coder.up(message)

    def next_message(self) -> Record:
        """Of any of its sites."""
        site = self.rng.choice(list(self.players))
        while True:
            for record in self.events(site, 1):
                return record


def tasks() -> list[Told]:
    """The first are the busy ones: of Tally, and never decided. Every seventh of the others is decided soon."""
    found = []
    for number in range(TASKS):
        rng = random.Random(number)
        protocol = "tally" if number < BUSY else KINDS[number % len(KINDS)]
        arms = 2 + number % 7
        soon = number >= BUSY and number % 7 == 0
        means = [0.5 + (0.45 if soon and not arm else 0.0) - (0.4 if soon and arm else 0.0) for arm in range(arms)]
        epsilon, delta = (0.0, 0.05) if protocol == "tally" else (0.95, 0.5)
        task = Task(
            arms=arms, players=EDGES, epsilon=epsilon, delta=delta, protocol=protocol, reward_window=WINDOW,
            name=f"task-{number:03}",
        )  # fmt: skip
        sites = [edge_name((number * SITES // 4 + each) % EDGES) for each in range(SITES)]
        players = {site: protocols.player(task, site, rng=rng) for site in sites}
        found.append(Told(task, f"{task.name}-{number:08x}", means, players, rng))
    return found


def records(told: list[Told]) -> Iterator[Record]:
    """The log: the tasks, what their sites sent, and for every ninth of those that are not busy that it was stopped."""
    for each in told:
        yield str(DownSubject(each.task_id, "task")), task_record(each.task)
    for each in told:
        for site in each.players:
            yield from each.events(site, EVENTS if each.task.protocol == "tally" else 20 * EVENTS)
    for each in told[BUSY::9]:
        yield str(DownSubject(each.task_id, "stop")), b"{}"
