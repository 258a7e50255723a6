"""What arms are worth: mean rewards that may differ by player, time, visitor and context, and the law around them.

Rewards come from the uniform number that is passed in, by the law's quantile function, so an environment holds no
generator. What differs by site is drawn once at the start of a trial, what a visitor prefers when it comes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from outvote.core.errors import InvalidSettings
from outvote.simulation import worlds

RewardLaw: TypeAlias = Callable[[float, float], float]
"""(mean, uniform number in [0, 1)) -> reward in [0, 1], whose expectation is the mean."""
Means: TypeAlias = Callable[[int, int, int | None, Mapping[str, Any] | None], Sequence[float]]
"""(player, time, visitor, context) -> the mean rewards of all arms. Time counts draws from 1.

Without a visitor they are those of the site."""
Pull: TypeAlias = Callable[[int, int, int, float], tuple[float, float]]
"""(player, arm, draw, uniform number) -> (reward, gap of that arm to the player's best)."""

PROBLEMS = {1: (0.7, 0.5, 0.3, *(0.1,) * 7), 2: (0.3, 0.2, *(0.1,) * 8)}
"""The paper's two problems."""
SPREADS: Final = ("spread", "site_spread", "visitor_spread")
"""By what means differ."""
MOST_SPREAD: Final = 1_000_000
MOTIONS: Final = ("drift_to", "swap", "cycle", "jumps")
"""By what they move."""
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
            raise InvalidSettings(
                f"of the law beta must have a concentration above 0, got {self.concentration!r}", field="rewards"
            )

    def __str__(self) -> str:
        return f"beta:{self.concentration:g}"

    def __call__(self, mean: float, uniform: float) -> float:
        from scipy.special import betaincinv

        if mean in (0.0, 1.0):
            return mean
        return float(betaincinv(self.concentration * mean, self.concentration * (1.0 - mean), uniform))


@dataclass(frozen=True)
class Environment:
    """What arms are worth, wherever and whenever they are played.

    Parameters:
        means: the mean rewards of the arms. One number for each arm (the same for all players, always); or a row of
            them for each player; or a function `(player, time, visitor, context)` that returns one number for each
            arm. `player` counts from 0 and `time` draws from 1. `visitor` is a number of its own for each visitor,
            where there are any, and None where a site itself is judged. `context` is None for now.
        law: how a reward comes from its mean: a function `(mean, uniform number in [0, 1)) -> reward in [0, 1]`.
        spread: standard deviation of each player's and arm's own shift of log odds, drawn for each trial.
        drift_to: means towards which those of all players move in a straight line over the horizon.
        site_spread: standard deviation of each player's shift of log odds, the same for all its arms.
        visitor_spread: standard deviation of each visitor's and arm's own shift of log odds (`visits` of `simulate`).
        cycle: (amplitude, period). The means of all arms rise and fall by the amplitude, as a sine over the draws.
        jumps: (size, period). In each period of draws all arms are raised by the size, or none, as a fair coin falls.
        swap: from this draw on the best arm and the second best have each other's means.

    A subclass may override `start`, which makes the world of one trial: there it can draw at random.

    Raises `InvalidSettings` for means that are not numbers from 0 to 1, and for parts that exclude each other.

    >>> from outvote.simulation import Environment, simulate
    >>> swapped = Environment([(1, 0), (0, 1)])  # each of two players has its own best arm
    >>> simulate(environment=swapped, players=2, protocol="ucb-unlimited", horizon=2, trials=1, grid=1).engine
    'core'
    """

    means: Sequence[float] | Sequence[Sequence[float]] | Means
    law: RewardLaw = field(default_factory=lambda: bernoulli)
    spread: float = 0.0
    drift_to: Sequence[float] | None = None
    site_spread: float = 0.0
    visitor_spread: float = 0.0
    cycle: Sequence[float] | None = None
    jumps: Sequence[float] | None = None
    swap: int | None = None
    arms: int = field(init=False, repr=False)
    """How many arms there are."""
    players: int | None = field(init=False, repr=False, default=None)
    """How many players have a row of means; None where means are for any number of players."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        if callable(self.means):
            rows: Sequence[Sequence[float]] = [_numbers(self.means(0, 1, None, None))]
        elif any(isinstance(row, list | tuple | np.ndarray) for row in self.means):
            rows = tuple(_numbers(row) for row in self.means)
            put(self, "means", rows)
            put(self, "players", len(rows))
        else:
            rows = [_numbers(self.means)]
            put(self, "means", rows[0])
        put(self, "arms", len(rows[0]))
        for row in rows:
            check_means("means", row, self.arms)
        for name in SPREADS:
            spread = getattr(self, name)
            if not 0 <= spread <= MOST_SPREAD:
                problem = f"must be a number of at least 0 and at most {MOST_SPREAD:,}, got {spread!r}"
                raise InvalidSettings(problem, field=name, code="range")
        if self.drift_to is not None:
            put(self, "drift_to", tuple(self.drift_to))
            check_means("drift_to", self.drift_to, self.arms)
        for name in ("cycle", "jumps"):
            if getattr(self, name) is not None:
                put(self, name, _size_and_period(name, getattr(self, name)))
        if self.swap is not None:
            if not _is_draw(self.swap):
                problem = f"must be the number of a draw, from 1 on, got {self.swap!r}"
                raise InvalidSettings(problem, field="swap", code="range")
            put(self, "swap", int(self.swap))
        self._check_together(rows)

    def _check_together(self, rows: Sequence[Sequence[float]]) -> None:
        for name in (*SPREADS, *MOTIONS):
            value = getattr(self, name)
            if value and callable(self.means):
                raise _exclude(name, value, "means that are a function")
            if value and self.players and name in ("drift_to", "swap"):
                raise _exclude(name, value, "means that differ by player")
        ends = [mean for row in (*rows, self.drift_to or ()) for mean in row]
        rise = self.cycle[0] if self.cycle else 0.0
        least, most = min(ends) - rise, max(ends) + rise + (self.jumps[0] if self.jumps else 0.0)
        if not -GOOD_TOLERANCE <= least <= most <= 1 + GOOD_TOLERANCE:
            problem = f"must leave means from 0 to 1, got means from {least:g} to {most:g}"
            raise InvalidSettings(problem, field="cycle" if self.cycle else "jumps", code="range")

    @property
    def row(self) -> tuple[float, ...] | None:
        """One number for each arm, where that is what `means` are: at the start, and before sites differ."""
        return None if self.players or callable(self.means) else self.means  # type: ignore[return-value]

    @property
    def same_everywhere(self) -> bool:
        """All players have the same means, always (Assumption 1). A subclass may have a world of its own."""
        return type(self) is Environment and self.row is not None and not (self.differs or self.moves)

    @property
    def differs(self) -> bool:
        """Means differ by site or by visitor."""
        return bool(self.players) or any(getattr(self, name) for name in SPREADS)

    @property
    def moves(self) -> bool:
        """Means change over the draws."""
        return any(getattr(self, name) is not None for name in MOTIONS)

    def start(self, *, players: int, horizon: int, rng: np.random.Generator) -> Means:
        """Return the mean rewards of one trial, by player, time, visitor and context."""
        if callable(self.means):
            return self.means
        row = self.row
        if row is not None and not (self.differs or self.moves):
            return lambda player, time, visitor, context: row
        rows: Sequence[Sequence[float]] = self.means if row is None else [row] * players  # type: ignore[assignment]
        shifts = np.zeros((players, self.arms))
        if self.spread:
            shifts += rng.normal(0.0, self.spread, (players, self.arms))
        if self.site_spread:
            shifts += rng.normal(0.0, self.site_spread, (players, 1))
        motions: list[worlds.Motion] = []
        if row is not None and self.drift_to is not None:
            motions.append(worlds.drift(row, self.drift_to, horizon))
        if row is not None and self.swap is not None:
            motions.append(worlds.swap(row, self.swap))
        if self.cycle is not None:
            motions.append(worlds.cycle(self.cycle[0], int(self.cycle[1])))
        if self.jumps is not None:
            motions.append(worlds.jumps(self.jumps[0], int(self.jumps[1]), horizon, rng))
        return worlds.World(rows, shifts.tolist(), motions, self.visitor_spread, rng)


def open_world(environment: Environment, *, players: int, horizon: int, rng: np.random.Generator) -> Means:
    """Start a trial's world; what a function of the user's own returns is checked whenever it is asked."""
    world = environment.start(players=players, horizon=horizon, rng=rng)
    if type(environment) is Environment and not callable(environment.means):
        return world

    def checked(player: int, time: int, visitor: int | None, context: Mapping[str, Any] | None) -> Sequence[float]:
        means = world(player, time, visitor, context)
        check_means("means", means, environment.arms)
        return means

    return checked


def puller(environment: Environment, world: Means, next_visitor: Callable[[int], int] | None = None) -> Pull:
    """How the engine `core` asks for a reward and its regret, with the common case made fast.

    `next_visitor` says who comes to a player. Regret is that of the site: which visitor comes, nobody can choose.
    """
    law = environment.law
    if environment.same_everywhere and law is bernoulli:
        means: Sequence[float] = environment.means  # type: ignore[assignment]
        outcomes = [((0.0, max(means) - mean), (1.0, max(means) - mean)) for mean in means]

        def pull_bernoulli(player: int, arm: int, draw: int, uniform: float) -> tuple[float, float]:
            return outcomes[arm][uniform < means[arm]]

        return pull_bernoulli

    def pull(player: int, arm: int, draw: int, uniform: float) -> tuple[float, float]:
        means = world(player, draw, None, None)
        mean = means[arm]
        gap = max(means) - mean
        if next_visitor is not None:
            mean = world(player, draw, next_visitor(player), None)[arm]
        reward = law(mean, uniform)
        if not 0 <= reward <= 1:
            raise InvalidSettings(f"must be numbers from 0 to 1, got {reward!r}", field="rewards", code="range")
        return reward, gap

    return pull


def good_arms(means: Sequence[float], epsilon: float) -> frozenset[int]:
    """The ε-approximations of the best arm (Definition 1)."""
    best = max(means)
    return frozenset(arm for arm, mean in enumerate(means) if best <= mean + epsilon + GOOD_TOLERANCE)


def best_arms(means: Sequence[float]) -> frozenset[int]:
    """The arms of the highest mean."""
    return good_arms(means, 0.0)


def check_means(name: str, means: Sequence[float], arms: int) -> None:
    if arms < 2:
        raise InvalidSettings(f"must name at least 2 arms, got {arms}", field=name, code="range")
    if len(means) != arms:
        raise InvalidSettings(f"must have one number for each of the {arms} arms, got {len(means)}", field=name)
    for mean in means:
        if not 0 <= mean <= 1:
            raise InvalidSettings(f"must be numbers from 0 to 1, got {mean!r}", field=name, code="range")


def _numbers(row: Any) -> tuple[float, ...]:
    try:
        return tuple(float(mean) for mean in row)
    except (TypeError, ValueError):
        raise InvalidSettings(f"must be numbers from 0 to 1, got {row!r}", field="means", code="type") from None


def _exclude(name: str, value: object, other: str) -> InvalidSettings:
    return InvalidSettings(f"cannot go with {other}, got {value!r}: choose one", field=name, code="conflict")


def _size_and_period(name: str, pair: Any) -> tuple[float, int]:
    try:
        size, period = pair
        fits = math.isfinite(size) and size >= 0 and _is_draw(period)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        problem = f"must be a number of at least 0 and a whole number of draws, like .1,2000, got {pair!r}"
        raise InvalidSettings(problem, field=name, code="range")
    return float(size), int(period)


def _is_draw(value: Any) -> bool:
    """A whole number from 1 on, also when written as 1e6."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1 and value >= 1
