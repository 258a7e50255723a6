"""Measures what the rules for η give, and writes `measures.json`, from which docs/guarantees.md is made.

    .venv/bin/python benchmarks/guarantees/measure.py [--quick] [--only rules,hard,quorums]

Every figure is a mean over simulated trials with a 95 % interval, or a share with its exact (Clopper and Pearson's).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import outvote
from benchmarks.kept import Effort, Record, mean_of, measure_parts, share_of
from outvote.simulation import Result
from outvote.simulation.executors import cores

RESULTS = Path(__file__).with_name("measures.json")
PLAYERS = (4, 16, 64, 256, 1024)
SEED = 41


def rules(effort: Effort) -> Record:
    """The paper's constants: players alone, and a fleet under each rule for η, until they have finished."""
    rows = []
    for players in PLAYERS:
        row: Record = {"players": players}
        for name, protocol, quorum in (
            ("alone", "me-local", "paper"),
            ("paper", "dme", "paper"),
            ("certified", "dme", "certified"),
        ):
            result = outvote.simulate(
                protocol=protocol, quorum=quorum, problem=1, players=players, epsilon=0.5, delta=0.05,
                horizon=300_000 * players, trials=effort(2000), seed=SEED, grid=1, engine="fast", workers=cores(),
            )  # fmt: skip
            row[name] = ended(result) | {"wrong": share_of(round((1 - result.correct) * result.trials), result.trials)}
        rows.append(row)
    return {"rows": rows}


def ended(result: Result) -> Record:
    """When the trials finished; all of them must have."""
    draws = [draw for draw in result.per_trial.finished if draw is not None]
    if len(draws) < result.trials:
        raise SystemExit(f"{result.trials - len(draws)} of {result.trials} trials did not finish: raise the horizon")
    return {"draws": mean_of(draws)}


HARD: dict[str, Record] = {
    "one good arm, four just over ε worse": {"means": (0.96, *(0.05,) * 4), "epsilon": 0.9, "delta": 0.5, "players": 4},
    "the same at ½": {"means": (0.73, *(0.27,) * 4), "epsilon": 0.45, "delta": 0.5, "players": 8},
    "two good arms of six": {"means": (0.73, 0.73, *(0.27,) * 4), "epsilon": 0.45, "delta": 0.5, "players": 8},
    "nine good arms of ten": {"means": (*(0.73,) * 9, 0.27), "epsilon": 0.45, "delta": 0.5, "players": 16},
    "two arms, ε = .95": {"means": (0.98, 0.02), "epsilon": 0.95, "delta": 0.9, "players": 1},
    "ε/4 apart, one player": {"means": (0.62, 0.38), "epsilon": 0.95, "delta": 0.9, "players": 1},
    "ε/4 apart, one vote is enough": {
        "means": (0.62, 0.38), "epsilon": 0.95, "delta": 0.9, "players": 8, "active_players": 1,
    },
    "ε/4 apart, five arms, one vote is enough": {
        "means": (0.62, *(0.38,) * 4), "epsilon": 0.95, "delta": 0.9, "players": 4, "active_players": 1,
    },
    "ε/4 apart, two best of four": {
        "means": (0.62, 0.62, 0.38, 0.38), "epsilon": 0.95, "delta": 0.9, "players": 5,
    },
    "ε/4 apart, nine best of ten": {"means": (*(0.62,) * 9, 0.38), "epsilon": 0.95, "delta": 0.9, "players": 16},
}  # fmt: skip
"""Where an error is likeliest. The first arm is a best one, and every arm that is no best one counts as an error: it is
just more than ε worse, or, where it says so, just more than ε/4."""


def play_hard(name: str, *, quorum: str, trials: int, seed: int = SEED, **changes: float) -> Result:
    """One of those instances; every trial ends."""
    options = HARD[name] | changes
    return outvote.simulate(
        protocol="dme", quorum=quorum, horizon=200_000 * options["players"], trials=trials, seed=seed, grid=1,
        engine="fast", **options,
    )  # fmt: skip


def hard(effort: Effort) -> Record:
    """How often the answer is no best arm, under both rules."""
    rows = []
    for name, options in HARD.items():
        row: Record = {"name": name, "delta": options["delta"], "players": options["players"]}
        for quorum in ("paper", "certified"):
            result = play_hard(name, quorum=quorum, trials=effort(20_000))
            row[quorum] = ended(result) | {"wrong": share_of(round((1 - result.best) * result.trials), result.trials)}
        rows.append(row)
    return {"rows": rows}


def quorums(effort: Effort) -> Record:
    """The certified rule with quorums from a single vote to half of the fleet: when it ends."""
    rows = []
    for active in (1, 8, 13, 32, 64):
        row: Record = {"active_players": active}
        for activity in ("uniform", "80-20"):
            result = outvote.simulate(
                protocol="dme", quorum="certified", problem=1, players=64, active_players=active, activity=activity,
                epsilon=0.5, delta=0.05, horizon=40_000_000, trials=effort(1000), seed=SEED, grid=1, engine="fast",
                workers=cores(),
            )  # fmt: skip
            row[activity] = ended(result) | {
                "wrong": share_of(round((1 - result.correct) * result.trials), result.trials),
                "bits": result.bits.total,
            }
        rows.append(row)
    return {"rows": rows}


PARTS: dict[str, Callable[[Effort], Record]] = {"rules": rules, "hard": hard, "quorums": quorums}


if __name__ == "__main__":
    sys.exit(measure_parts(__doc__, PARTS, RESULTS))
