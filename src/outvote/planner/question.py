"""What an experimenter asks, checked: how many variants and sites, who is active, what difference matters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NoReturn

from outvote.core.errors import InvalidSettings, one_of
from outvote.core.task import LARGEST_TALLY, LEAST_BUDGET, MOST_BUDGET, MOST_EPSILON
from outvote.simulation.activity import Weighted, eighty_twenty, uniform, weighted

DEFAULT_DIFFERENCE: Final = 0.1
LEAST_DIFFERENCE: Final = 1e-6
LEAST_BEST: Final = 1e-5
"""Mean of the best variant: rarer successes take longer to simulate than anybody waits for a plan."""
LEAST_DELTA: Final = 1e-12
MOST_DELTA: Final = 0.999999
LARGEST_WORLD: Final = 10_000
"""Variants or sites: beyond that a plan takes longer than a look at it is worth."""
LAWS: Final = {"uniform": uniform, "80-20": eighty_twenty}


@dataclass(frozen=True)
class Question:
    """One plan. The world it is made for: one best variant, all others worse by the difference; or the means given."""

    variants: int
    sites: int
    epsilon: float | None
    delta: float
    active_sites: float
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
    def difference(self) -> float:
        """Between the best variant and the next."""
        best, second = sorted(self.means, reverse=True)[:2]
        return best - second

    def to_json(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"activity": self.activity.name}


def ask(
    *,
    variants: float | None = None,
    sites: float = 8,
    epsilon: float | None = None,
    delta: float = 0.05,
    active_sites: float | None = None,
    activity: str | Sequence[float] = "uniform",
    means: Sequence[float] | None = None,
    baseline: float | None = None,
    difference: float | None = None,
    traffic: float | None = None,
    floor: float | None = None,
    privacy_budget: float | None = None,
    seed: float = 0,
    tolerate: float = 0,
) -> Question:
    """Check everything and put it together; whatever cannot be planned is refused with an `InvalidSettings`."""
    if means is not None and variants is not None and variants != len(means):
        _refuse("means", f"must be one number for each of the {variants} variants, got {len(means)}", "conflict")
    if variants is None:
        variants = 2 if means is None else len(means)
    variants = _whole("variants", variants, 2, LARGEST_WORLD)
    sites = _whole("sites", sites, 1, LARGEST_WORLD)
    if epsilon is not None:
        _number("epsilon", epsilon, LEAST_DIFFERENCE, MOST_EPSILON, "; leave it out to look for the very best variant")
    _number("delta", delta, LEAST_DELTA, MOST_DELTA)
    law = _activity(activity, sites)
    if active_sites is None:
        active_sites = law.active_players
    elif not 0 < active_sites <= sites:
        _refuse("active_sites", f"must be a number above 0 and at most the {sites} sites, got {active_sites!r}")
    if traffic is not None and not 0 < traffic < math.inf:
        _refuse("traffic", f"must be a number of events a day above 0, got {traffic!r}")
    if privacy_budget is not None:
        _number("privacy_budget", privacy_budget, LEAST_BUDGET, MOST_BUDGET)
    return Question(
        variants=variants,
        sites=sites,
        epsilon=epsilon,
        delta=delta,
        active_sites=float(active_sites),
        activity=law,
        means=_means(variants, epsilon, means, baseline, difference),
        traffic=traffic,
        floor=None if floor is None else _whole("floor", floor, 2, LARGEST_TALLY),
        privacy_budget=privacy_budget,
        seed=_whole("seed", seed, 0, 2**53),
        tolerate=_whole("tolerate", tolerate, 0, (sites - 1) // 2, ": fewer than half of the sites may lie"),
    )


def _means(
    variants: int,
    epsilon: float | None,
    means: Sequence[float] | None,
    baseline: float | None,
    difference: float | None,
) -> tuple[float, ...]:
    if means is not None:
        if baseline is not None or difference is not None:
            _refuse("means", "say it all: leave out baseline and difference", "conflict")
        for mean in means:
            _number("means", mean, 0, 1)
        best, second = sorted(means, reverse=True)[:2]
        if best - second < LEAST_DIFFERENCE * (1 - 1e-9):
            _refuse("means", f"must have a best by at least {LEAST_DIFFERENCE:g}, got {best!r} and {second!r}")
        _number("means", best, LEAST_BEST, 1, ", of the best variant")
        return tuple(float(mean) for mean in means)
    if difference is None:
        difference = DEFAULT_DIFFERENCE if epsilon is None else epsilon
    _number("difference", difference, LEAST_DIFFERENCE, 1)
    if baseline is None:
        baseline = (1 - difference) / 2
    most = round(1 - difference, 12)  # 1 − .07 is less than .93, as floating-point numbers go
    _number("baseline", baseline, 0, most, f": the best variant is better by the difference, {difference:g}")
    if baseline + difference < LEAST_BEST:
        _refuse("difference", f"must be at least {LEAST_BEST:g} if the baseline is {baseline:g}, got {difference!r}")
    return (min(baseline + difference, 1.0), *(baseline,) * (variants - 1))


def _activity(activity: str | Sequence[float], sites: int) -> Weighted:
    if isinstance(activity, str):
        if activity not in LAWS:
            _refuse("activity", f"must be {one_of(LAWS)}, or weights like 3,1,1, got {activity!r}", "choice")
        return LAWS[activity](sites)
    if len(activity) != sites:
        _refuse("activity", f"must have one weight for each of the {sites} sites, got {len(activity)}", "conflict")
    if not min(activity) >= 0 or not 0 < sum(activity) < math.inf:
        _refuse("activity", f"must be weights of at least 0, not all 0, got {list(activity)!r}")
    return weighted(activity)


def _number(field: str, value: float, least: float, most: float, why: str = "") -> None:
    if not least <= value <= most:
        _refuse(field, f"must be a number from {least:g} to {most:g}, got {value!r}{why}")


def _whole(field: str, value: float, least: int, most: int, why: str = "") -> int:
    if isinstance(value, bool) or value != value // 1 or not least <= value <= most:
        _refuse(field, f"must be a whole number from {least} to {most:,}, got {value!r}{why}")
    return int(value)


def _refuse(field: str, problem: str, code: str = "range") -> NoReturn:
    raise InvalidSettings(problem, field=field, code=code)
