"""What a simulated draw costs in each kernel, and how that grows with players, horizon and the size of a fleet."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import MOST_TRIALS, WORTH_TIMING, Timed, best_of, say, timed_calls
from outvote.simulation.activity import Weighted
from outvote.simulation.arrays import Floats, Integers
from outvote.simulation.compiled import run_jump, run_step
from outvote.simulation.engines import Kernel, kernel_of
from outvote.simulation.kernels.compiling import compiled
from outvote.simulation.kernels.step import choose_player
from outvote.simulation.settings import read_settings
from outvote.simulation.streams import generator

CASES: dict[str, dict[str, Any]] = {
    "dme": {"protocol": "dme", "players": 64},
    "edme": {"protocol": "edme", "players": 256},
    "me-local": {"protocol": "me-local", "players": 64},
    "me-unlimited": {"protocol": "me-unlimited", "players": 64},
    "ucb-1": {"protocol": "ucb-unlimited", "problem": 1},
    "ucb-2": {"protocol": "ucb-unlimited", "problem": 2},
}
HORIZON = 1_000_000
WAYS: dict[str, tuple[Kernel, int]] = {"step": (run_step, 200), "curve": (run_jump, 200), "final": (run_jump, 1)}
"""A kernel and grid points: draw by draw; skipping from grid point to grid point; skipping to the horizon."""
LONGEST_STEPPED = 100_000_000
MILLIONS = ((500_000, 10**9, 1), (10**6, 10**9, 1), (10**6, 10**9, 200), (10**6, 10**11, 1))
"""Players, draws, grid points of the trials that take seconds."""
LARGE = Path(__file__).with_name("large.py")


def measure(*, quick: bool) -> dict[str, Any]:
    """Everything about engines, in nanoseconds per draw if nothing else is said."""
    rounds = 2 if quick else 7
    return {
        **per_draw(rounds),
        "players": by_players(rounds, (16, 256, 4096) if quick else (16, 64, 256, 1024, 4096, 16384)),
        "horizons": by_horizon(rounds, longest_stepped=LONGEST_STEPPED // 10 if quick else LONGEST_STEPPED),
        "fleets": [
            large_fleet(players, horizon, grid)
            for players, horizon, grid in (
                (64, 10**9, 1),
                (10**5, 10**9, 1),
                *(() if quick else MILLIONS),
            )
        ],
    }


def per_draw(rounds: int) -> dict[str, Any]:
    """The bare random numbers, and each case in each way that there is for it."""
    say("engines: nanoseconds per draw")
    parts: dict[str, Timed] = {"words": timed_words()}
    for name, case in CASES.items():
        for way in WAYS:
            if way == "step" and case["protocol"] == "ucb-unlimited":
                continue  # the step kernel is of the median family
            parts[f"{name} {way}"] = timed_kernel(way, horizon=HORIZON, **case)
    best = best_of(parts, rounds=rounds)
    return {
        "words_ns": best["words"],
        "cases_ns": {name: {way: best[f"{name} {way}"] for way in WAYS if f"{name} {way}" in best} for name in CASES},
    }


def timed_kernel(way: str, **options: Any) -> Timed:
    """Time one kernel, with as many trials as are worth it."""
    kernel, grid = WAYS[way]
    settings = read_settings(engine="fast", grid=grid, **options)
    rng = generator(0)
    kernel(settings, 1, rng)  # compiled now
    start = time.perf_counter()
    kernel(settings, 2, rng)
    trials = min(max(1, round(WORTH_TIMING / (time.perf_counter() - start) * 2)), MOST_TRIALS)
    return timed_calls(lambda: kernel(settings, trials, rng), trials * settings.horizon)


def timed_words() -> Timed:
    """The limit of any kernel that makes every draw: two random numbers each, and nothing done with them."""
    draws = 5_000_000
    activity = read_settings(players=64).activity
    assert isinstance(activity, Weighted)
    keep, alias = activity.alias_table()
    rng = generator(0)
    bare_words(rng, keep, alias, 1)
    return timed_calls(lambda: bare_words(rng, keep, alias, draws), draws)


@compiled
def bare_words(rng: np.random.Generator, keep: Floats, alias: Integers, draws: int) -> float:
    """What the random numbers of so many draws cost alone."""
    total = 0.0
    for _ in range(draws):
        total += choose_player(rng, keep, alias)
        total += rng.random()
    return total


def by_players(rounds: int, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """`dme` at one horizon for growing fleets, and which kernel `fast` takes for a curve."""
    say("engines: growing number of players")
    parts = {
        f"{players} {way}": timed_kernel(way, players=players, horizon=HORIZON) for players in sizes for way in WAYS
    }
    best = best_of(parts, rounds=rounds)
    return [
        {
            "players": players,
            **{way: best[f"{players} {way}"] for way in WAYS},
            "taken": "step" if kernel_of(read_settings(players=players, horizon=HORIZON)) is run_step else "jump",
        }
        for players in sizes
    ]


def by_horizon(rounds: int, *, longest_stepped: int) -> list[dict[str, Any]]:
    """`dme` with 64 players for growing horizons."""
    say("engines: growing horizon")
    horizons = (10**6, 10**7, 10**8, 10**9)
    parts = {
        f"{horizon} {way}": timed_kernel(way, players=64, horizon=horizon)
        for horizon in horizons
        for way in WAYS
        if way != "step" or horizon <= longest_stepped
    }
    best = best_of(parts, rounds=rounds)
    return [
        {"horizon": horizon, **{way: best.get(f"{horizon} {way}") for way in WAYS}}  # None: not worth the wait
        for horizon in horizons
    ]


def large_fleet(players: int, horizon: int, grid: int) -> dict[str, Any]:
    """One trial in a process of its own, whose peak memory is then the trial's."""
    say(f"engines: {players:,} players, {horizon:.0e} draws, {grid} grid point{'s' if grid > 1 else ''}")
    done = subprocess.run(
        [sys.executable, str(LARGE), str(players), str(horizon), str(grid)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return {"players": players, "horizon": horizon, "grid": grid, **json.loads(done.stdout)}
