"""Measures what Tally must show, and writes `benchmarks/tally/measures.json`, from which docs/tally.md is made.

    .venv/bin/python benchmarks/tally/measure.py [--quick] [--only targets,errors,…]

Every figure is a mean over simulated trials with a 95 % interval, or a share with its exact (Clopper and Pearson's).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import outvote
from benchmarks.kept import Effort, Record, mean_of, measure_parts, share_of
from benchmarks.tally import delayed
from outvote.core.protocols import REGISTRY
from outvote.core.tally import homogeneity
from outvote.simulation import Result
from outvote.simulation.executors import cores
from outvote.theory import identification_bound

*_, DEFAULT_PRIVATE_FLOOR = REGISTRY["tally"].floors
RESULTS = Path(__file__).with_name("measures.json")
PROBLEMS = {1: (0.7, 0.5, 0.3, *(0.1,) * 7), 2: (0.3, 0.2, *(0.1,) * 8)}
HORIZON = 1_000_000
LOT = 10
"""Trials that share a shuffle of the arms."""


def targets(effort: Effort) -> Record:
    """The four settings of the paper, one default configuration, against UCB1 with unlimited communication."""
    rows = []
    for problem, means in PROBLEMS.items():
        ucb = outvote.simulate(
            protocol="ucb-unlimited", problem=problem, horizon=HORIZON, trials=effort(1000), grid=1, workers=cores()
        )
        dme = {
            activity: outvote.simulate(
                protocol="dme", problem=problem, activity=activity, horizon=HORIZON, trials=effort(200), grid=1
            )
            for activity in ("uniform", "80-20")
        }
        for activity in ("uniform", "80-20"):
            row = setting(means, effort(4000), activity=activity, players=64)
            row |= {
                "problem": problem,
                "ucb_regret": ucb.regret.mean[-1],
                "dme_regret": dme[activity].regret.mean[-1],
                "dme_bits": dme[activity].bits.total,
            }
            rows.append(row)
    return {"rows": rows}


def setting(means: tuple[float, ...], trials: int, *, horizon: int = HORIZON, **options: Any) -> Record:
    """Tally as it comes in one setting. Intervals are those of a mean over shuffles."""
    results = shuffled(trials, means=means, horizon=horizon, **options)
    one = results[0]
    bound = identification_bound(means, one.delta)
    draws = [result.finished.mean for result in results if result.finished.mean is not None]
    return {
        "means": list(means),
        "players": one.players,
        "activity": one.activity,
        "trials": trials,
        "regret": mean_of([result.regret.mean[-1] for result in results]),
        "draws": mean_of(draws) if draws else None,
        "finished": mean_of([result.finished.share for result in results])["mean"],
        "bound": bound if math.isfinite(bound) else None,
        "bits": mean_of([result.bits.total for result in results])["mean"],
        "bits_with_arm": mean_of([result.bits.with_arm for result in results])["mean"],
        "wrong": share_of(lost(results), trials),
        "held": mean_of([result.held for result in results])["mean"],
    }


def shuffled(trials: int, **options: Any) -> list[Result]:
    """Trials of Tally, `LOT` of each task: a task's shuffle of the arms is a part of its luck, so there are many tasks.

    The first lot is played here, so that workers find everything compiled.
    """
    play = partial(lot, options)
    with ProcessPoolExecutor(cores()) as pool:
        return [play(0), *pool.map(play, range(1, trials // LOT), chunksize=4)]


def lot(options: Record, number: int) -> Result:
    """Arms that are called otherwise are shuffled otherwise."""
    arms = [f"{number}.{arm}" for arm in range(len(options["means"]))]
    return outvote.simulate(protocol="tally", arms=arms, trials=LOT, grid=1, seed=number, workers=1, **options)


def lost(results: list[Result]) -> int:
    """Trials in which the first arm, which is best in all settings here, was eliminated."""
    return sum(round(result.eliminations[0].share * result.trials) for result in results)


OTHERS: dict[str, Record] = {
    "2 arms, 16 players": {"means": (0.6, 0.5), "players": 16},
    "4 arms, 8 players, 80-20": {"means": (0.45, 0.4, 0.3, 0.2), "players": 8, "activity": "80-20"},
    "5 rare arms, 128 players": {"means": (0.05, 0.03, 0.02, 0.01, 0.01), "players": 128},
    "6 frequent arms, 64 players, 80-20": {
        "means": (0.97, 0.93, 0.9, 0.85, 0.8, 0.7), "players": 64, "activity": "80-20",
    },
    "20 arms, 256 players": {"means": (0.6, *(0.5,) * 5, *(0.4,) * 14), "players": 256},
    "50 arms, 64 players": {"means": (0.5, *(0.35,) * 9, *(0.2,) * 40), "players": 64},
    "3 arms, 2 players": {"means": (0.8, 0.6, 0.5), "players": 2},
    "10 arms, 512 players, 80-20": {"means": (0.4, 0.3, *(0.2,) * 8), "players": 512, "activity": "80-20"},
}  # fmt: skip
"""Settings that nothing was tuned on."""


def others(effort: Effort) -> Record:
    """The same configuration elsewhere."""
    rows = []
    for name, options in OTHERS.items():
        chosen = dict(options)
        means = chosen.pop("means")
        ucb = outvote.simulate(
            protocol="ucb-unlimited", means=means, players=chosen["players"], horizon=HORIZON, trials=effort(100),
            grid=1, workers=cores(),
        )  # fmt: skip
        row = setting(means, effort(1000), **chosen)
        rows.append({"name": name, "ucb_regret": ucb.regret.mean[-1], **row})
    return {"rows": rows}


def many(effort: Effort) -> Record:
    """1,024 players: Tally, and how long DME needs until one arm is left."""
    rows = []
    for problem, means in PROBLEMS.items():
        row = setting(means, effort(400), players=1024)
        dme = outvote.simulate(
            protocol="dme", problem=problem, players=1024, horizon=4e8, trials=effort(40), grid=1, workers=cores()
        )
        rows.append({"problem": problem, **row, "dme_draws": dme.finished.mean, "dme_finished": dme.finished.share})
    return {"rows": rows}


PRIVATE_FLOORS = (7, 15, DEFAULT_PRIVATE_FLOOR, 31)


def privacy(effort: Effort) -> Record:
    """What a privacy budget costs, at the same floor and against the default without one."""
    rows = []
    for problem, means in PROBLEMS.items():
        for activity in ("uniform", "80-20"):
            options: Record = {"activity": activity, "players": 64, "horizon": 200_000}
            row: Record = {"problem": problem, "activity": activity, "default": setting(means, effort(1000), **options)}
            for floor in PRIVATE_FLOORS:
                row[f"without, floor {floor}"] = setting(means, effort(1000), floor=floor, **options)
                for budget in (1.0, 0.5):
                    row[f"budget {budget:g}, floor {floor}"] = setting(
                        means, effort(1000), floor=floor, privacy_budget=budget, **options
                    )
            rows.append(row)
    return {"rows": rows}


HARD: dict[str, Record] = {
    "two equal best of 4": {"means": (0.5, 0.5, 0.4, 0.3), "horizon": 100_000},
    "all 5 equal": {"means": (0.3,) * 5, "horizon": 100_000},
    "a gap of .02 at .5": {"means": (0.5, 0.48), "horizon": 200_000},
    "a gap of .02 near 0": {"means": (0.03, 0.01, 0.01), "horizon": 100_000},
    "a gap of .02 near 1": {"means": (0.99, 0.97, 0.97), "horizon": 100_000},
    "50 arms, gaps of .02": {"means": (0.5, *(0.48,) * 49), "horizon": 200_000, "trials": 1000},
    "10 equal arms, 3 players": {"means": (0.5,) * 10, "players": 3, "horizon": 100_000},
    "80-20, half of the players dead": {
        "means": (0.5, 0.48, 0.4), "activity": "80-20", "dead": 32, "horizon": 100_000,
    },
    "two equal best, privacy budget 1": {"means": (0.3, 0.3, 0.2), "privacy_budget": 1.0, "horizon": 100_000},
    "a gap of .02, privacy budget .5": {"means": (0.12, 0.1), "privacy_budget": 0.5, "horizon": 200_000},
    "ε = .1, the second .12 worse": {"means": (0.62, *(0.5,) * 5), "epsilon": 0.1, "horizon": 50_000},
    "rewards between 0 and 1": {
        "means": (0.5, 0.48, 0.48), "rewards": "beta:2", "horizon": 20_000, "trials": 400, "engine": "core",
    },
}  # fmt: skip
"""Where errors are likeliest; the first arm is best, or one of the best."""


def errors(effort: Effort) -> Record:
    """How often a best arm is eliminated, at δ = .05 and at δ = .2."""
    rows = []
    for name, options in HARD.items():
        for delta in (0.05, 0.2):
            chosen = dict(options)
            trials = effort(chosen.pop("trials", 4000))
            result = outvote.simulate(
                protocol="tally", delta=delta, trials=trials, grid=1, workers=cores(), **{"players": 64, **chosen}
            )
            wrong = round((1 - result.safe) * trials) if chosen.get("epsilon") else lost([result])
            rows.append(
                {"name": name, "delta": delta, "wrong": share_of(wrong, trials), "finished": result.finished.share}
            )
    return {"rows": rows}


def delays(effort: Effort) -> Record:
    """The same where when an outcome is reported, and whether it is, depends on what it is."""
    rows = []
    for name in delayed.CASES:
        for delta in (0.05, 0.2):
            trials = effort(400)
            with ProcessPoolExecutor(cores()) as pool:
                left = list(pool.map(partial(delayed_trial, name, delta), range(trials), chunksize=8))
            rows.append(
                {
                    "name": name,
                    "delta": delta,
                    "wrong": share_of(sum(0 not in arms for arms in left), trials),
                    "finished": sum(len(arms) == 1 for arms in left) / trials,
                }
            )
    return {"rows": rows}


def delayed_trial(name: str, delta: float, seed: int) -> tuple[int, ...]:
    return delayed.run(delayed.CASES[name], players=12, delta=delta, horizon=12_000, seed=seed)[0]


def sites(effort: Effort) -> Record:
    """Sites whose means differ: what the hold does, and what would happen without it."""
    rows = []
    settings: dict[str, Record] = {
        f"Problem {problem}, {activity}": {"means": means, "activity": activity}
        for problem, means in PROBLEMS.items()
        for activity in ("uniform", "80-20")
    }
    settings["close arms, 80-20"] = {"means": (0.4, 0.35, 0.3, 0.3), "activity": "80-20"}
    usual = homogeneity.FALSE_ALARM
    for name, options in settings.items():
        for spread in (0.3, 0.6, 1.0):
            row: Record = {"name": name, "spread": spread}
            for what, rate in (("with", usual), ("without", 0.0)):
                homogeneity.FALSE_ALARM = rate
                trials = effort(200)
                result = outvote.simulate(
                    protocol="tally", spread=spread, players=64, horizon=8_000, trials=trials, grid=1, engine="core",
                    workers=cores(), **options,
                )  # fmt: skip
                row[what] = {"lost": share_of(lost([result]), trials), "held": result.held}
            homogeneity.FALSE_ALARM = usual
            rows.append(row)
    equal = []
    for name, options in settings.items():
        trials = effort(20_000)
        result = outvote.simulate(
            protocol="tally", players=64, horizon=8_000, trials=trials, grid=1, workers=cores(), **options
        )
        equal.append({"name": name, "held": share_of(round(result.held * trials), trials)})
    return {"rows": rows, "equal": equal, "false_alarm": usual}


PARTS: dict[str, Callable[[Effort], Record]] = {
    "targets": targets,
    "others": others,
    "many": many,
    "privacy": privacy,
    "errors": errors,
    "delays": delays,
    "sites": sites,
}


if __name__ == "__main__":
    sys.exit(measure_parts(__doc__, PARTS, RESULTS))
