"""A day of a very large fleet, second by second: how many messages go up and down, computed from the laws of tasks.

The law of a task, how many messages its players have sent after so many events and when it ends, comes from the
simulator; a day puts ten thousand of them on one clock, under a traffic that comes and goes with the sun.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import say
from outvote import simulate

SECONDS = 86_400
EDGES = 1_000_000
TASKS = 10_000
EVENTS = 10_000
"""Of one edge for one of its tasks, a day."""
SWING = 0.7
"""Traffic goes from 1 − SWING to 1 + SWING times its mean: least at four in the morning, most in the afternoon."""
SETTLE = 2.0
"""Seconds after an elimination is due in which edges go on: their tick, the log, the server and the way back."""
DAYS = 4
"""No task takes longer."""
POINTS = 24
TRIALS = 40


@dataclass(frozen=True)
class Kind:
    """Some of the tasks."""

    name: str
    protocol: str
    players: int
    means: tuple[float, ...]
    share: float
    """Of all tasks."""
    epsilon: float = 0.0
    floor: int | None = None


KINDS = (
    Kind("a shop's hundred sites", "tally", 100, (0.10, 0.10, 0.10, 0.12), 0.45),
    Kind("a region of ten thousand", "tally", 10_000, (0.10, 0.10, 0.10, 0.12), 0.45, floor=31),
    Kind("a hundred that vote", "dme", 100, (0.2, 0.7), 0.10, epsilon=0.4),
)


ALONE = ((100, 3), (100, 31), (10_000, 3), (10_000, 31), (100_000, 3), (100_000, 31))
"""Players, and the floor of tallies."""


@dataclass(frozen=True)
class Law:
    """Of one kind: what its players have sent after so many events, and when it ends."""

    events: NDArray[np.float64]
    messages: NDArray[np.float64]
    ends: NDArray[np.float64]
    """Events until it has found its winner, in many trials."""
    news: float
    """Records that go down, one for all: created, eliminations, deleted."""


def law(kind: Kind, *, trials: int) -> Law:
    about = {
        "protocol": kind.protocol, "players": kind.players, "delta": 0.05, "epsilon": kind.epsilon,
        "floor": kind.floor, "seed": 1, "grid": 1,
    }  # fmt: skip
    horizon = 1e5
    while True:  # until all trials have ended
        whole = simulate(means=kind.means, horizon=horizon, trials=trials, **about)  # type: ignore[arg-type]
        ends = [each for each in whole.per_trial.finished if each is not None]
        if len(ends) == trials or horizon > 1e10:
            break
        horizon *= 4
    last = max(ends)
    spaced = np.geomspace(max(10.0, last / 1e4), last * 1.2, POINTS)
    if kind.protocol != "tally":  # all vote at about the same time
        spaced = np.linspace(min(ends) * 0.8, last * 1.2, POINTS)
    at = np.unique(spaced.astype(np.int64))
    undecided = kind.means if kind.protocol != "tally" else (sum(kind.means) / len(kind.means),) * len(kind.means)
    sent = [
        simulate(
            means=undecided, horizon=float(each), trials=max(2, trials // 10),
            **(about | ({"delta": 1e-12} if kind.protocol == "tally" else {})),  # type: ignore[arg-type]
        ).messages.up
        for each in at
    ]  # fmt: skip
    down = whole.messages.down / kind.players
    return Law(
        np.concatenate([[0.0], at.astype(np.float64)]),
        np.maximum.accumulate(np.concatenate([[0.0], sent])),
        np.array(ends, dtype=np.float64),
        down + 2.0,
    )


def traffic() -> NDArray[np.float64]:
    """Of each second, relative to the day's mean."""
    at = np.arange(SECONDS) / SECONDS
    return 1.0 - SWING * np.cos(2 * math.pi * (at - 4 / 24))


def day(*, quick: bool) -> dict[str, Any]:
    """Messages of every second, and what they come to."""
    rng = np.random.default_rng(7)
    trials = 10 if quick else TRIALS
    shape = traffic()
    # Events of one edge for one task since midnight, for some days: a day is like the one before it, so what is left of
    # its tasks at midnight is what the day before has left.
    upto = np.concatenate([[0.0], np.cumsum(np.tile(shape, DAYS))]) * EVENTS / SECONDS
    up = np.zeros(SECONDS)
    news = np.zeros(SECONDS)
    heard = np.zeros(SECONDS)
    """Deliveries, were each edge told of its own tasks only."""
    running = np.zeros(SECONDS)
    kinds = []
    chance = shape / shape.sum()
    for kind in KINDS:
        found = law(kind, trials=trials)
        count = round(TASKS * kind.share)
        starts = np.sort(rng.choice(SECONDS, size=count, p=chance))
        lasted, sent = [], []
        for start, end in zip(starts, rng.choice(found.ends, size=count), strict=True):
            seen = (upto[start:] - upto[start]) * kind.players
            stop = int(np.searchsorted(seen, end)) + math.ceil(SETTLE)
            messages = np.diff(np.interp(seen[: stop + 1], found.events, found.messages))
            when = np.arange(start, start + len(messages)) % SECONDS
            np.add.at(up, when, messages)
            np.add.at(running, when, 1.0)
            lasted.append(stop)
            sent.append(float(messages.sum()))
            for moment, records in ((start, 1.0), ((start + stop) % SECONDS, found.news - 1.0)):
                news[moment] += records
                heard[moment] += records * kind.players
        kinds.append(
            asdict(kind) | {
                "tasks": count, "events": float(found.ends.mean()), "messages": float(np.mean(sent)),
                "seconds": float(np.mean(lasted)), "news": found.news,
            }
        )  # fmt: skip
        say(f"scale: {count:,} tasks of {kind.name}: {np.mean(sent):,.0f} messages each, {np.mean(lasted):,.0f} s")
    hosted = sum(kind.players * kind.share for kind in KINDS) * TASKS / EDGES
    return {
        "edges": EDGES,
        "tasks": TASKS,
        "events_a_day": EVENTS,
        "swing": SWING,
        "trials": trials,
        "kinds": kinds,
        "hosted": hosted,
        "running": {"mean": float(running.mean()), "peak": float(running.max())},
        "up": rates(up),
        "news": rates(news),
        "deliveries": rates(heard),
        "alone": [alone(players, floor, trials=max(4, trials // 8)) for players, floor in ALONE],
        "minutes": {
            "up": minutes(up),
            "up_peak": [float(each) for each in up.reshape(-1, 60).max(axis=1)],
            "news": minutes(news),
            "deliveries": minutes(heard),
        },
    }


def alone(players: int, floor: int, *, trials: int) -> dict[str, Any]:
    """One task on so many edges, in the busiest hour: what it sends, and the most in a second."""
    kind = Kind("alone", "tally", players, KINDS[0].means, 1.0, floor=floor)
    found = law(kind, trials=trials)
    end = float(found.ends.mean())
    seen = np.arange(SECONDS + 1) * EVENTS / SECONDS * (1.0 + SWING) * players
    stop = int(np.searchsorted(seen, end)) + math.ceil(SETTLE)
    messages = np.diff(np.interp(seen[: stop + 1], found.events, found.messages))
    say(f"scale: one task on {players:,} edges, tallies of at least {floor}: {messages.sum():,.0f} messages")
    return {
        "players": players,
        "floor": floor,
        "events": end,
        "seconds": stop,
        "messages": float(messages.sum()),
        "peak": float(messages.max()),
    }


def rates(each_second: NDArray[np.float64]) -> dict[str, float]:
    """A day's sum, and a second's mean and peaks."""
    return {
        "day": float(each_second.sum()),
        "mean": float(each_second.mean()),
        "p99": float(np.quantile(each_second, 0.99)),
        "peak": float(each_second.max()),
        "peak_minute": float(each_second.reshape(-1, 60).mean(axis=1).max()),
    }


def minutes(each_second: NDArray[np.float64]) -> list[float]:
    return [float(each) for each in each_second.reshape(-1, 60).mean(axis=1)]
