"""A log as a fleet would have written it: real Tally players of many sites, and what they send, coded.

All arms are equally good, so nothing is ever eliminated and every tally has to be weighed: the most work for a server.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from outvote.core import protocols
from outvote.core.task import Task
from outvote.log.records import Coder, DownSubject, UpSubject, task_record

TASKS = 4
EDGES = 250
ARMS = 10
WINDOW = 1.0
"""For rewards, in seconds."""
PACE = 3_000
"""Milliseconds between two events of a site: by the next one all earlier ones are counted."""

Record = tuple[str, bytes]


def fleet_log() -> Iterator[Record]:
    """Without end: the tasks, then messages; all sites go on at the same pace."""
    names = [f"edge-{number}" for number in range(EDGES)]
    lives = [f"{random.Random(number).getrandbits(64):016x}" for number in range(EDGES)]
    described = [
        Task(
            arms=ARMS, players=names, epsilon=0, delta=0.05, protocol="tally", reward_window=WINDOW,
            name=f"task-{number}",
        )
        for number in range(TASKS)
    ]  # fmt: skip
    ids = [f"{task.name}-{number:08x}" for number, task in enumerate(described)]
    for task_id, task in zip(ids, described, strict=True):
        yield str(DownSubject(task_id, "task")), task_record(task)
    coders = [Coder(task) for task in described]
    rng = random.Random(0)
    players = [[protocols.player(task, name, rng=rng) for task in described] for name in names]
    now = 10**12
    while True:
        for name, life, mine in zip(names, lives, players, strict=True):
            for task_id, coder, player in zip(ids, coders, mine, strict=True):
                now, sequence, payload = next_message(player, coder, rng, now)
                yield str(UpSubject(name, task_id, life, sequence)), payload


def next_message(player: protocols.Player, coder: Coder, rng: random.Random, now: int) -> tuple[int, int, bytes]:
    """Events until a tally is counted, and the time then."""
    while True:
        now += PACE
        player.reward(player.decide(now), float(rng.random() < 0.5), now)
        for message in player.tick(now):
            return now, message.sequence, coder.up(message)
