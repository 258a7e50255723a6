"""What the audited fleet looks for: a task that ends within seconds.

One rule: it is a task as any other; all that differs from one in use is that its answer is easy.
"""

from __future__ import annotations

import random
from typing import Final

from outvote.core.errors import InvalidTask
from outvote.core.task import Task
from outvote.demo.setting import DELTA, TASK, Setting

ARMS: Final = ("classic", "bold", "green")
MEANS: Final = {"tally": (0.6, 0.2, 0.4), "dme": (0.9, 0.1, 0.5), "edme": (0.9, 0.1, 0.5)}
RATE: Final = {"tally": 200, "dme": 1500, "edme": 1500}
"""Events in a second, over the fleet."""
PRIVATE_RATE: Final = 600
"""The same with a privacy budget, where groups are larger."""
EPSILON: Final = {"tally": 0.0, "dme": 0.99, "edme": 0.99}
RISK: Final = {"tally": DELTA, "dme": 0.9, "edme": 0.9}
"""δ: what is audited is what the fleet says, not whether it is right; votes would take many more events."""
MOST_EDGES, MOST_EVENTS = 20, 100_000


def choose(
    *,
    protocol: str,
    edges: int,
    arms: int = len(ARMS),
    privacy_budget: float | None = None,
    reward_window: float | None = None,
    seed: int = 0,
) -> Setting:
    """A setting, or an error that says what can be asked for."""
    if not isinstance(edges, int) or not 2 <= edges <= MOST_EDGES:
        raise InvalidTask(f"--edges must be a whole number from 2 to {MOST_EDGES}, got {edges!r}")
    means = list(MEANS[protocol][:arms])
    random.Random(seed).shuffle(means)
    task = Task(
        name=TASK,
        protocol=protocol,
        arms=ARMS[:arms],
        players=[f"site-{number}" for number in range(1, edges + 1)],
        epsilon=EPSILON[protocol],
        delta=RISK[protocol],
        instances=2 if protocol == "edme" else None,
        privacy_budget=privacy_budget,
        reward_window=reward_window,
    )
    rate = RATE[protocol] if privacy_budget is None else PRIVATE_RATE
    return Setting(task, tuple(means), rate, seed)
