"""What a simulated draw costs in the kernel of `blocks`, beside Tally's in the same run.

    .venv/bin/python benchmarks/blocks/kernel.py

Draws after the end of a trial are not made, so they are not counted. Figures are the best of several rounds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.timing import Timed, best_of, say, timed_calls
from outvote.simulation.engines import kernel_of, warm_up
from outvote.simulation.settings import read_settings
from outvote.simulation.streams import generator

PROBLEM_2: Final = (0.3, 0.2, *(0.1,) * 8)
CASES: Final[dict[str, dict[str, Any]]] = {
    "Problem 2, N = 64": {"means": PROBLEM_2, "players": 64, "horizon": 20_000},
    ".06 against 3 × .05, 80-20, N = 64": {
        "means": (0.06, *(0.05,) * 3), "players": 64, "activity": "80-20", "horizon": 200_000,
    },
    ".19 .18 .11, N = 16": {"means": (0.19, 0.18, 0.11), "players": 16, "horizon": 200_000},
    "4 equal arms, N = 64": {"means": (0.1,) * 4, "players": 64, "horizon": 1_000_000},
    "50 arms, N = 64": {"means": (0.5, *(0.3,) * 49), "players": 64, "horizon": 20_000},
}  # fmt: skip
WORLDS: Final[dict[str, dict[str, Any]]] = {
    "levels of sites": {"site_spread": 0.6},
    "visitors": {"visits": 5, "visitor_spread": 0.5},
    "20 decisions a day": {"per_day": 20},
}
"""Blocks alone, with four equal arms: Tally's kernel knows none of these."""
TRIALS: Final = 10


def beside_tally(rounds: int = 7) -> dict[str, Any]:
    """Nanoseconds per draw, by case, grid points and protocol; then those of blocks in other worlds."""
    say("blocks: nanoseconds per draw of the kernel, beside Tally's")
    parts = {
        (name, grid, protocol): timed(protocol=protocol, grid=grid, **case)
        for name, case in CASES.items()
        for grid in (1, 200)
        for protocol in ("blocks", "tally")
    }
    equal = {"protocol": "blocks", "grid": 1, **CASES["4 equal arms, N = 64"]}
    parts |= {(name, 1, "blocks"): timed(**equal, **world) for name, world in WORLDS.items()}
    best = best_of({str(key): part for key, part in parts.items()}, rounds=rounds)
    found: dict[str, Any] = {}
    for key in parts:
        name, grid, protocol = key
        found.setdefault(f"{name}, {grid} grid point{'s' if grid > 1 else ''}", {})[protocol] = round(best[str(key)], 1)
    return found


def timed(**options: Any) -> Timed:
    """Some trials of a setting, by its kernel."""
    settings = read_settings(engine="fast", trials=TRIALS, **options)
    kernel = kernel_of(settings)
    assert kernel is not None
    warm_up(settings)
    made = sum(trial.finished or settings.horizon for trial in kernel(settings, TRIALS, generator(1)))
    return timed_calls(lambda: kernel(settings, TRIALS, generator(1)), made)


if __name__ == "__main__":
    print(json.dumps(beside_tally(), indent=1, ensure_ascii=False))
