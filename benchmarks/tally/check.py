"""Holds the compiled fleet of `variants.py` against the protocol itself: `python benchmarks/tally/check.py`.

Means of draws, regret and bits must agree within three standard errors of their difference. The protocol holds about
one trial in a hundred back because its sites seem to differ, so the draws of those that it ends are compared.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.tally.payments import bets_on
from benchmarks.tally.variants import DELTA, Setting, Variant, run, sizes_from

from outvote.core.bets import bets, means_bet_on
from outvote.core.cycle import Cycle
from outvote.simulation import run as simulation
from outvote.simulation.arrays import Floats
from outvote.simulation.environments import PROBLEMS
from outvote.simulation.settings import read_settings

CASES = ((1, "uniform", None), (1, "80-20", None), (2, "uniform", None), (2, "80-20", None), (1, "uniform", 1.0))
"""Problem, activity, privacy budget."""
PLAYERS = 64
LONGEST = {1: 6_000, 2: 14_000}
"""Draws by which practically all trials of a problem have ended."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trials", type=int, default=200, help="of the protocol; ten times as many here")
    trials = parser.parse_args().trials
    own_bets_agree()
    agreed = True
    for problem, activity, budget in CASES:
        agreed &= agree(problem, activity, budget, trials)
    return 0 if agreed else 1


def own_bets_agree() -> None:
    """Bets on a prior of one's own are those of the protocol where the prior is."""
    ours, theirs = bets_on(tuple(means_bet_on(0.0)), 7), bets(7, None, 0.0)
    np.testing.assert_allclose(ours.worse, theirs.worse, atol=1e-12)
    np.testing.assert_allclose(ours.better, theirs.better, atol=1e-12)
    np.testing.assert_allclose(ours.log_weights, theirs.log_weights, atol=1e-12)


def agree(problem: int, activity: str, budget: float | None, trials: int) -> bool:
    floor = 3 if budget is None else 15
    settings = read_settings(
        protocol="tally", problem=problem, players=PLAYERS, activity=activity, delta=DELTA, floor=floor,
        privacy_budget=budget, horizon=LONGEST[problem], trials=trials, grid=1, engine="core",
    )  # fmt: skip
    theirs = simulation.run(settings)
    variant = Variant(sizes=sizes_from(floor), budget=budget)
    setting = Setting(PROBLEMS[problem], PLAYERS, activity)
    ours = run(variant, setting, range(1, 10 * trials + 1), order=Cycle(settings.task).order)
    ended = [i for i, draw in enumerate(theirs.per_trial.finished) if draw is not None]
    print(f"Problem {problem}, {activity}, budget {budget}: {len(ended)} of {trials} trials ended, held {theirs.held}")
    return all(
        [
            compare("draws", np.array([theirs.per_trial.finished[i] for i in ended], float), ours.draws),
            compare("regret", np.array([theirs.per_trial.regret[i] for i in ended]), ours.regret),
            compare("bits", np.array([theirs.per_trial.bits[i] for i in ended], float), ours.up + ours.down),
        ]
    )


def compare(what: str, theirs: Floats, ours: Floats) -> bool:
    error = math.hypot(theirs.std(ddof=1) / math.sqrt(len(theirs)), ours.std(ddof=1) / math.sqrt(len(ours)))
    apart = (ours.mean() - theirs.mean()) / error
    print(f"  {what}: protocol {theirs.mean():.1f}, here {ours.mean():.1f}: {apart:+.2f} standard errors")
    return bool(abs(apart) <= 3)


if __name__ == "__main__":
    sys.exit(main())
