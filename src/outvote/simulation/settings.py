"""Settings: everything that decides the outcome of a simulation, checked before the first draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from outvote.core.errors import InvalidTask, one_of
from outvote.core.ledger import bits_bound, tally_bits_bound
from outvote.core.task import PROTOCOLS, Task
from outvote.simulation.activity import Activity, Weighted, read_activity, with_dead_players
from outvote.simulation.environments import PROBLEMS, BetaLaw, Environment, RewardLaw, bernoulli
from outvote.simulation.fleets import BASELINES
from outvote.simulation.liars import Aim
from outvote.simulation.trials import unlimited_costs

ENGINES = ("auto", "jump", "compiled", "step")
NOT_COMPILED = ("ucb-unlimited", "tally")
"""What has no compiled step kernel: the engine that skips is used, however little there is to skip."""
DEFAULT_EPSILON = {"tally": 0.0}
"""ε where none is given: Tally looks for the very best arm, all others for the paper's .5."""
WORTH_JUMPING = 1.0
"""Draws per player and grid interval below which there is nothing to skip."""


@dataclass(frozen=True)
class Settings:
    """One cell of a study: a protocol, its task, its world, and how long and how often it is run."""

    protocol: str
    task: Task
    environment: Environment
    activity: Activity
    active_players: float
    horizon: int
    trials: int
    seed: int
    grid: int
    engine: str
    """jump, compiled or step: never auto."""
    liars: int = 0
    """So many players lie, from the first on: the busiest, where some are busier."""
    lie: str = "praise"

    @property
    def aim(self) -> Aim | None:
        """What the liars want, if there are any."""
        return Aim.of(self.lie, self.environment.means) if self.liars else None

    def bits_bound(self) -> int:
        """The most bits that this protocol sends: Lemma 2 or Theorem 4; Tally's to the horizon; the baselines'."""
        if self.protocol == "tally":
            return tally_bits_bound(self.task, self.horizon)
        if self.protocol in PROTOCOLS:
            return bits_bound(self.task)
        if self.protocol == "me-local":
            return 0
        costs = unlimited_costs(players=self.task.players, arms=len(self.task.arms), draws=self.horizon)
        return costs.up_bits + costs.down_bits

    def describe(self) -> dict[str, Any]:
        """Everything that decides the outcome, in plain JSON types."""
        environment = self.environment
        law = environment.law
        return {
            "protocol": self.protocol,
            "task": self.task.to_json(),
            "means": list(environment.means),
            "law": repr(law) if isinstance(law, BetaLaw) else getattr(law, "__qualname__", repr(law)),
            "spread": environment.spread,
            "drift_to": None if environment.drift_to is None else list(environment.drift_to),
            "activity": self.activity.describe(),
            "active_players": self.active_players,
            "horizon": self.horizon,
            "trials": self.trials,
            "seed": self.seed,
            "grid": self.grid,
            "engine": self.engine,
            **({"liars": self.liars, "lie": self.lie} if self.liars else {}),
        }

    def grid_points(self) -> list[int]:
        """Draws at which regret is recorded: evenly spread, the last is the horizon."""
        points = min(self.grid, self.horizon)
        return [self.horizon * i // points for i in range(1, points + 1)]


def read_settings(
    *,
    protocol: str = "dme",
    problem: float | None = None,
    means: Sequence[float] | None = None,
    arms: int | Sequence[str] | None = None,
    players: float = 64,
    activity: str | Sequence[float] | Path = "uniform",
    dead: float = 0,
    active_players: float | None = None,
    instances: float | Sequence[float] | None = None,
    epsilon: float | None = None,
    delta: float = 0.05,
    quorum: str = "paper",
    code: str | None = None,
    floor: float | None = None,
    privacy_budget: float | None = None,
    rewards: str | RewardLaw = "bernoulli",
    spread: float = 0.0,
    drift_to: Sequence[float] | None = None,
    horizon: float = 1_000_000,
    trials: float = 100,
    seed: float = 0,
    grid: float = 200,
    engine: str = "auto",
    tolerate: float = 0,
    liars: float = 0,
    lie: str = "praise",
) -> Settings:
    """Check all options and put them together; anything that cannot be is refused with an `InvalidTask`."""
    names = (*PROTOCOLS, *BASELINES)
    if protocol not in names:
        raise InvalidTask(f"protocol must be one of {one_of(names)}, got {protocol!r}")
    if engine not in ENGINES:
        raise InvalidTask(f"engine must be one of {one_of(ENGINES)}, got {engine!r}")
    if instances is not None and protocol != "edme":
        raise InvalidTask(f"instances are for protocol 'edme', got {instances!r} for {protocol!r}")
    environment = Environment(
        means=_means(problem, means),
        law=_law(rewards),
        spread=spread,
        drift_to=None if drift_to is None else tuple(drift_to),
    )
    count = len(environment.means)
    players = _count("players", players, 1)
    law = with_dead_players(read_activity(activity, players), _count("dead", dead, 0))
    active = law.default_active_players() if active_players is None else active_players
    own = protocol if protocol in PROTOCOLS else "dme"
    if protocol == "tally" and active_players is not None:
        raise InvalidTask(f"active_players is for 'dme' and the baselines, got {active_players!r}: 'tally' needs none")
    if epsilon is None:
        epsilon = DEFAULT_EPSILON.get(protocol, 0.5)
    task = Task(
        arms=count if arms is None else arms,
        players=players,
        epsilon=epsilon,
        delta=delta,
        protocol=own,
        active_players=active if own == "dme" else None,
        instances=_count("instances", instances, 1) if isinstance(instances, int | float) else instances,
        quorum=quorum,
        code=code,
        floor=None if floor is None else _count("floor", floor, 2),
        privacy_budget=privacy_budget,
        tolerate=_count("tolerate", tolerate, 0),
    )
    if protocol not in PROTOCOLS and (tolerate or liars):
        raise InvalidTask(
            f"tolerate and liars are for {one_of(PROTOCOLS)}, got {tolerate!r} and {liars!r} for {protocol!r}: nobody "
            "can lie where nothing is sent, or everything is believed"
        )
    if len(task.arms) != count:
        raise InvalidTask(f"means must have one number for each of the {len(task.arms)} arms, got {count}")
    draws = _count("horizon", horizon, 1)
    if draws > law.longest_horizon():
        raise InvalidTask(f"the trace has {law.longest_horizon()} draws, got a horizon of {draws}: ask for fewer")
    settings = Settings(
        protocol=protocol,
        task=task,
        environment=environment,
        activity=law,
        active_players=active,
        horizon=draws,
        trials=_count("trials", trials, 1),
        seed=_count("seed", seed, 0),
        grid=_count("grid", grid, 1),
        engine=engine,
        liars=_count("liars", liars, 0),
        lie=lie,
    )
    if settings.liars > players:
        raise InvalidTask(f"liars must be at most the {players} players, got {settings.liars}")
    Aim.of(lie, environment.means)
    return replace(settings, engine=_engine(settings))


def _engine(settings: Settings) -> str:
    """The engine to use: the one asked for where it applies, else the fastest that is exact for these settings."""
    why_not = _why_no_kernel(settings)
    asked = settings.engine
    if asked in ("jump", "compiled") and why_not:
        raise InvalidTask(f"engine {asked!r} cannot run {why_not}: use 'step' or 'auto'")
    if asked == "compiled" and settings.protocol in NOT_COMPILED:
        raise InvalidTask(f"engine 'compiled' has no {settings.protocol!r}: use 'jump', 'step' or 'auto'")
    if asked != "auto":
        return asked
    if why_not:
        return "step"
    alone = settings.protocol in ("me-unlimited", *NOT_COMPILED)
    draws_each = settings.horizon / (len(settings.grid_points()) * settings.task.players)
    return "jump" if alone or draws_each >= WORTH_JUMPING else "compiled"


def _why_no_kernel(settings: Settings) -> str | None:
    """What the compiled engines cannot do."""
    environment = settings.environment
    if environment.law is not bernoulli:
        return "rewards other than Bernoulli"
    if environment.spread:
        return "means that differ by site"
    if environment.drift_to is not None:
        return "means that drift"
    if not isinstance(settings.activity, Weighted):
        return "a trace"
    if settings.task.tolerate:
        return "a fleet that tolerates liars"
    if settings.liars:
        return "players that lie"
    if settings.protocol == "tally" and settings.task.code not in ("implied", "binary"):
        return f"tallies in the code {settings.task.code!r}"
    return None


def _means(problem: float | None, means: Sequence[float] | None) -> tuple[float, ...]:
    if means is not None:
        if problem is not None:
            raise InvalidTask(f"choose problem or means, got both: {problem!r} and {list(means)!r}")
        return tuple(float(mean) for mean in means)
    if problem is None:
        problem = 1
    if problem not in PROBLEMS:
        raise InvalidTask(f"problem must be one of {one_of(PROBLEMS)}, got {problem!r}")
    return PROBLEMS[int(problem)]


def _law(rewards: str | RewardLaw) -> RewardLaw:
    if not isinstance(rewards, str):
        return rewards
    name, _, concentration = rewards.partition(":")
    if rewards == "bernoulli":
        return bernoulli
    if name == "beta":
        try:
            return BetaLaw(float(concentration or 4.0))
        except ValueError:
            pass
    raise InvalidTask(f"rewards must be 'bernoulli', 'beta' or 'beta:CONCENTRATION' (above 0), got {rewards!r}")


def _count(field: str, value: float, least: int) -> int:
    """A whole number, also when written as 1e6."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1 or value < least:
        raise InvalidTask(f"{field} must be a whole number of at least {least}, got {value!r}")
    return int(value)
