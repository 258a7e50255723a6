"""How many draws and bits a task needs, simulated; what all protocols share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

from outvote.core.task import Task
from outvote.planner.question import Question
from outvote.simulation.environments import Environment
from outvote.simulation.results import Result
from outvote.simulation.settings import Settings

FEWEST_TRIALS = 20


@dataclass(frozen=True)
class Estimate:
    """What a task needs: means over trials, and the 5 % and 95 % quantiles of the draws."""

    draws: float
    low: float
    high: float
    bits_up: float
    bits_down: float
    wrong: int
    """Trials in which no arm remained that is an ε-approximation of the best."""
    trials: int
    how: str

    @classmethod
    def never(cls, why: str) -> Self:
        """Of a task that does not end, or not soon enough to tell when."""
        return cls(math.inf, math.inf, math.inf, math.inf, math.inf, 0, 0, why)

    @property
    def ends(self) -> bool:
        return self.draws < math.inf


def altered(task: Task, **fields: Any) -> Task:
    """The same task but for some fields, which have the types of its record."""
    return Task.from_json(task.to_json() | fields)


def settings(
    question: Question, task: Task, *, horizon: float, trials: int, means: tuple[float, ...] | None = None
) -> Settings:
    """The simulation of a task in the world of a question, or in one of other means.

    Its reward window and code are left out: they change no draw, and kernels know neither.
    """
    return Settings(
        protocol=task.protocol,
        task=altered(task, reward_window=0.0, code=task.entry.codes[0], code_weights=[]),
        environment=Environment(means or question.means),
        activity=question.activity,
        active_players=task.active_players,
        horizon=math.ceil(horizon),
        trials=trials,
        seed=question.seed,
        grid=1,
    )


def estimate(result: Result, how: str) -> Estimate:
    """What a simulation says; `how` is how it was made."""
    if result.finished.share < 0.5:
        share = f"{result.finished.share:.0%} of {result.trials} simulated fleets"
        return Estimate.never(f"it takes too long: {share} had ended after {result.horizon:,} events")
    ended = sorted(draw if draw is not None else result.horizon for draw in result.per_trial.finished)
    last = len(ended) - 1
    if result.finished.share < 1:
        how += f"; {1 - result.finished.share:.1%} of them had not ended at {result.horizon:,} events"
    return Estimate(
        draws=sum(ended) / len(ended),
        low=float(ended[round(0.05 * last)]),
        high=float(ended[round(0.95 * last)]),
        bits_up=result.bits.up,
        bits_down=result.bits.down,
        wrong=round((1 - result.safe) * result.trials),
        trials=result.trials,
        how=how,
    )
