"""UCB1 on the paper's Problem 1 by the public interface of one library; prints one line of JSON. PEER HORIZON SEED.

It runs in that library's environment, where outvote is not installed: the standard library and the peer only. Index of
an arm, for all of them: μ̂ + √(2 ln t / pulls). Rewards come from `random.random()`, the cheapest there is in Python,
where the library does not draw them itself.
"""

from __future__ import annotations

import json
import math
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

MEANS = (0.7, 0.5, 0.3, *(0.1,) * 7)
GAPS = tuple(max(MEANS) - mean for mean in MEANS)
NUMPY_TRIALS = 100

Played = tuple[float, list[float]]
"""Seconds, and the regret of each trial."""


def drive(pull: Callable[[], int], update: Callable[[int, float], Any], horizon: int, seed: int) -> Played:
    """A policy that is asked for an arm and told its reward."""
    uniform = random.Random(seed).random
    pulls = [0] * len(MEANS)
    start = time.perf_counter()
    for _ in range(horizon):
        arm = pull()
        update(arm, 1.0 if uniform() < MEANS[arm] else 0.0)
        pulls[arm] += 1
    seconds = time.perf_counter() - start
    return seconds, [math.fsum(gap * count for gap, count in zip(GAPS, pulls, strict=True))]


def play_pymab(horizon: int, seed: int) -> Played:
    """Its own experiment loop, which its Rust backend runs; c = 2 is the constant under the root."""
    import numpy as np
    from pymab import BanditEnvironment, BernoulliReward, Experiment, ExperimentConfig  # type: ignore[import-not-found]
    from pymab.policies import UCBPolicy  # type: ignore[import-not-found]

    experiment = Experiment(
        environment=BanditEnvironment(means=np.array(MEANS), reward_model=BernoulliReward()),
        policies={"ucb": UCBPolicy(n_arms=len(MEANS), c=2.0)},
        config=ExperimentConfig(horizon=horizon, n_replicates=1, seed=seed, backend="rust"),
    )
    start = time.perf_counter()
    result = experiment.run()
    return time.perf_counter() - start, [float(result.cumulative_regret[-1][0])]


def play_smpybandits(horizon: int, seed: int) -> Played:
    """`UCB`, not `UCBalpha`: it has the 2 under the root."""
    import numpy as np
    from SMPyBandits.Policies import UCB  # type: ignore[import-not-found]

    np.random.seed(seed)  # noqa: NPY002 - the library breaks ties with the global generator
    policy = UCB(len(MEANS))
    policy.startGame()
    return drive(policy.choice, policy.getReward, horizon, seed)


def play_mabwiser(horizon: int, seed: int) -> Played:
    """alpha = 1 multiplies a root that has the 2 in it. It must be fitted before it predicts: each arm once."""
    from mabwiser.mab import MAB, LearningPolicy  # type: ignore[import-not-found]

    uniform = random.Random(seed + 10**6).random
    arms = list(range(len(MEANS)))
    bandit = MAB(arms, LearningPolicy.UCB1(alpha=1.0), seed=seed)
    bandit.fit(arms, [1.0 if uniform() < mean else 0.0 for mean in MEANS])
    seconds, (regret,) = drive(
        bandit.predict, lambda arm, reward: bandit.partial_fit([arm], [reward]), horizon - len(arms), seed
    )
    return seconds * horizon / (horizon - len(arms)), [regret + math.fsum(GAPS)]


def play_river(horizon: int, seed: int) -> Played:
    """delta = 1 multiplies a root that has the 2 in it."""
    from river import bandit  # type: ignore[import-not-found]

    policy = bandit.UCB(delta=1.0, seed=seed)
    return drive(partial(policy.pull, range(len(MEANS))), policy.update, horizon, seed)


def play_numpy(horizon: int, seed: int) -> Played:
    """What one would write without any library: one loop over draws, all trials in each step."""
    import numpy as np

    rng = np.random.default_rng(seed)
    means = np.array(MEANS)
    trials = np.arange(NUMPY_TRIALS)
    pulls = np.zeros((NUMPY_TRIALS, len(MEANS)))
    totals = np.zeros((NUMPY_TRIALS, len(MEANS)))
    start = time.perf_counter()
    for draw in range(horizon):
        if draw < len(MEANS):
            arms = np.full(NUMPY_TRIALS, draw)
        else:
            arms = np.argmax(totals / pulls + np.sqrt(2.0 * math.log(draw) / pulls), axis=1)
        pulls[trials, arms] += 1.0
        totals[trials, arms] += rng.random(NUMPY_TRIALS) < means[arms]
    seconds = time.perf_counter() - start
    return seconds, (pulls @ np.array(GAPS)).tolist()


PEERS: dict[str, Callable[[int, int], Played]] = {
    "pymab": play_pymab,
    "SMPyBandits": play_smpybandits,
    "mabwiser": play_mabwiser,
    "river": play_river,
    "numpy": play_numpy,
}


def main(peer: str, horizon: int, seed: int) -> None:
    seconds, regrets = PEERS[peer](horizon, seed)
    nanoseconds = seconds / (horizon * len(regrets)) * 1e9
    print(json.dumps({"version": version(peer), "ns": nanoseconds, "regrets": regrets}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
