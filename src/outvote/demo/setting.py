"""What the demo's fleet looks for: variants, their true rates, and tasks that end within a minute."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from outvote.core.errors import InvalidConfiguration
from outvote.core.task import Task
from outvote.log.records import check_window
from outvote.presenters.lookup import presenter
from outvote.presenters.presenter import Scenario
from outvote.theory import identification_bound, pulls_per_player

NAMES = ("classic", "bold", "green", "minimal", "seasonal")
TASK = "demo"
MOST_VARIANTS, MOST_SITES = 50, 200


@dataclass(frozen=True)
class Setting:
    """One run of the demo, as its operator knows it; of the means nobody else does."""

    task: Task
    means: tuple[float, ...]
    rate: float
    seed: int

    @property
    def best(self) -> str:
        return self.task.arms[self.means.index(max(self.means))]

    @property
    def events(self) -> int:
        """About how many events it takes, generously."""
        schedules = self.task.schedules()
        if schedules:
            return self.task.players * min(pulls_per_player(schedule) for schedule in schedules)
        bound = identification_bound(self.means, self.task.delta)
        return int(8 * bound + (4 + self.task.reward_window) * self.rate)  # some pass while news travels


def choose(
    *, protocol: str, sites: int, variants: int | None, rate: float | None, seed: int, reward_window: float
) -> Setting:
    """A setting, or an error that says what can be asked for."""
    for field, value, least, most in (("sites", sites, 1, MOST_SITES), ("variants", variants, 2, MOST_VARIANTS)):
        check_count(field, value, least, most)
    if rate is not None and not 1 <= rate <= 100_000:
        problem = f"must be a number from 1 to 100,000 events in a second, got {rate!r}"
        raise InvalidConfiguration(problem, field="rate", code="range")
    scenario = presenter(protocol).demo
    count = scenario.variants if variants is None else variants
    names = [*NAMES[:count], *(f"variant-{number}" for number in range(len(NAMES) + 1, count + 1))]
    return make(scenario, protocol, names, sites, rate=rate, seed=seed, reward_window=reward_window)


def check_count(field: str, value: object, least: int, most: int) -> None:
    if value is not None and (not isinstance(value, int) or not least <= value <= most):
        problem = f"must be a whole number from {least} to {most}, got {value!r}"
        raise InvalidConfiguration(problem, field=field, code="range")


def make(
    scenario: Scenario,
    protocol: str,
    names: Sequence[str],
    sites: int,
    *,
    rate: float | None,
    seed: int,
    **options: Any,
) -> Setting:
    """A setting of this scenario: the means are shuffled, those between the second and the worst evenly spread."""
    check_window(options.get("reward_window"))
    best, second, worst = scenario.rates
    others = [second - (second - worst) * place / max(len(names) - 2, 1) for place in range(len(names) - 1)]
    means = [round(mean, 3) for mean in (best, *others)]
    random.Random(seed).shuffle(means)
    task = Task(
        name=TASK,
        protocol=protocol,
        arms=names,
        players=[f"site-{number}" for number in range(1, sites + 1)],
        epsilon=scenario.epsilon,
        delta=scenario.delta,
        **{**presenter(protocol).task_options(sites), **options},
    )
    return Setting(task, tuple(means), float(scenario.pace if rate is None else rate), seed)
