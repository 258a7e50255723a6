"""How fast the core and the step-wise engine are, as ratios within one run: `make bench`.

Absolute numbers depend on the machine and are printed beside the ratios only for orientation.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from outvote import Task, protocols, simulate

EVENTS = 300_000
REPEATS = 5


class Bare:
    """The least that any player costs: two method calls that return constants."""

    def decide(self) -> tuple[int, int]:
        return (0, 0)

    def reward(self, arm: int, reward: float, *, ticket: int | None = None) -> tuple[()]:
        return ()


def nanoseconds(work: Callable[[], object], events: int) -> float:
    """The best of several runs, per event."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best / events * 1e9


def drive(player: protocols.Player | Bare, rewards: list[float]) -> Callable[[], None]:
    def work() -> None:
        for reward in rewards:
            arm, ticket = player.decide()
            player.reward(arm, reward, ticket=ticket)

    return work


def main() -> None:
    rng = np.random.default_rng(0)
    rewards = (rng.random(EVENTS) < 0.5).astype(float).tolist()
    dme = Task(arms=10, players=64, epsilon=0.5, delta=0.05)
    edme = Task(arms=10, players=64, epsilon=0.5, delta=0.05, protocol="edme")
    figures = {
        "decide + reward, two empty methods": nanoseconds(drive(Bare(), rewards), EVENTS),
        "decide + reward, dme": nanoseconds(drive(protocols.player(dme, 0), rewards), EVENTS),
        "decide + reward, edme, 8 instances": nanoseconds(drive(protocols.player(edme, 0), rewards), EVENTS),
        "drawing a player and a uniform number": nanoseconds(lambda: walk_through_draws(rng), EVENTS),
    }
    for protocol in ("dme", "edme", "me-local", "me-unlimited", "ucb-unlimited"):
        figures[f"step-wise engine, {protocol}"] = nanoseconds(
            partial(simulate, protocol=protocol, horizon=EVENTS, trials=1), EVENTS
        )
    floor = figures["decide + reward, two empty methods"]
    draws = figures["drawing a player and a uniform number"]
    print(f"{'what':42} {'ns':>7} {'per second':>12}  ratio")
    for name, value in figures.items():
        base, of = (draws, "drawing alone") if name.startswith("step") else (floor, "empty methods")
        ratio = "" if value in (floor, draws) else f"{value / base:5.1f} × {of}"
        print(f"{name:42} {value:7.0f} {1e9 / value:12,.0f}  {ratio}")
    print(json.dumps({name: round(value, 1) for name, value in figures.items()}))


def walk_through_draws(rng: np.random.Generator) -> float:
    """What the engine does before any protocol: prepare the draws and walk through them."""
    total = 0.0
    for player, uniform in zip(rng.integers(0, 64, EVENTS).tolist(), rng.random(EVENTS).tolist(), strict=True):
        total += player + uniform
    return total


if __name__ == "__main__":
    main()
