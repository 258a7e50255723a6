"""`outvote.simulate`: from options to a `Result`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from outvote.core.registry import Parameter
from outvote.simulation.activity import Activity, ActivityFunction
from outvote.simulation.environments import Environment, RewardLaw
from outvote.simulation.executors import open_executor
from outvote.simulation.results import Result
from outvote.simulation.settings import Settings, read_settings
from outvote.simulation.sweep import sweep


def simulate(
    *,
    protocol: str = "dme",
    problem: int | None = None,
    means: Sequence[float] | None = None,
    arms: int | Sequence[str] | None = None,
    players: int = 64,
    activity: str | Sequence[float] | Path | ActivityFunction | Activity = "uniform",
    dead: int = 0,
    active_players: float | None = None,
    instances: int | Sequence[float] | None = None,
    epsilon: float | None = None,
    delta: float = 0.05,
    quorum: str | None = None,
    code: str | None = None,
    floor: int | None = None,
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
    swap: int | None = None,
    drop: float = 0,
    per_day: float | None = None,
    horizon: float = 1_000_000,
    trials: int = 100,
    seed: int = 0,
    grid: int = 200,
    engine: str = "auto",
    tolerate: int = 0,
    liars: int = 0,
    lie: str = "praise",
    workers: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Run a protocol or a baseline on simulated players and say what it cost.

    Parameters:
        protocol: dme, edme, tally, blocks, me-local, me-unlimited, ucb-unlimited, or what you registered.
        problem: 1 or 2, the paper's; `means` names others.
        arms: how many arms, or their names (default: one for each mean).
        activity: "uniform", "80-20", weights, the path of a trace, or a function `(time, generator) -> player`.
        dead: the last so many players never wake.
        active_players: N_γ (default: what the activity implies); `edme` takes `instances` instead.
        epsilon: how close to the best arm is good enough (default: .5, for `tally` and `blocks` 0).
        delta: the probability of failure that is allowed.
        quorum, code, tolerate: as in `Task`; `floor` is of `tally` and `blocks`, `privacy_budget` Tally's own.
        parameters: of a protocol or baseline that was registered with some.
        rewards: "bernoulli", "beta:CONCENTRATION", or a function `(mean, uniform number) -> reward`.
        spread, site_spread, visitor_spread: means that differ by player or visitor (see `Environment`).
        drift_to, cycle, jumps, swap: means that move (see `Environment`).
        environment: an `Environment`, in place of problem, means, rewards and all the above of means.
        visits: decisions of a visitor, on average, geometric; they come one after another to their site.
        drop: with this probability a site dies after a decision, and loses its open group.
        per_day: decisions a day of a site, on average: times are then milliseconds, not numbers of draws.
        horizon, trials, seed: draws of a trial, trials, and where all randomness comes from.
        grid: points of the regret curve.
        engine: "core" drives the core's own objects draw by draw, "fast" has compiled kernels of the same law for
            what is Outvote's own, "auto" takes "fast" where it has a kernel.
        liars, lie: the first so many players lie: praise, damn, flood, opposite, swap, switch or silent.
        workers: processes; the result does not depend on them.
        progress: called with the number of trials that were done since the last call.

    Returns a `Result`; the same seed gives the same one. Raises `InvalidSettings` or `InvalidTask`, both `ValueError`,
    for what cannot be simulated.

    >>> from outvote import simulate
    >>> result = simulate(protocol="dme", means=(0.9, 0.1), players=4, horizon=20_000, trials=5)
    >>> result.best, result.bits.total <= result.bits.bound
    (1, True)
    """
    options = dict(locals())  # all but these two are settings
    del options["workers"], options["progress"]
    return run(read_settings(**options), workers=workers, progress=progress)


def run(
    settings: Settings,
    *,
    workers: int | None = None,
    dask: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Run checked settings on `workers` processes (all cores), or on the Dask cluster at an address."""
    with open_executor(workers=workers, dask=dask) as executor:
        return sweep([settings], executor=executor, progress=progress)[0]
