"""What the demo's fleet looks for: variants, their true rates, and tasks that end within a minute."""

from __future__ import annotations

import random
from dataclasses import dataclass

from outvote.core.errors import InvalidTask
from outvote.core.task import Task
from outvote.theory import identification_bound, pulls_per_player

NAMES = ("classic", "bold", "green", "minimal", "seasonal")
RATES = {"tally": (0.62, 0.48, 0.1), "dme": (0.8, 0.55, 0.1), "edme": (0.8, 0.55, 0.1)}
"""True success rates of the best, the second and the worst variant; the others lie between the last two."""
DELTA = 0.05
EPSILON = {"tally": 0.0, "dme": 0.95, "edme": 0.95}
"""The paper's schedule goes with 1/ε²: at .95 with 4 arms a site needs some 2,000 events, at .5 with 10 arms 60,000."""
ARMS = {"tally": 5, "dme": 4, "edme": 4}
INSTANCES = 4
RATE = {"tally": 120, "dme": 3000, "edme": 3000}
"""Events in a second, over the fleet: Tally needs a thousand, votes need ten thousand."""
TASK = "demo"
MOST_ARMS, MOST_EDGES = 50, 200


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
        if self.task.protocol == "tally":
            return int(8 * identification_bound(self.means, DELTA) + 4 * self.rate)  # some pass while news travels
        return self.task.players * min(pulls_per_player(schedule) for schedule in self.task.schedules())


def choose(*, protocol: str, edges: int, arms: int | None, rate: float | None, seed: int) -> Setting:
    """A setting, or an error that says what can be asked for."""
    for what, value, least, most in (("--edges", edges, 1, MOST_EDGES), ("--arms", arms, 2, MOST_ARMS)):
        if value is not None and (not isinstance(value, int) or not least <= value <= most):
            raise InvalidTask(f"{what} must be a whole number from {least} to {most}, got {value!r}")
    if rate is not None and not 1 <= rate <= 100_000:
        raise InvalidTask(f"--rate must be a number from 1 to 100,000 events in a second, got {rate!r}")
    count = ARMS[protocol] if arms is None else arms
    best, second, worst = RATES[protocol]
    others = [second - (second - worst) * place / max(count - 2, 1) for place in range(count - 1)]
    means = [round(mean, 3) for mean in (best, *others)]
    random.Random(seed).shuffle(means)
    task = Task(
        name=TASK,
        protocol=protocol,
        arms=[*NAMES[:count], *(f"variant-{number}" for number in range(len(NAMES) + 1, count + 1))],
        players=[f"site-{number}" for number in range(1, edges + 1)],
        epsilon=EPSILON[protocol],
        delta=DELTA,
        instances=min(INSTANCES, edges) if protocol == "edme" else None,
    )
    return Setting(task, tuple(means), float(RATE[protocol] if rate is None else rate), seed)
