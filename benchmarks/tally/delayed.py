"""A Tally fleet whose outcomes are reported at different speed, or never, with a reward window.

It runs the core's own objects on a clock of its own: events at the sites, rewards, windows that pass, and messages.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass

from outvote.core import protocols
from outvote.core.task import Task

WINDOW = 10.0
"""Seconds within which a reward counts."""
PACE = 0.05
"""Seconds between two events of the fleet."""


@dataclass(frozen=True)
class Reporting:
    """After which parts of the window an outcome is reported, evenly from the first to the second; None is never."""

    success: tuple[float, float] | None
    failure: tuple[float, float] | None


SOON, LATE = (0.0, 0.1), (0.8, 0.99)
SUCCESSES_ONLY = Reporting((0.0, 0.9), None)
SUCCESSES_SOON = Reporting(SOON, LATE)
SUCCESSES_LATE = Reporting(LATE, SOON)


@dataclass(frozen=True)
class Case:
    """What each arm is worth, and how its outcomes are reported; the first is best, or one of the best."""

    means: tuple[float, ...]
    reporting: tuple[Reporting, ...]


CASES = {
    "failures never reported, with a window": Case((0.4, 0.3, 0.3), (SUCCESSES_ONLY,) * 3),
    "two equal best, successes soon, failures late, with a window": Case((0.4, 0.4, 0.3), (SUCCESSES_SOON,) * 3),
    "two equal best, failures soon, successes late, with a window": Case((0.4, 0.4, 0.3), (SUCCESSES_LATE,) * 3),
    "two equal best, successes late of one, soon of the other, with a window": Case(
        (0.4, 0.4, 0.3), (SUCCESSES_LATE, SUCCESSES_SOON, SUCCESSES_SOON)
    ),
}


def run(case: Case, *, players: int, delta: float, horizon: int, seed: int) -> tuple[tuple[int, ...], int]:
    """One trial of so many events, or until one arm is left: the arms that are left, and the events it took.

    Equal seeds bring equal outcomes, however these are reported.
    """
    task = Task(
        arms=len(case.means), players=players, epsilon=0, delta=delta, protocol="tally", reward_window=WINDOW,
        name=f"delayed-{seed}",
    )  # fmt: skip
    rng = random.Random(seed)
    fleet = [protocols.player(task, player, rng=rng) for player in range(players)]
    server = protocols.server(task)
    agenda: list[tuple[float, int, str, int, int, int]] = []
    order = 0
    for event in range(horizon):
        now = event * PACE
        while agenda and agenda[0][0] <= now:
            _, _, what, site, arm, ticket = heapq.heappop(agenda)
            if what != "close":
                fleet[site].reward(arm, float(what == "success"), ticket=ticket)
                continue
            for message in fleet[site].close(ticket):
                for elimination in server.receive(site, message):
                    for player in fleet:
                        player.receive(elimination)
            if server.finished:
                return tuple(server.remaining), event
        site = rng.randrange(players)
        arm, ticket = fleet[site].decide()
        success = rng.random() < case.means[arm]
        parts = case.reporting[arm].success if success else case.reporting[arm].failure
        if parts is not None:
            order += 1
            due = now + WINDOW * rng.uniform(*parts)
            heapq.heappush(agenda, (due, order, "success" if success else "failure", site, arm, ticket))
        for full in fleet[site].take_full():
            order += 1
            heapq.heappush(agenda, (now + WINDOW, order, "close", site, -1, full))
    return tuple(server.remaining), horizon
