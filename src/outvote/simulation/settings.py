"""Settings: everything that decides the outcome of a simulation, checked before the first draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outvote.core import protocols
from outvote.core.errors import InvalidTask, one_of
from outvote.core.ledger import bits_bound, tally_bits_bound
from outvote.core.tally.player import TallyPlayer
from outvote.core.tally.server import TallyServer
from outvote.core.task import Task
from outvote.core.votes.server import VoteServer
from outvote.simulation.activity import Activity, Weighted, read_activity, with_dead_players
from outvote.simulation.environments import PROBLEMS, BetaLaw, Environment, RewardLaw, bernoulli
from outvote.simulation.fleets import BASELINES
from outvote.simulation.liars import Aim
from outvote.simulation.trials import unlimited_costs

ENGINES = ("auto", "core", "fast")
KERNELS: dict[str, tuple[str, type]] = {
    "dme": (protocols.__name__, VoteServer),
    "edme": (protocols.__name__, VoteServer),
    "tally": (TallyPlayer.__module__, TallyServer),
}
"""Protocols that have kernels: the module whose players those were written for, and the server. Baselines have, too."""
DEFAULT_EPSILON = {"tally": 0.0}
"""ε where none is given: Tally looks for the very best arm, all others for the paper's .5."""


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
    engine: str = "auto"
    """What was asked for: auto, core or fast. `runs_on` says what that comes to."""
    liars: int = 0
    """So many players lie, from the first on: the busiest, where some are busier."""
    lie: str = "praise"

    def __post_init__(self) -> None:
        """Refuse parts that do not belong together, also where `dataclasses.replace` has put them together."""
        if self.engine not in ENGINES:
            raise InvalidTask(f"engine must be one of {one_of(ENGINES)}, got {self.engine!r}")
        if self.protocol not in BASELINES and self.protocol != self.task.protocol:
            raise InvalidTask(f"protocol must be the task's, {self.task.protocol!r}, got {self.protocol!r}")
        arms, means = len(self.task.arms), len(self.environment.means)
        if means != arms:
            raise InvalidTask(f"means must have one number for each of the {arms} arms, got {means}")
        if self.activity.players != self.task.players:
            raise InvalidTask(
                f"the activity must be of the task's {self.task.players} players, got one of {self.activity.players}"
            )
        _ = self.runs_on  # refuses an engine that cannot run this

    @property
    def runs_on(self) -> str:
        """The engine that runs these settings, core or fast: the one asked for, or `fast` where it has a kernel."""
        if self.engine == "core":
            return "core"
        why_not = why_no_kernel(self)
        if why_not and self.engine == "fast":
            raise InvalidTask(f"engine 'fast' cannot run {why_not}: use 'core' or 'auto'")
        return "core" if why_not else "fast"

    @property
    def aim(self) -> Aim | None:
        """What the liars want, if there are any."""
        return Aim.of(self.lie, self.environment.means) if self.liars else None

    def bits_bound(self) -> int:
        """The most bits that this protocol sends: Lemma 2 or Theorem 4; Tally's to the horizon; the baselines'."""
        if self.protocol == "tally":
            return tally_bits_bound(self.task, self.horizon)
        if self.protocol not in BASELINES:
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
            "engine": self.runs_on,
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
    names = (*protocols.REGISTRY, *BASELINES)
    if protocol not in names:
        raise InvalidTask(f"protocol must be one of {one_of(names)}, got {protocol!r}")
    if instances is not None and protocol in ("dme", "tally", *BASELINES):
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
    active = law.active_players if active_players is None else active_players
    own = "dme" if protocol in BASELINES else protocol
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
    if protocol in BASELINES and (tolerate or liars):
        raise InvalidTask(
            f"tolerate and liars are for {one_of(protocols.REGISTRY)}, got {tolerate!r} and {liars!r} "
            f"for {protocol!r}: nobody can lie where nothing is sent, or everything is believed"
        )
    draws = _count("horizon", horizon, 1)
    if draws > law.length:
        raise InvalidTask(f"the trace has {law.length} draws, got a horizon of {draws}: ask for fewer")
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
    return settings


def why_no_kernel(settings: Settings) -> str | None:
    """What the kernels were not written for, if there is anything: they know these very parts and nothing like them."""
    environment, task = settings.environment, settings.task
    if settings.protocol not in BASELINES and not _is_our_own(task.protocol):
        return f"the protocol {settings.protocol!r}, for which it has no kernel"
    if type(environment) is not Environment:
        return f"an environment of the type {type(environment).__name__}"
    if environment.law is not bernoulli:
        return "rewards other than Bernoulli"
    if environment.spread:
        return "means that differ by site"
    if environment.drift_to is not None:
        return "means that drift"
    if type(settings.activity) is not Weighted:
        return f"the activity {settings.activity.name!r}, which is not by weights"
    if task.tolerate:
        return "a fleet that tolerates liars"
    if settings.liars:
        return "players that lie"
    if task.reward_window is not None:
        return "a reward window"
    if settings.protocol == "tally" and task.code not in ("implied", "binary"):
        return f"tallies in the code {task.code!r}"
    return None


def _is_our_own(protocol: str) -> bool:
    """Whether the registry still has, under this name, the very makers of what kernels agree with."""
    entry = protocols.REGISTRY[protocol]
    return KERNELS.get(protocol) == (getattr(entry.player, "__module__", None), entry.server)


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
