"""`outvote.simulate`: from options to a `Result`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from outvote.simulation.environments import RewardLaw
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
    activity: str | Sequence[float] | Path = "uniform",
    dead: int = 0,
    active_players: float | None = None,
    instances: int | Sequence[float] | None = None,
    epsilon: float | None = None,
    delta: float = 0.05,
    quorum: str = "paper",
    code: str | None = None,
    floor: int | None = None,
    privacy_budget: float | None = None,
    rewards: str | RewardLaw = "bernoulli",
    spread: float = 0.0,
    drift_to: Sequence[float] | None = None,
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

    `protocol`: dme, edme, tally, me-local, me-unlimited or ucb-unlimited. `problem` 1 or 2 are the paper's; `means`
    names others. `activity`: "uniform", "80-20", a list of weights, or the path of a trace; the last `dead` players
    never wake. `active_players` is N_γ (default: what the activity implies); `edme` takes `instances` instead, `tally`
    neither. `epsilon` is .5 by default, 0 for `tally`; `floor` and `privacy_budget` are Tally's own. `rewards`:
    "bernoulli", "beta:CONCENTRATION" or a function (mean, uniform) -> reward. `spread` gives each player means of its
    own, `drift_to` moves them. The same seed gives the same result, whatever the number of `workers`. `engine`: "core"
    drives the core's own objects draw by draw, "fast" has compiled kernels of the same law, "auto" takes "fast" where
    it has a kernel. The first `liars` players `lie`: praise, damn, flood, opposite, swap, switch or silent; the fleet
    stands `tolerate` of them. Both take the engine "core". `progress` is told of trials as they are done.
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
