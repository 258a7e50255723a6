"""Results: what many trials came to, as an object, as JSON and as the numbers behind a plot.

The JSON of a `Result` is the same bytes for the same settings and seed, but for `seconds`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import outvote
from outvote.simulation.activity import Weighted
from outvote.simulation.environments import BetaLaw, Environment
from outvote.simulation.keys import name_of
from outvote.simulation.registry import BASELINES
from outvote.simulation.settings import Settings
from outvote.simulation.trials import Trial


@dataclass(frozen=True)
class Band:
    """A mean over trials with its 95 % confidence interval at each grid point (none with a single trial)."""

    mean: list[float]
    low: list[float | None]
    high: list[float | None]


@dataclass(frozen=True)
class Moment:
    """A draw that trials reach, or not: its mean over those that did, and their share."""

    mean: float | None
    share: float


@dataclass(frozen=True)
class ArmEliminated:
    """When an arm was eliminated, over the trials in which it was."""

    arm: int
    mean: float | None
    share: float


@dataclass(frozen=True)
class Bits:
    """Payload bits at the horizon, means over trials; `instance` is the part of `up` that Theorem 4 does not count."""

    up: float
    down: float
    total: float
    bound: int | None
    """None where nothing is known that bounds them."""
    instance: float
    with_arm: float
    """The total, had every tally named its arm; the same as `total` where arms are named anyway."""


@dataclass(frozen=True)
class Messages:
    """Messages at the horizon, means over trials; downward, one for each player that receives it."""

    up: float
    down: float


@dataclass(frozen=True)
class PerTrial:
    """One number for each trial; None where it was not reached."""

    regret: list[float]
    bits: list[int]
    first_elimination: list[int | None]
    finished: list[int | None]


@dataclass(frozen=True)
class Result:
    """What was simulated, and what it came to. The fields are the keys of its JSON, in order.

    >>> from outvote.simulation import Result, simulate
    >>> result = simulate(means=(0.9, 0.1), players=4, horizon=1_000, trials=2)
    >>> result.regret.mean[-1] == sum(result.per_trial.regret) / 2
    True
    >>> Result.from_json(result.to_json(per_trial=True)) == result
    True
    """

    protocol: str
    parameters: dict[str, Any]
    """Of the protocol's own."""
    environment: str
    """"means" where the keys up to `rewards` say all of it, else the name of a class or function."""
    means: list[Any] | None
    """One for each arm, or a row of them for each player; None where they are a function."""
    spread: float
    drift_to: list[float] | None
    site_spread: float
    visits: float | None
    """Decisions of a visitor, on average."""
    visitor_spread: float
    cycle: list[float] | None
    """Amplitude and period."""
    jumps: list[float] | None
    """Size and period."""
    swap: int | None
    rewards: str
    arms: list[str]
    players: int
    dead: int
    """Players that never wake."""
    drop: float
    """With this probability a site dies after a decision, and loses its open group."""
    per_day: float | None
    """Decisions a day of a site, on average."""
    activity: str
    active_players: float | None
    """N_γ, where the protocol takes one."""
    instances: list[float]
    epsilon: float
    delta: float
    quorum: str | None
    code: str | None
    floor: int | None
    privacy_budget: float | None
    horizon: int
    trials: int
    seed: int
    engine: str
    version: str
    """Of Outvote."""
    draws: list[int]
    regret: Band
    bits: Bits
    messages: Messages
    eliminations: list[ArmEliminated]
    first_elimination: Moment
    finished: Moment
    all_finished: Moment
    solved: Moment
    correct: float
    safe: float
    best: float
    lost: float
    """Share of trials in which every arm was eliminated that is best on average over the fleet. Of players on their
    own, by any of them."""
    undecided: float
    """Share of trials that did not finish."""
    held: float
    """Share of trials whose decision is held back at the horizon because the sites differ."""
    per_trial: PerTrial
    seconds: float
    tolerate: int = 0
    liars: int = 0
    lie: str | None = None

    def to_json(self, *, per_trial: bool = False) -> dict[str, Any]:
        """Plain JSON types."""
        record = asdict(self)
        if not per_trial:
            del record["per_trial"]
        return record

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Result:
        """The inverse of `to_json(per_trial=True)`."""
        parts: dict[str, Any] = {
            "regret": Band(**data["regret"]),
            "bits": Bits(**data["bits"]),
            "messages": Messages(**data["messages"]),
            "eliminations": [ArmEliminated(**each) for each in data["eliminations"]],
            "per_trial": PerTrial(**data["per_trial"]),
        }
        for name in ("first_elimination", "finished", "all_finished", "solved"):
            parts[name] = Moment(**data[name])
        return cls(**{**data, **parts})


def summarise(settings: Settings, trials: Sequence[Trial], seconds: float) -> Result:
    """Put the trials of one setting together."""
    task, environment, activity = settings.task, settings.environment, settings.activity
    takes, baseline = task.entry.takes, settings.protocol in BASELINES
    instances = list(task.instances) if "instances" in takes else []
    means = environment.means
    own = means if callable(means) else environment if type(environment) is not Environment else None
    bits = [trial.costs.up_bits + trial.costs.down_bits for trial in trials]
    return Result(
        protocol=settings.protocol,
        parameters=settings.parameters,
        environment="means" if own is None else name_of(own),
        means=None if callable(means) else [list(row) if isinstance(row, tuple) else row for row in means],
        spread=_tidy(environment.spread),
        drift_to=None if environment.drift_to is None else list(environment.drift_to),
        site_spread=_tidy(environment.site_spread),
        visits=None if settings.visits is None else _tidy(settings.visits),
        visitor_spread=_tidy(environment.visitor_spread),
        cycle=None if environment.cycle is None else list(environment.cycle),
        jumps=None if environment.jumps is None else list(environment.jumps),
        swap=environment.swap,
        rewards=str(environment.law) if isinstance(environment.law, BetaLaw) else name_of(environment.law),
        arms=list(task.arms),
        players=task.players,
        dead=activity.weights.count(0) if isinstance(activity, Weighted) else 0,
        drop=_tidy(settings.drop),
        per_day=None if settings.per_day is None else _tidy(settings.per_day),
        activity=activity.name,
        active_players=_tidy(settings.active_players) if {"active_players", "instances"} & takes else None,
        instances=[_tidy(value) for value in instances],
        epsilon=task.epsilon,
        delta=task.delta,
        quorum=None if baseline else task.quorum,
        code=None if baseline else task.code,
        floor=task.floor,
        privacy_budget=task.privacy_budget,
        horizon=settings.horizon,
        trials=settings.trials,
        seed=settings.seed,
        engine=settings.runs_on,
        version=outvote.__version__,
        draws=settings.grid_points(),
        regret=band([trial.regret for trial in trials]),
        bits=Bits(
            up=_mean([trial.costs.up_bits for trial in trials]),
            down=_mean([trial.costs.down_bits for trial in trials]),
            total=_mean(bits),
            bound=settings.bits_bound(),
            instance=_mean([trial.costs.instance_bits for trial in trials]),
            with_arm=_mean([each + trial.costs.implied_bits for each, trial in zip(bits, trials, strict=True)]),
        ),
        messages=Messages(
            up=_mean([trial.costs.up_messages for trial in trials]),
            down=_mean([trial.costs.down_messages for trial in trials]),
        ),
        eliminations=_eliminations(trials, len(task.arms)),
        first_elimination=moment([trial.first_elimination for trial in trials]),
        finished=moment([trial.finished for trial in trials]),
        all_finished=moment([trial.all_finished for trial in trials]),
        solved=moment([trial.solved for trial in trials]),
        correct=_mean([trial.correct for trial in trials]),
        safe=_mean([trial.safe for trial in trials]),
        best=_mean([trial.best for trial in trials]),
        lost=_mean([trial.lost for trial in trials]),
        undecided=_mean([trial.finished is None for trial in trials]),
        held=_mean([trial.held for trial in trials]),
        per_trial=PerTrial(
            regret=[trial.regret[-1] for trial in trials],
            bits=bits,
            first_elimination=[trial.first_elimination for trial in trials],
            finished=[trial.finished for trial in trials],
        ),
        seconds=seconds,
        tolerate=task.tolerate,
        liars=settings.liars,
        lie=settings.lie if settings.liars else None,
    )


def band(curves: Sequence[Sequence[float]]) -> Band:
    """Mean and 95 % interval by Student's t at each grid point."""
    from scipy.special import stdtrit

    values = np.asarray(curves, dtype=float)
    mean = values.mean(axis=0)
    trials = len(values)
    if trials == 1:
        return Band(mean.tolist(), [None] * len(mean), [None] * len(mean))
    half = stdtrit(trials - 1, 0.975) * values.std(axis=0, ddof=1) / math.sqrt(trials)
    return Band(mean.tolist(), (mean - half).tolist(), (mean + half).tolist())


def moment(draws: Sequence[int | None]) -> Moment:
    reached = [draw for draw in draws if draw is not None]
    return Moment(_mean(reached) if reached else None, len(reached) / len(draws))


def _eliminations(trials: Sequence[Trial], arms: int) -> list[ArmEliminated]:
    """For each arm its first elimination in each trial (players on their own may eliminate it one after another)."""
    first: list[list[int | None]] = [[None] * len(trials) for _ in range(arms)]
    for index, trial in enumerate(trials):
        for arm, draw in reversed(trial.eliminations):
            first[arm][index] = draw
    moments = [moment(draws) for draws in first]
    return [ArmEliminated(arm, each.mean, each.share) for arm, each in enumerate(moments)]


def _mean(values: Sequence[float]) -> float:
    return _tidy(math.fsum(values) / len(values))


def _tidy(value: float) -> float:
    """Whole numbers as whole numbers: 64, not 64.0."""
    return int(value) if value == int(value) else value
