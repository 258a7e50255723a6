"""What arms are worth: mean rewards that may differ by player or drift, and the law of a reward around its mean.

Rewards come from the uniform number that is passed in, by the law's quantile function, so an environment holds no
generator. Site effects, where asked for, are drawn once at the start of a trial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from outvote.core.errors import InvalidTask

RewardLaw: TypeAlias = Callable[[float, float], float]
"""(mean, uniform number in [0, 1)) -> reward in [0, 1], whose expectation is the mean."""
World: TypeAlias = Callable[[int, int], Sequence[float]]
"""(player, draw) -> the mean rewards of all arms in one trial."""
Pull: TypeAlias = Callable[[int, int, int, float], tuple[float, float]]
"""(player, arm, draw, uniform number) -> (reward, gap of that arm to the player's best)."""

PROBLEMS = {1: (0.7, 0.5, 0.3, *(0.1,) * 7), 2: (0.3, 0.2, *(0.1,) * 8)}
"""The paper's two problems."""
GOOD_TOLERANCE = 1e-12
"""So that .7 − .2 counts as a gap of .5 although its floating-point value does not."""


def bernoulli(mean: float, uniform: float) -> float:
    """1 with probability `mean`, else 0."""
    return 1.0 if uniform < mean else 0.0


@dataclass(frozen=True)
class BetaLaw:
    """Beta(c·mean, c·(1 − mean)): the larger the concentration c, the closer rewards are to their mean."""

    concentration: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.concentration) and self.concentration > 0):
            raise InvalidTask(f"the concentration of beta rewards must be above 0, got {self.concentration!r}")

    def __call__(self, mean: float, uniform: float) -> float:
        from scipy.special import betaincinv

        if mean in (0.0, 1.0):
            return mean
        return float(betaincinv(self.concentration * mean, self.concentration * (1.0 - mean), uniform))


@dataclass(frozen=True)
class Environment:
    """What a simulation is told about rewards; `start` makes the world of one trial from it."""

    means: tuple[float, ...]
    law: RewardLaw = bernoulli
    spread: float = 0.0
    """Standard deviation of each player's and arm's own shift, on the logit scale."""
    drift_to: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_means("means", self.means)
        if not (math.isfinite(self.spread) and self.spread >= 0):
            raise InvalidTask(f"spread must be a number of at least 0, got {self.spread!r}")
        if self.drift_to is not None:
            check_means("drift_to", self.drift_to)
            if len(self.drift_to) != len(self.means):
                raise InvalidTask(
                    f"drift_to must have one mean for each of the {len(self.means)} arms, got {len(self.drift_to)}"
                )
            if self.spread:
                raise InvalidTask(f"choose drift_to or spread, got both: {list(self.drift_to)!r} and {self.spread!r}")

    @property
    def same_everywhere(self) -> bool:
        """All players have the same means, always (Assumption 1). A subclass may have a world of its own."""
        return type(self) is Environment and not self.spread and self.drift_to is None

    def start(self, *, players: int, horizon: int, rng: np.random.Generator) -> World:
        """The world of one trial. Means that drift move in a straight line over the horizon."""
        start, end = self.means, self.drift_to
        if end is not None:
            moves = [(a, b - a) for a, b in zip(start, end, strict=True)]
            return lambda player, draw: [a + move * (draw / horizon) for a, move in moves]
        if self.spread:
            shifts = rng.normal(0.0, self.spread, (players, len(start)))
            by_player = [tuple(map(_shift, start, row)) for row in shifts.tolist()]
            return lambda player, draw: by_player[player]
        return lambda player, draw: start


def puller(environment: Environment, world: World) -> Pull:
    """How the engine `core` asks for a reward and its regret, with the common case made fast."""
    law = environment.law
    if environment.same_everywhere and law is bernoulli:
        means = environment.means
        outcomes = [((0.0, max(means) - mean), (1.0, max(means) - mean)) for mean in means]

        def pull_bernoulli(player: int, arm: int, draw: int, uniform: float) -> tuple[float, float]:
            return outcomes[arm][uniform < means[arm]]

        return pull_bernoulli

    def pull(player: int, arm: int, draw: int, uniform: float) -> tuple[float, float]:
        means = world(player, draw)
        mean = means[arm]
        return law(mean, uniform), max(means) - mean

    return pull


def good_arms(means: Sequence[float], epsilon: float) -> frozenset[int]:
    """The ε-approximations of the best arm (Definition 1)."""
    best = max(means)
    return frozenset(arm for arm, mean in enumerate(means) if best <= mean + epsilon + GOOD_TOLERANCE)


def best_arms(means: Sequence[float]) -> frozenset[int]:
    """The arms of the highest mean."""
    return good_arms(means, 0.0)


def check_means(field: str, means: Sequence[float]) -> None:
    if len(means) < 2:
        raise InvalidTask(f"{field} must name at least 2 arms, got {len(means)}")
    for mean in means:
        if not 0 <= mean <= 1:
            raise InvalidTask(f"{field} must be numbers from 0 to 1, got {mean!r}")


def _shift(mean: float, shift: float) -> float:
    """Move a mean by `shift` on the logit scale; 0 and 1 stay."""
    if mean in (0.0, 1.0):
        return mean
    logit = math.log(mean) - math.log1p(-mean) + shift
    return 1.0 / (1.0 + math.exp(-logit)) if logit > -700.0 else math.exp(logit)
