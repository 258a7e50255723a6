"""What the core costs in process: `decide` and `reward`, the engine `core` that drives its objects, the import."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.timing import Timed, best_of, say, timed_calls
from outvote import Tally, Task, protocols, simulate
from outvote.core.decisions import Ticket

WINDOW = 60.0
"""For rewards, in seconds."""
PACE = 1
"""Milliseconds between two events of a site: a busy one."""
TICK = 200
"""Events between two ticks, in which an edge counts what is due."""
PROTOCOLS = ("dme", "edme", "tally", "me-local", "me-unlimited", "ucb-unlimited")
IMPORT = "import sys, outvote; sys.exit(bool({'numpy', 'scipy', 'numba', 'matplotlib', 'rich'} & set(sys.modules)))"


class Empty:
    """The least that any player costs: method calls that do nothing."""

    ticket = Ticket.uncounted(0)

    def decide(self, now: int) -> Ticket:
        return self.ticket

    def reward(self, ticket: Ticket, reward: float, now: int) -> None:
        pass

    def tick(self, now: int) -> tuple[()]:
        return ()


def measure(*, quick: bool) -> dict[str, Any]:
    """Nanoseconds per event or draw; milliseconds for the import."""
    say("core: decide + reward, and the engine `core`")
    events, rounds = (50_000, 3) if quick else (100_000, 7)
    rng = np.random.default_rng(0)
    rewards = (rng.random(events) < 0.5).astype(float).tolist()
    edme = Task(arms=10, players=64, epsilon=0.5, delta=0.05, protocol="edme", reward_window=WINDOW)
    dme = Task(arms=10, players=64, epsilon=0.5, delta=0.05, protocol="dme", reward_window=WINDOW)
    tally = Task(arms=10, players=64, epsilon=0, delta=0.05, protocol="tally", reward_window=WINDOW)
    players: dict[str, Callable[[], protocols.Player | Empty]] = {
        "empty": Empty,
        "dme": lambda: protocols.player(dme, 0),
        "edme": lambda: protocols.player(edme, 0),
        "tally": lambda: protocols.player(tally, 0),
    }
    events_timed: dict[str, Timed] = {
        name: timed_calls(partial(drive, make, rewards), events) for name, make in players.items()
    }
    draws_timed = {"draws": timed_calls(lambda: walk_through_draws(rng, events), events)} | {
        protocol: stepwise(protocol, events) for protocol in PROTOCOLS
    }
    milliseconds, standard_library_only = import_outvote(rounds=rounds)
    return {
        "event_ns": best_of(events_timed, rounds=rounds),
        "instances": len(edme.instances),
        "step_ns": best_of(draws_timed, rounds=rounds),
        "tally_server_us": best_of({"log": partial(replay, tally_log(tally), tally)}, rounds=rounds)["log"],
        "import_ms": milliseconds,
        "import_is_standard_library_only": standard_library_only,
    }


def drive(make: Callable[[], protocols.Player | Empty], rewards: list[float]) -> None:
    """So many events of a new player."""
    player, now = make(), 10**12
    for reward in rewards:
        now += PACE
        player.reward(player.decide(now), reward, now)
        if now % TICK == 0:
            player.tick(now)


def tally_log(task: Task) -> list[tuple[int, Tally]]:
    """What 64 sites send of ten equal arms: nothing is ever eliminated, so every tally has to be weighed."""
    sites = [protocols.player(task, number, rng=random.Random(number)) for number in range(64)]
    rng, now = random.Random(0), 10**12
    log: list[tuple[int, Tally]] = []
    while len(log) < 5_000:
        now += PACE
        number = rng.randrange(64)
        site = sites[number]
        site.reward(site.decide(now), float(rng.random() < 0.5), now)
        for message in site.tick(now):
            assert isinstance(message, Tally)
            log.append((number, message))
    return log


def replay(log: list[tuple[int, Tally]], task: Task) -> float:
    """Microseconds that a new server spends on each tally."""
    server = protocols.server(task)
    start = time.perf_counter()
    for number, message in log:
        server.receive(number, message, 0)
    return (time.perf_counter() - start) / len(log) * 1e6


def walk_through_draws(rng: np.random.Generator, draws: int) -> float:
    """What the engine does before any protocol: prepare the draws and walk through them."""
    total = 0.0
    for player, uniform in zip(rng.integers(0, 64, draws).tolist(), rng.random(draws).tolist(), strict=True):
        total += player + uniform
    return total


def stepwise(protocol: str, draws: int) -> Timed:
    def part() -> float:
        return simulate(protocol=protocol, engine="core", horizon=draws, trials=1).seconds / draws * 1e9

    return part


def import_outvote(*, rounds: int) -> tuple[float, bool]:
    """Milliseconds that `import outvote` adds to a bare interpreter, and whether it stays in the standard library."""
    bare = imported = float("inf")
    clean = True
    for _ in range(rounds):
        bare = min(bare, seconds_of("pass")[0])
        seconds, code = seconds_of(IMPORT)
        imported = min(imported, seconds)
        clean = clean and code == 0
    return max(0.0, imported - bare) * 1e3, clean


def seconds_of(program: str) -> tuple[float, int]:
    start = time.perf_counter()
    code = subprocess.run([sys.executable, "-I", "-c", program], check=False).returncode
    return time.perf_counter() - start, code
