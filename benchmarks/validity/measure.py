"""Checks the guarantee of blocks at large, and writes `benchmarks/validity/measures.json` (`make validity`).

    .venv/bin/python benchmarks/validity/measure.py [--quick] [--only exact,scenarios,controls]

Expectations are exact, by enumeration with fractions. Shares are of simulated fleets, with exact 95 % intervals.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.kept import Effort, Record, measure_parts, share_of
from benchmarks.validity.enumerations import ENUMERATIONS, STAKES, among_arms, largest, unequal_to_matching
from benchmarks.validity.scenarios import CONTROLS, SCENARIOS, Scenario
from outvote.simulation.executors import cores

RESULTS = Path(__file__).with_name("measures.json")
DELTAS = (0.05, 0.2, 0.5)
SEED = 2_200_000
LOT = 100
"""Fleets that a worker plays at once."""
ALARM = 1e-6
"""So seldom would a share that is at most δ be called more."""


def exact(effort: Effort) -> Record:
    """The largest ratio of E G to its bound, over all populations there are: at most 1, which many of them reach."""
    quick = effort(1000) < 1000
    rows = []
    with ProcessPoolExecutor(cores()) as pool:
        for name, enumeration in ENUMERATIONS.items():
            cases = [*enumeration.small, *(() if quick else enumeration.large)]
            found = list(pool.map(largest, [name] * len(cases), cases))
            worst = max(top for _, top in found)
            rows.append({"name": name, "ratios": sum(count for count, _ in found), "largest": str(worst)})
    ways, wrong = unequal_to_matching(3 if quick else 5)
    return {
        "stakes": [str(stake) for stake in STAKES],
        "rows": rows,
        "matching": {"counts": ways, "unequal": wrong},
        "drawn among the arms left": {size: float(among_arms(size)) for size in (3, 5, 7)},
    }


def scenarios(effort: Effort) -> Record:
    return {"rows": shares(SCENARIOS, effort(3000), DELTAS)}


def controls(effort: Effort) -> Record:
    return {"rows": shares(CONTROLS, effort(3000), DELTAS[:1])}


def shares(chosen: dict[str, Scenario], fleets: int, deltas: tuple[float, ...]) -> list[Record]:
    """In how many fleets an arm was refuted while it was at least as good as every other: of each arm at most δ."""
    rows = []
    with ProcessPoolExecutor(cores()) as pool:
        for name, scenario in chosen.items():
            for delta in deltas:
                seeds = [range(SEED + first, SEED + min(first + LOT, fleets)) for first in range(0, fleets, LOT)]
                courses = list(pool.map(play_lot, [name] * len(seeds), [delta] * len(seeds), seeds))
                wrong = np.concatenate([lot[0] for lot in courses])
                decided = np.concatenate([lot[1] for lot in courses])
                count = int(wrong.sum(axis=0).max())
                rows.append(
                    {
                        "name": name,
                        "delta": delta,
                        "sites": scenario.sites,
                        "one arm": share_of(count, fleets),
                        "more than delta": bool(binom.sf(count - 1, fleets, delta) < ALARM),
                        "any arm": share_of(int(wrong.any(axis=1).sum()), fleets),
                        "decided": float((decided >= 0).mean()),
                    }
                )
    return rows


def play_lot(name: str, delta: float, seeds: range) -> tuple[np.ndarray, np.ndarray]:
    """Of each fleet: which arms were lost wrongly, and when it decided."""
    scenario = {**SCENARIOS, **CONTROLS}[name]
    courses = [scenario.play(delta, seed) for seed in seeds]
    return np.array([course.wrong for course in courses]), np.array([course.decided for course in courses])


PARTS: dict[str, Callable[[Effort], Record]] = {"exact": exact, "scenarios": scenarios, "controls": controls}


def faults() -> list[str]:
    """What the last full measurement found and must not find."""
    measures = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    rows = {part: measures.get(part, {}).get("rows", []) for part in PARTS}
    return [
        *(f"pays more than its bound: {row['name']}" for row in rows["exact"] if Fraction(row["largest"]) > 1),
        *(f"loses an arm too often: {row['name']}" for row in rows["scenarios"] if row["more than delta"]),
        *(f"is not found out: {row['name']}" for row in rows["controls"] if not row["more than delta"]),
    ]


if __name__ == "__main__":
    code = measure_parts(__doc__, PARTS, RESULTS)
    for fault in (found := faults()):
        print(fault, file=sys.stderr)
    sys.exit(code or bool(found))
