"""A Tally fleet whose outcomes are reported at different speed, or never, with a reward window.

It runs the core's own objects on a clock of its own: events at the sites, rewards, windows that pass, and messages.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass

from outvote.core import protocols
from outvote.core.decisions import Ticket
from outvote.core.task import Task

WINDOW = 10.0
"""Seconds within which a reward counts."""
PACE = 50
"""Milliseconds between two events of the fleet."""


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
    rng, own = random.Random(seed), random.Random(f"players {seed}")
    fleet = [protocols.player(task, player, rng=own) for player in range(players)]
    server = protocols.server(task)
    reports: list[tuple[int, int, int, Ticket, bool]] = []
    for event in range(horizon):
        now = event * PACE
        while reports and reports[0][0] <= now:
            due, _, site, ticket, success = heapq.heappop(reports)
            fleet[site].reward(ticket, float(success), due)
        for site, player in enumerate(fleet):
            for message in player.tick(now):
                for elimination in server.receive(site, message, now):
                    for each in fleet:
                        each.receive(elimination)
        if server.finished:
            return tuple(server.remaining), event
        site = rng.randrange(players)
        ticket = fleet[site].decide(now)
        success, part = rng.random() < case.means[ticket.arm], rng.random()
        parts = case.reporting[ticket.arm].success if success else case.reporting[ticket.arm].failure
        if parts is not None:
            first, last = parts
            due = now + round(1000 * WINDOW * (first + (last - first) * part))
            heapq.heappush(reports, (due, event, site, ticket, success))
    return tuple(server.remaining), horizon
