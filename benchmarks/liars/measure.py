"""Measures what lying sites do to a fleet, and what tolerating them costs; writes `measures.json` for docs/liars.md.

    .venv/bin/python benchmarks/liars/measure.py [--quick] [--only price,tally,votes,hard]

All by the engine `core`: the core's own objects, on one core. Shares have exact 95 % intervals (Clopper and
Pearson's).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import outvote
from benchmarks.kept import Effort, Record, mean_of, measure_parts, share_of
from outvote.simulation import Result
from outvote.simulation.liars import LIES

RESULTS = Path(__file__).with_name("measures.json")
SEED = 53
FLEETS = (16, 64)
TOLERATED = (0, 1, 2, 4)
TRIALS = 30
"""Of each of many settings; where the error itself is measured, in `hard`, there are more."""


def play(**options: Any) -> Result:
    return outvote.simulate(**{"grid": 1, "seed": SEED, "engine": "core", **options})


def outcome(result: Result) -> Record:
    """How often the best arm was lost, how often there was an answer, and after how many draws and bits."""
    ended = [draw for draw in result.per_trial.finished if draw is not None]
    lost = round(result.trials * next(each.share for each in result.eliminations if each.arm == 0))
    return {
        "lost": share_of(lost, result.trials),
        "answered": len(ended) / result.trials,
        "held": result.held,
        "draws": mean_of(ended) if ended else None,
        "bits": result.bits.total,
    }


def price(_: Effort) -> Record:
    """What it costs to tolerate liars where there are none."""
    rows = []
    for problem in (1, 2):
        for players in FLEETS:
            for activity in ("uniform", "80-20"):
                row: Record = {"problem": problem, "players": players, "activity": activity}
                for tolerate in TOLERATED:
                    result = play(
                        protocol="tally", problem=problem, players=players, activity=activity, tolerate=tolerate,
                        horizon=15_000, trials=TRIALS,
                    )  # fmt: skip
                    row[str(tolerate)] = outcome(result)
                rows.append(row)
    return {"rows": rows}


FEW_ARMS: Record = {"means": (0.7, 0.4, 0.3, 0.3), "delta": 0.05}


def tally(_: Effort) -> Record:
    """Every lie, by 1, 2 and 4 sites, against a fleet that believes them and one that tolerates as many."""
    rows = []
    for players in FLEETS:
        for lie in LIES:
            row: Record = {"players": players, "lie": lie}
            for liars in TOLERATED[1:]:
                for tolerate in (0, liars):
                    result = play(
                        protocol="tally", players=players, liars=liars, lie=lie, tolerate=tolerate, **FEW_ARMS,
                        horizon=6_000, trials=TRIALS,
                    )  # fmt: skip
                    row[f"{liars} {'tolerated' if tolerate else 'believed'}"] = outcome(result)
            rows.append(row)
    return {"rows": rows}


VOTES: Record = {"means": (0.97, 0.05, 0.05), "epsilon": 0.9, "delta": 0.05}


def votes(_: Effort) -> Record:
    """Votes with both rules for η, and two quorums: half of the fleet, and a single vote."""
    rows = []
    for players in FLEETS:
        for quorum in ("paper", "certified"):
            for active in (players, 2):
                for liars, lie in ((0, "praise"), (1, "praise"), (2, "praise"), (4, "praise"), (4, "silent")):
                    if (quorum == "paper" and active == 2) or (players == 64 and (quorum == "paper" or 0 < liars < 4)):
                        continue
                    row: Record = {
                        "players": players, "quorum": quorum, "active_players": active, "liars": liars, "lie": lie,
                    }  # fmt: skip
                    for tolerate in {0, liars}:
                        result = play(
                            protocol="dme", quorum=quorum, players=players, active_players=active, liars=liars, lie=lie,
                            tolerate=tolerate, **VOTES, horizon=3_500 * players, trials=TRIALS if players == 16 else 12,
                        )  # fmt: skip
                        row["tolerated" if tolerate else "believed"] = outcome(result)
                    rows.append(row)
    return {"rows": rows}


HARD: dict[str, Record] = {
    "two equal best of 3, 16 sites, 2 lie": {"means": (0.5, 0.5, 0.3), "players": 16, "liars": 2},
    "two equal best of 2, 4 sites, 1 lies": {"means": (0.5, 0.5), "players": 4, "liars": 1},
    "a gap of .05, 16 sites, 2 lie": {"means": (0.5, 0.45), "players": 16, "liars": 2},
}
"""Where the best arm is lost most easily; the first arm is one of the best, and what the liars are against."""


def hard(effort: Effort) -> Record:
    """How often it is, at δ = .2, with as many liars as are tolerated, and one more."""
    rows = []
    for name, options in HARD.items():
        for lie in ("damn", "praise", "swap"):
            row: Record = {"name": name, "lie": lie}
            for more in (0, 1):
                chosen = options | {"liars": options["liars"] + more}
                result = play(
                    protocol="tally", lie=lie, tolerate=options["liars"], delta=0.2, **chosen,
                    horizon=2_500, trials=effort(200),
                )  # fmt: skip
                row["one more" if more else "tolerated"] = outcome(result)
            rows.append(row)
    return {"rows": rows}


PARTS: dict[str, Callable[[Effort], Record]] = {"price": price, "tally": tally, "votes": votes, "hard": hard}


if __name__ == "__main__":
    sys.exit(measure_parts(__doc__, PARTS, RESULTS))
