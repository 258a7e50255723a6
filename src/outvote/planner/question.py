"""What an experimenter asks, checked: how many variants and sites, who is active, what difference matters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from outvote.core.errors import InvalidTask
from outvote.core.task import Task
from outvote.simulation.activity import Weighted, read_activity

DEFAULT_DIFFERENCE = 0.1
LEAST_DIFFERENCE = 1e-6
LEAST_DELTA = 1e-12
LARGEST_WORLD = 10_000
"""Arms or sites: beyond that a plan takes longer than a look at it is worth."""


@dataclass(frozen=True)
class Question:
    """One plan. The world it is made for: one best arm, all others worse by the difference, or the means given."""

    arms: int
    players: int
    epsilon: float | None
    delta: float
    active_players: float
    activity: Weighted
    means: tuple[float, ...]
    traffic: float | None
    """Events a day in the whole fleet."""
    floor: int | None
    privacy_budget: float | None
    seed: int
    tolerate: int = 0
    """Sites that may lie."""

    @property
    def vote_epsilon(self) -> float:
        """ε of the protocols that vote: without one, the difference that matters."""
        return min(self.difference, 0.99) if self.epsilon is None else self.epsilon

    @property
    def difference(self) -> float:
        """Between the best arm and the next."""
        best, second = sorted(self.means, reverse=True)[:2]
        return best - second

    def to_json(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"activity": self.activity.name}


def ask(
    *,
    arms: float | None = None,
    players: float = 8,
    epsilon: float | None = None,
    delta: float = 0.05,
    active_players: float | None = None,
    activity: str | Sequence[float] = "uniform",
    means: Sequence[float] | None = None,
    baseline: float | None = None,
    difference: float | None = None,
    traffic: float | Sequence[float] | None = None,
    floor: float | None = None,
    privacy_budget: float | None = None,
    seed: float = 0,
    tolerate: float = 0,
) -> Question:
    """Check everything and put it together; what cannot be is refused with an `InvalidTask`."""
    if means is not None and arms is not None and arms != len(means):
        raise InvalidTask(f"means must be one for each of the {arms} arms, got {len(means)}")
    count = _whole("arms", len(means) if means is not None else 2 if arms is None else arms, 2, LARGEST_WORLD)
    sites = _whole("players", players, 1, LARGEST_WORLD)
    if epsilon is not None and not 0 < epsilon < 1:
        raise InvalidTask(
            f"epsilon must be a number above 0 and below 1, got {epsilon!r}; leave it out to look for the very best "
            "arm, and say with --difference what matters"
        )
    if epsilon is not None and epsilon < LEAST_DIFFERENCE:
        raise InvalidTask(f"epsilon must be at least {LEAST_DIFFERENCE:g} in a plan, got {epsilon!r}")
    if isinstance(delta, int | float) and 0 < delta < LEAST_DELTA:
        raise InvalidTask(f"delta must be at least {LEAST_DELTA:g} in a plan, got {delta!r}: nobody waits for more")
    world = _means(count, epsilon, means, baseline, difference)
    best, second = sorted(world, reverse=True)[:2]
    if best - second < LEAST_DIFFERENCE * (1 - 1e-9):
        raise InvalidTask(
            f"the best arm must be better by at least {LEAST_DIFFERENCE:g} in a plan, got {best - second:g}: to see "
            "less takes more events than there are"
        )
    total = _traffic(traffic, sites)
    law = _activity(activity, traffic, sites)
    active = float(law.active_players if active_players is None else active_players)
    question = Question(
        arms=count,
        players=sites,
        epsilon=epsilon,
        delta=delta,
        active_players=active,
        activity=law,
        means=world,
        traffic=total,
        floor=None if floor is None else _whole("floor", floor, 2, 127),
        privacy_budget=privacy_budget,
        seed=_whole("seed", seed, 0, 2**53),
        tolerate=_whole("tolerate", tolerate, 0, (sites - 1) // 2),
    )
    # The tasks themselves refuse the rest: δ, N_γ, the budget. Votes that tolerate too few liars are left out of plans.
    Task(arms=count, players=sites, epsilon=question.vote_epsilon, delta=delta, active_players=active, protocol="dme")
    Task(arms=count, players=sites, epsilon=0, delta=delta, protocol="tally", privacy_budget=privacy_budget)
    return question


def _means(
    arms: int,
    epsilon: float | None,
    means: Sequence[float] | None,
    baseline: float | None,
    difference: float | None,
) -> tuple[float, ...]:
    if means is not None:
        if baseline is not None or difference is not None:
            raise InvalidTask("means say it all: leave out --baseline and --difference")
        for mean in means:
            if not 0 <= mean <= 1:
                raise InvalidTask(f"a mean must be a number from 0 to 1, got {mean!r}")
        best, second = sorted(means, reverse=True)[:2]
        if best == second:
            raise InvalidTask(
                f"two arms are best, with a mean of {best!r}: nobody can tell which one; make one better, or ask for "
                "the difference that matters"
            )
        return tuple(float(mean) for mean in means)
    if difference is None:
        difference = DEFAULT_DIFFERENCE if epsilon is None else epsilon
    if not 0 < difference < 1:
        raise InvalidTask(f"difference must be a number above 0 and below 1, got {difference!r}")
    if baseline is None:
        baseline = (1 - difference) / 2
    if not 0 <= baseline <= 1 - difference:
        raise InvalidTask(
            f"baseline must be a number from 0 to 1 − difference = {1 - difference:g}, got {baseline!r}: the best arm "
            "has baseline + difference"
        )
    return (baseline + difference, *(baseline,) * (arms - 1))


def _activity(activity: str | Sequence[float], traffic: float | Sequence[float] | None, players: int) -> Weighted:
    if isinstance(traffic, Sequence):
        if activity != "uniform":
            raise InvalidTask("traffic for each site says who is active: leave out --activity")
        activity = list(traffic)
    elif isinstance(activity, str) and activity not in ("uniform", "80-20") and "," not in activity:
        raise InvalidTask(f"activity must be 'uniform', '80-20' or weights like 3,1,1 in a plan, got {activity!r}")
    law = read_activity(activity, players)
    assert isinstance(law, Weighted)  # a trace is refused above
    return law


def _traffic(traffic: float | Sequence[float] | None, players: int) -> float | None:
    if traffic is None:
        return None
    total = math.fsum(traffic) if isinstance(traffic, Sequence) else float(traffic)
    if isinstance(traffic, Sequence) and len(traffic) != players:
        raise InvalidTask(f"traffic must be one number, or one for each of the {players} players, got {len(traffic)}")
    if not 0 < total < math.inf:
        raise InvalidTask(f"traffic must be a number of events a day above 0, got {total:g}")
    return total


def _whole(field: str, value: float, least: int, most: int) -> int:
    if isinstance(value, bool) or value != value // 1 or not least <= value <= most:
        raise InvalidTask(f"{field} must be a whole number from {least} to {most:,}, got {value!r}")
    return int(value)
