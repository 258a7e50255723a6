"""A Tally fleet whose outcomes are reported at different speed: successes soon, failures never, with a reward window.

It runs the core's own objects on a clock of its own: events at the sites, rewards, windows that pass, and messages.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence

from outvote.core import protocols
from outvote.core.task import Task

WINDOW = 10.0
"""Seconds within which a reward counts."""
PACE = 0.05
"""Seconds between two events of the fleet."""


def run(means: Sequence[float], *, players: int, delta: float, horizon: int, seed: int) -> tuple[int | None, int]:
    """One trial: the winner, if there is one within so many events, and the events it took."""
    task = Task(
        arms=len(means), players=players, epsilon=0, delta=delta, protocol="tally", reward_window=WINDOW, name="delayed"
    )
    rng = random.Random(seed)
    fleet = [protocols.player(task, player, rng=rng) for player in range(players)]
    server = protocols.server(task)
    agenda: list[tuple[float, int, str, int, int, int]] = []
    order = 0
    for event in range(horizon):
        now = event * PACE
        while agenda and agenda[0][0] <= now:
            _, _, what, site, arm, ticket = heapq.heappop(agenda)
            if what == "success":
                fleet[site].reward(arm, 1.0, ticket=ticket)
                continue
            for message in fleet[site].close(ticket):
                for elimination in server.receive(site, message):
                    for player in fleet:
                        player.receive(elimination)
            if server.finished:
                return server.winner, event
        site = rng.randrange(players)
        arm, ticket = fleet[site].decide()
        if rng.random() < means[arm]:
            order += 1
            heapq.heappush(agenda, (now + rng.random() * WINDOW * 0.9, order, "success", site, arm, ticket))
        for full in fleet[site].take_full():
            order += 1
            heapq.heappush(agenda, (now + WINDOW, order, "close", site, -1, full))
    return None, horizon
