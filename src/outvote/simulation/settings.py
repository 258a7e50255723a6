"""Settings: everything that decides the outcome of a simulation, checked before the first draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import outvote
from outvote.core import protocols
from outvote.core.blocks.code import BlockCodebook
from outvote.core.blocks.player import BlockPlayer
from outvote.core.blocks.server import BlockServer
from outvote.core.codes import Codebook, TallyCodebook, fixed_width
from outvote.core.errors import InvalidSettings, one_of
from outvote.core.registry import Parameter
from outvote.core.tally.player import TallyPlayer
from outvote.core.tally.server import TallyServer
from outvote.core.task import Task
from outvote.core.votes.player import MedianPlayer
from outvote.core.votes.server import VoteServer
from outvote.simulation.activity import Activity, ActivityFunction, Weighted, read_activity, with_dead_players
from outvote.simulation.environments import PROBLEMS, BetaLaw, Environment, RewardLaw, bernoulli
from outvote.simulation.keys import code_digest, description, module_of
from outvote.simulation.liars import Aim
from outvote.simulation.registry import BASELINES, OUR_BASELINES, check_parameters, names
from outvote.simulation.trials import Costs

ENGINES: Final = ("auto", "core", "fast")
DAY: Final = 86_400_000
"""In milliseconds."""
LEAST_PER_DAY: Final = 0.001
VOTES: Final = (MedianPlayer.__module__, VoteServer, Codebook, protocols.__name__)
KERNELS: Final = {
    "dme": VOTES,
    "edme": VOTES,
    "tally": (TallyPlayer.__module__, TallyServer, TallyCodebook, protocols.__name__),
    "blocks": (BlockPlayer.__module__, BlockServer, BlockCodebook, protocols.__name__),
}
"""Protocols that have kernels: the module whose players those were written for, the server, the codebook, and the
module of the bound. Our baselines have kernels, too."""


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
    baseline_parameters: tuple[tuple[str, Parameter], ...] = ()
    """A protocol's are in its task."""
    visits: float | None = None
    """Decisions of a visitor, on average; None where there are no visitors."""
    drop: float = 0.0
    """With this probability a site dies after a decision, and loses its open group."""
    per_day: float | None = None
    """Decisions a day of a site, on average over those that wake. Without it the number of the draw is the time."""

    def __post_init__(self) -> None:
        """Refuse parts that do not belong together, also where `dataclasses.replace` has put them together."""
        if self.engine not in ENGINES:
            raise _no_choice("engine", self.engine, ENGINES)
        if self.protocol not in BASELINES and self.protocol != self.task.protocol:
            problem = f"must be the task's, {self.task.protocol!r}, got {self.protocol!r}"
            raise InvalidSettings(problem, field="protocol", code="conflict")
        arms, means = len(self.task.arms), self.environment.arms
        if means != arms:
            problem = f"must have one number for each of the {arms} arms, got {means}"
            raise InvalidSettings(problem, field="means", code="conflict")
        for part, players in (("means", self.environment.players), ("activity", self.activity.players)):
            if players not in (None, self.task.players):
                problem = f"must be of the task's {self.task.players} players, got {players}"
                raise InvalidSettings(problem, field=part, code="conflict")
        if self.liars:
            self._check_liars()
        self._check_sites()
        _ = self.runs_on  # refuses an engine that cannot run this

    def _check_liars(self) -> None:
        if self.protocol == "blocks" or not is_our_own(self.protocol):
            known = [name for name in KERNELS if name != "blocks"]
            problem = f"know the protocols {one_of(known)} only, got {self.liars!r} for {self.protocol!r}"
            raise InvalidSettings(problem, field="liars", code="conflict")
        if self.environment.row is None:
            raise InvalidSettings("need to know one mean for each arm, got others", field="liars", code="conflict")
        if self.liars > self.task.players:
            problem = f"must be at most the {self.task.players} players, got {self.liars}"
            raise InvalidSettings(problem, field="liars", code="range")

    def _check_sites(self) -> None:
        if self.visits is not None and not (math.isfinite(self.visits) and self.visits >= 1):
            problem = f"must be a number of decisions of at least 1, got {self.visits!r}"
            raise InvalidSettings(problem, field="visits", code="range")
        if self.visits is None and self.environment.visitor_spread:
            problem = f"needs visits, how many decisions a visitor makes, got {self.environment.visitor_spread!r} alone"
            raise InvalidSettings(problem, field="visitor_spread", code="conflict")
        if not 0 <= self.drop < 1:
            problem = f"must be a share of at least 0 and below 1, got {self.drop!r}"
            raise InvalidSettings(problem, field="drop", code="range")
        if self.drop and (self.protocol in BASELINES or self.liars):
            other = "players that lie" if self.liars else f"the baseline {self.protocol!r}, which saves nothing"
            raise InvalidSettings(f"cannot go with {other}, got {self.drop!r}", field="drop", code="conflict")
        if self.per_day is not None and not LEAST_PER_DAY <= self.per_day < math.inf:
            problem = f"must be a number of decisions of at least {LEAST_PER_DAY}, got {self.per_day!r}"
            raise InvalidSettings(problem, field="per_day", code="range")

    @property
    def milliseconds(self) -> float | None:
        """From one draw to the next, of the whole fleet; None where the number of the draw is the time."""
        if self.per_day is None:
            return None
        sites = self.task.players
        if isinstance(self.activity, Weighted):
            sites -= self.activity.weights.count(0)
        return DAY / (self.per_day * sites)

    @property
    def runs_on(self) -> str:
        """The engine that runs these settings, core or fast: the one asked for, or `fast` where it has a kernel."""
        if self.engine == "core":
            return "core"
        why_not = why_no_kernel(self)
        if why_not and self.engine == "fast":
            problem = f"'fast' cannot run {why_not}: use 'core' or 'auto'"
            raise InvalidSettings(problem, field="engine", code="conflict")
        return "core" if why_not else "fast"

    @property
    def aim(self) -> Aim | None:
        """What the liars want, if there are any."""
        return Aim.of(self.lie, self.means) if self.liars else None

    @property
    def means(self) -> tuple[float, ...]:
        """One mean for each arm, where there is one: kernels and liars are given nothing else."""
        assert self.environment.row is not None
        return self.environment.row

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters of the protocol's or the baseline's own."""
        return dict(self.baseline_parameters) if self.protocol in BASELINES else self.task.parameters

    def bits_bound(self) -> int | None:
        """The most bits that are sent up to the horizon, where something bounds them."""
        if self.protocol not in BASELINES:
            return self.task.entry.bits_bound(self.task, self.horizon)
        costs = self.baseline_costs()
        return costs.up_bits + costs.down_bits

    def baseline_costs(self) -> Costs:
        """What a baseline sends: nothing, or every draw to all others, N·T·⌈log₂K⌉ bits as the paper counts."""
        if not BASELINES[self.protocol].shared:
            return Costs()
        bits, told = fixed_width(len(self.task.arms)), self.horizon * (self.task.players - 1)
        return Costs(up_bits=self.horizon * bits, down_bits=told * bits, up_messages=self.horizon, down_messages=told)

    def parts(self) -> dict[str, object]:
        """What may be a user's own, by what it is."""
        if self.protocol in BASELINES:
            makers: dict[str, object] = {"the baseline's player": BASELINES[self.protocol].player}
        else:
            entry = self.task.entry
            makers = {"the protocol's player": entry.player, "its server": entry.server, "its code": entry.codebook}
        return makers | {"the environment": self.environment, "the activity": self.activity}

    def describe(self) -> dict[str, Any]:
        """Everything that decides the outcome, in plain JSON types; `NoKey` names what cannot be described."""
        return {
            "versions": [outvote.__version__, np.__version__, code_digest()],
            "protocol": self.protocol,
            "task": self.task.to_json(),
            "parts": {name: description(part) for name, part in self.parts().items()},
            "parameters": self.parameters,
            "active_players": self.active_players,
            "horizon": self.horizon,
            "trials": self.trials,
            "seed": self.seed,
            "grid": self.grid,
            "engine": self.runs_on,
            "liars": [self.liars, self.lie] if self.liars else None,
            "visits": self.visits,
            "drop": self.drop,
            "per_day": self.per_day,
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
    activity: str | Sequence[float] | Path | ActivityFunction | Activity = "uniform",
    dead: float = 0,
    active_players: float | None = None,
    instances: float | Sequence[float] | None = None,
    epsilon: float | None = None,
    delta: float = 0.05,
    quorum: str | None = None,
    code: str | None = None,
    floor: float | None = None,
    privacy_budget: float | None = None,
    parameters: Mapping[str, Parameter] | None = None,
    environment: Environment | None = None,
    rewards: str | RewardLaw | None = None,
    spread: float | None = None,
    drift_to: Sequence[float] | None = None,
    site_spread: float | None = None,
    visits: float | None = None,
    visitor_spread: float | None = None,
    cycle: Sequence[float] | None = None,
    jumps: Sequence[float] | None = None,
    swap: float | None = None,
    drop: float = 0,
    per_day: float | None = None,
    horizon: float = 1_000_000,
    trials: float = 100,
    seed: float = 0,
    grid: float = 200,
    engine: str = "auto",
    tolerate: float = 0,
    liars: float = 0,
    lie: str = "praise",
) -> Settings:
    """Check all options and put them together; what cannot be is refused with `InvalidSettings` or `InvalidTask`."""
    if protocol not in names():
        problem_said = f"{protocol!r} is unknown: use one of {one_of(names())}"
        raise InvalidSettings(problem_said, field="protocol", code="choice")
    world = _environment(
        environment,
        problem=problem,
        means=means,
        rewards=rewards,
        spread=spread,
        drift_to=drift_to,
        site_spread=site_spread,
        visitor_spread=visitor_spread,
        cycle=cycle,
        jumps=jumps,
        swap=swap,
    )
    players = _count("players", players, 1)
    law = with_dead_players(read_activity(activity, players), _count("dead", dead, 0))
    active = law.active_players if active_players is None else active_players
    baseline = BASELINES.get(protocol)
    own = protocol
    if baseline is not None:
        own = "dme"  # whose task has all that baselines take
        refused = {"instances": instances, "quorum": quorum, "code": code, "floor": floor}
        refused |= {"privacy_budget": privacy_budget, "tolerate": tolerate or None, "liars": liars or None}
        for field, value in refused.items():
            if value is not None:
                said = f"is for protocols, got {value!r} for the baseline {protocol!r}"
                raise InvalidSettings(said, field=field, code="conflict")
    entry = protocols.entry_of(own)
    task = Task(
        arms=world.arms if arms is None else arms,
        players=players,
        epsilon=0.5 if epsilon is None and not entry.exact else epsilon,
        delta=delta,
        protocol=own,
        active_players=active if "active_players" in entry.takes else active_players,
        instances=_count("instances", instances, 1) if isinstance(instances, int | float) else instances,
        quorum=quorum,
        code=code,
        floor=None if floor is None else _count("floor", floor, 1),
        privacy_budget=privacy_budget,
        tolerate=_count("tolerate", tolerate, 0),
        parameters=None if baseline else parameters,
    )
    draws = _count("horizon", horizon, 1)
    if draws > law.length:
        said = f"must be at most the {law.length} draws of the activity, got {draws}"
        raise InvalidSettings(said, field="horizon", code="range")
    Aim.of(lie, range(world.arms))
    return Settings(
        protocol=protocol,
        task=task,
        environment=world,
        activity=law,
        active_players=active,
        horizon=draws,
        trials=_count("trials", trials, 1),
        seed=_count("seed", seed, 0),
        grid=_count("grid", grid, 1),
        engine=engine,
        liars=_count("liars", liars, 0),
        lie=lie,
        baseline_parameters=_baseline_parameters(baseline.parameters, parameters or {}) if baseline else (),
        visits=visits,
        drop=drop,
        per_day=per_day,
    )


def why_no_kernel(settings: Settings) -> str | None:
    """What the kernels were not written for, if there is anything: they know these very parts and nothing like them."""
    environment, task = settings.environment, settings.task
    if not is_our_own(settings.protocol):
        return f"the protocol {settings.protocol!r}, for which it has no kernel"
    if type(task) is not Task:
        return f"a task of the type {type(task).__name__}"
    if type(environment) is not Environment:
        return f"an environment of the type {type(environment).__name__}"
    knows_sites = settings.protocol == "blocks"  # and visitors, and days
    if environment.law is not bernoulli:
        return "rewards other than Bernoulli"
    if settings.visits is not None and not knows_sites:
        return "visitors"
    if environment.differs and not knows_sites:
        return "means that differ by site"
    if environment.moves or callable(environment.means):
        return "means that drift" if environment.moves else "means that are a function"
    if type(settings.activity) is not Weighted:
        return f"the activity {settings.activity.name!r}, which is not by weights"
    if task.tolerate:
        return "a fleet that tolerates liars"
    if settings.liars:
        return "players that lie"
    if settings.drop:
        return "sites that die"
    if settings.per_day is not None and not knows_sites:
        return "times of day"
    if task.reward_window:
        return "a reward window"
    if settings.protocol == "tally" and task.code not in ("implied", "binary"):
        return f"tallies in the code {task.code!r}"
    return None


def is_our_own(protocol: str) -> bool:
    """Whether the registry still has, under this name, the very makers of what kernels agree with."""
    if protocol in BASELINES:
        return BASELINES[protocol] is OUR_BASELINES.get(protocol)
    entry = protocols.entry_of(protocol)
    found: object = (module_of(entry.player), entry.server, entry.codebook, module_of(entry.bits_bound))
    return KERNELS.get(protocol) == found


def _environment(environment: Environment | None, **options: Any) -> Environment:
    if environment is not None:
        for field, value in options.items():
            if value is not None:
                said = f"is part of an environment, got {value!r} and the environment {environment!r}: choose one"
                raise InvalidSettings(said, field=field, code="conflict")
        return environment
    problem, means = options["problem"], options["means"]
    if means is not None and problem is not None:
        raise InvalidSettings(f"choose problem or means, got both: {problem!r} and {list(means)!r}", code="conflict")
    if problem not in (None, *PROBLEMS):
        raise _no_choice("problem", problem, PROBLEMS)
    return Environment(
        means=PROBLEMS[int(problem or 1)] if means is None else means,
        law=_law(options["rewards"]),
        spread=options["spread"] or 0.0,
        drift_to=options["drift_to"],
        site_spread=options["site_spread"] or 0.0,
        visitor_spread=options["visitor_spread"] or 0.0,
        cycle=options["cycle"],
        jumps=options["jumps"],
        swap=options["swap"],
    )


def _law(rewards: str | RewardLaw | None) -> RewardLaw:
    if callable(rewards):
        return rewards
    if rewards in (None, "bernoulli"):
        return bernoulli
    name, _, concentration = str(rewards).partition(":")
    if name == "beta":
        try:
            return BetaLaw(float(concentration or 4.0))
        except ValueError:
            pass
    allowed = "'bernoulli', 'beta' or 'beta:CONCENTRATION' (above 0)"
    raise InvalidSettings(f"must be {allowed}, got {rewards!r}", field="rewards", code="choice")


def _baseline_parameters(
    allowed: Mapping[str, Parameter], given: Mapping[str, Parameter]
) -> tuple[tuple[str, Parameter], ...]:
    for name in given:
        if name not in allowed:
            said = f"must be of {one_of(allowed) or 'none'}, got {name!r}"
            raise InvalidSettings(said, field="parameters", code="unknown")
    return tuple((dict(allowed) | check_parameters(given)).items())


def _count(field: str, value: float, least: int) -> int:
    """A whole number, also when written as 1e6."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1 or value < least:
        raise InvalidSettings(f"must be a whole number of at least {least}, got {value!r}", field=field, code="range")
    return int(value)


def _no_choice(field: str, value: object, allowed: Any) -> InvalidSettings:
    return InvalidSettings(f"must be one of {one_of(allowed)}, got {value!r}", field=field, code="choice")
