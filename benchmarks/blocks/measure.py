"""What blocks need, beside Tally in the same run: `make blocks` writes `measures.json`, docs/blocks.md is made of it.
Seeds are fixed and stand in the file; after each mean stands its standard error.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

import outvote
from benchmarks.timing import say
from outvote.core import protocols
from outvote.core.blocks.code import BlockCodebook
from outvote.core.messages import Block
from outvote.core.task import Task

HERE = Path(__file__).parent
SEED: Final = 22
DELTA: Final = 0.05
PROBLEM_1, PROBLEM_2 = (0.7, 0.5, 0.3, *[0.1] * 7), (0.3, 0.2, *[0.1] * 8)
CLOSE = (0.06, 0.05, 0.05, 0.05)
ROWS: Final[dict[str, dict[str, Any]]] = {
    ".06 against 3 × .05, 80-20, N = 8": {"means": CLOSE, "players": 8, "activity": "80-20"},
    ".06 against 3 × .05, 80-20, N = 64": {"means": CLOSE, "players": 64, "activity": "80-20"},
    ".06 against 3 × .05, 80-20, N = 500": {"means": CLOSE, "players": 500, "activity": "80-20"},
    ".19 .18 .11, N = 16": {"means": (0.19, 0.18, 0.11), "players": 16},
    ".4 .35 .3 .3, N = 8": {"means": (0.4, 0.35, 0.3, 0.3), "players": 8},
    "Problem 1, N = 64": {"means": PROBLEM_1, "players": 64},
    "Problem 2, N = 64": {"means": PROBLEM_2, "players": 64},
    "Problem 2, N = 64, 80-20": {"means": PROBLEM_2, "players": 64, "activity": "80-20"},
    "Problem 2, N = 1,024": {"means": PROBLEM_2, "players": 1024},
    "50 arms, N = 64": {"means": (0.5, *[0.3] * 49), "players": 64},
    ".12 against 11 × .10, N = 30, 80-20": {"means": (0.12, *[0.1] * 11), "players": 30, "activity": "80-20"},
}
KINDS: Final = {"floor 3": ("blocks", 3), "floor 1": ("blocks", 1), "tally": ("tally", 3)}


def run(kind: str, *, trials: int, horizon: float, seed: int = SEED, **world: Any) -> dict[str, Any]:
    """One setting: how often it decides, how often wrongly, and what a decision needs."""
    protocol, floor = KINDS[kind]
    result = outvote.simulate(
        protocol=protocol,
        floor=floor,
        delta=DELTA,
        horizon=horizon,
        trials=trials,
        seed=seed,
        grid=1,
        workers=2,
        **world,
    )
    per_trial = result.per_trial
    ended = [place for place, draws in enumerate(per_trial.finished) if draws is not None]
    return {
        "trials": trials,
        "decided": len(ended),
        "lost": result.lost,
        "draws": mean([float(per_trial.finished[place] or 0) for place in ended]),
        "bits": mean([float(per_trial.bits[place]) for place in ended]),
        "regret": mean([float(per_trial.regret[place]) for place in ended]),
        "seconds": round(result.seconds, 1),
        "engine": result.engine,
    }


def mean(values: Sequence[float]) -> list[float] | None:
    """The mean and its standard error."""
    if not values:
        return None
    spread = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return [round(float(np.mean(values)), 2), round(spread, 2)]


# ---- the parts


def table(trials: int) -> Any:
    """The table of DESIGN: draws, bits and regret."""
    found: dict[str, Any] = {}
    for name, world in ROWS.items():
        for kind in KINDS:
            say(f"blocks: {name}, {kind}")
            found.setdefault(name, {})[kind] = run(kind, trials=trials, horizon=3e6, **world)
    return found


def levels(trials: int) -> Any:
    """Sites of different levels: normal shifts of the log odds."""
    found = {}
    for means in ((0.12, 0.1, 0.1, 0.1), (0.055, 0.05, 0.05, 0.05)):
        for players in (20, 64, 500):
            for spread in (0.0, 0.3, 0.6, 1.0):
                for kind in ("floor 3", "tally"):
                    name = f"{means[0]} against 3 × {means[1]}, N = {players}, sd {spread}, {kind}"
                    say(f"blocks: {name}")
                    world: dict[str, Any] = {"means": means, "players": players, "site_spread": spread}
                    horizon = 1e6 if means[0] > 0.1 else 4e6
                    found[name] = run(kind, trials=trials if kind != "tally" else trials // 4, horizon=horizon, **world)
    return found


def ranking(trials: int) -> Any:
    """Sites that differ in ranking."""
    found = {}
    for players in (20, 64):
        for spread in (0.2, 0.4):
            world: dict[str, Any] = {
                "means": (0.12, 0.1, 0.1, 0.1),
                "players": players,
                "spread": spread,
            }
            found[f"N = {players}, sd {spread}"] = run("floor 3", trials=trials // 4, horizon=3e5, **world)
    return found


def small(trials: int) -> Any:
    """Small differences end, always."""
    found = {}
    for means, horizon in (((0.102, 0.1), 1e8), ((0.505, 0.5), 1e8)):
        say(f"blocks: {means}")
        found[f"{means[0]} against {means[1]}"] = run(
            "floor 3", trials=trials, horizon=horizon, means=means, players=16
        )
    return found


def speed(trials: int) -> Any:
    """In-process decide and reward beside Tally, and decisions a second that one server folds, decoding included."""
    found: dict[str, Any] = {}
    pairs: dict[str, list[float]] = {"blocks": [], "tally": []}
    for _ in range(7):
        for protocol, times in pairs.items():
            times.append(pair(protocol))
    found["ns of decide and reward"] = {protocol: round(min(times)) for protocol, times in pairs.items()}
    for size in (3, 31, 127):
        for planned in (True, False):
            found[f"decisions folded a second, t = {size}, {'planned' if planned else 'unplanned'}"] = folded(
                size, planned
            )
    return found


def pair(protocol: str) -> float:
    task = Task(arms=4, players=64, epsilon=0, delta=DELTA, protocol=protocol, reward_window=60.0)
    player = protocols.player(task, 0)
    count, now = 100_000, 1_800_000_000_000
    began = time.process_time_ns()
    for number in range(count):
        ticket = player.decide(now)
        player.reward(ticket, float(number % 10 == 0), now)
        if number % 200 == 0:
            now += 200
            player.tick(now)
    return (time.process_time_ns() - began) / count


def folded(size: int, planned: bool) -> int:
    """Of four arms with means of a tenth."""
    task = Task(arms=4, players=64, epsilon=0, delta=1e-300, protocol="blocks", floor=3)
    book, server, rng = BlockCodebook(task), protocols.server(task), random.Random(1)
    payloads = []
    number = {3: 2, 31: 16, 127: 64}[size]
    for player in range(64):
        for later in range(4):
            sizes = [size if planned else max(3, size - rng.randrange(max(size // 4, 1) + 1)) for _ in range(4)]
            counts = tuple((n, sum(rng.random() < 0.1 for _ in range(n))) for n in sizes)
            payloads.append((player, number + later, book.encode(Block(number + later, 0, counts)), sum(sizes)))
    began = time.process_time()
    for player, numbered, bits, _ in payloads:
        server.receive(player, book.decode_up(bits, player=player, sequence=numbered), 0)
    return round(sum(decisions for *_, decisions in payloads) / (time.process_time() - began))


PARTS: Final[dict[str, tuple[Callable[[int], Any], int]]] = {
    "table": (table, 400),
    "levels": (levels, 400),
    "ranking": (ranking, 400),
    "small": (small, 100),
    "speed": (speed, 1),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="measure these parts only")
    parser.add_argument("--trials", type=int, help="instead of the usual number")
    args = parser.parse_args()
    kept = HERE / "measures.json"
    found = json.loads(kept.read_text()) if kept.exists() else {}
    for part in args.only or PARTS:
        measure, trials = PARTS[part]
        found[part] = measure(args.trials or trials)
        kept.with_suffix(".part").write_text(json.dumps({"seed": SEED, "delta": DELTA, **found}, indent=1) + "\n")
        kept.with_suffix(".part").replace(kept)
    return 0


if __name__ == "__main__":
    sys.exit(main())
