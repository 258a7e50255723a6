"""Who is active: P(n) of the paper, as weights or as a recorded trace.

An activity draws the players of one trial from its generator, and from nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from outvote.core.errors import InvalidTask
from outvote.simulation.arrays import Floats, Integers

BLOCK = 16_384
"""Draws that are prepared at once."""


class Activity(Protocol):
    """The law by which players become active."""

    @property
    def name(self) -> str: ...
    @property
    def players(self) -> int: ...
    @property
    def active_players(self) -> int:
        """N_γ where the experimenter names none."""

    @property
    def length(self) -> float:
        """How many draws there are to be had."""

    def describe(self) -> list[Any]:
        """What decides who is active, in plain JSON types."""

    def draws(self, rng: np.random.Generator, horizon: int) -> Iterator[tuple[list[int], list[float]]]:
        """The active player of each draw and the uniform number of its reward, in blocks."""


@dataclass(frozen=True)
class Weighted:
    """Each draw is an independent choice among the players, by weight; weight 0 is a player that never wakes."""

    name: str
    weights: tuple[float, ...]
    active_players: int
    length: float = math.inf

    @property
    def players(self) -> int:
        return len(self.weights)

    def describe(self) -> list[Any]:
        return [self.name, *self.weights]

    def draws(self, rng: np.random.Generator, horizon: int) -> Iterator[tuple[list[int], list[float]]]:
        keep, alias = self.alias_table()
        for start in range(0, horizon, BLOCK):
            places, uniforms = rng.random((min(BLOCK, horizon - start), 2)).T
            scaled = places * self.players
            columns = scaled.astype(np.int64)
            players = np.where(scaled - columns < keep[columns], columns, alias[columns])
            yield players.tolist(), uniforms.tolist()

    def shares(self) -> Floats:
        """P(n)."""
        weights = np.array(self.weights)
        return weights / math.fsum(self.weights)

    def groups(self) -> tuple[Integers, Floats]:
        """Runs of equally likely players: where each ends, and its share of what the runs before it leave."""
        ends = [n for n in range(1, self.players) if self.weights[n] != self.weights[n - 1]] + [self.players]
        starts = [0, *ends[:-1]]
        sizes = np.array([self.weights[start] * (end - start) for start, end in zip(starts, ends, strict=True)])
        left = np.cumsum(sizes[::-1])[::-1]
        return np.array(ends), np.divide(sizes, left, out=np.zeros(len(sizes)), where=left > 0)

    def alias_table(self) -> tuple[Floats, Integers]:
        """Walker's table: column n is player n's up to `keep[n]` of its width, and `alias[n]`'s beyond."""
        scaled = (self.shares() * self.players).tolist()
        keep, alias = np.ones(self.players), np.arange(self.players)
        small = [n for n, share in enumerate(scaled) if share < 1]
        large = [n for n, share in enumerate(scaled) if share >= 1]
        while small and large:
            poor, rich = small.pop(), large[-1]
            keep[poor], alias[poor] = scaled[poor], rich
            scaled[rich] -= 1 - scaled[poor]
            if scaled[rich] < 1:
                small.append(large.pop())
        for n in small:  # by rounding only, but a player that never wakes must stay asleep
            if self.weights[n] == 0:
                keep[n], alias[n] = 0.0, int(np.argmax(self.weights))
        return keep, alias


@dataclass(frozen=True)
class Trace:
    """The players of a file, one index per line, in their order: the same in every trial."""

    path: Path
    players: int
    length: int
    name: str = "trace"

    @property
    def active_players(self) -> int:
        return self.players

    def describe(self) -> list[Any]:
        return [self.name, str(self.path), self.length]

    def draws(self, rng: np.random.Generator, horizon: int) -> Iterator[tuple[list[int], list[float]]]:
        with self.path.open(encoding="utf-8") as lines:
            numbers = (int(line) for line in lines if not line.isspace())
            for start in range(0, horizon, BLOCK):
                block = list(islice(numbers, min(BLOCK, horizon - start)))
                if len(block) < min(BLOCK, horizon - start):
                    raise InvalidTask(
                        f"the trace {self.path} had {self.length} draws when it was checked and has fewer now, "
                        f"got {start + len(block)}: leave it alone while it is used"
                    )
                yield block, rng.random(len(block)).tolist()


def uniform(players: int) -> Weighted:
    """Every player is as likely as every other."""
    return Weighted("uniform", (1.0,) * players, players)


def eighty_twenty(players: int) -> Weighted:
    """The first round(0.2·N) players, at least one, share 80 % of the draws equally, the rest share 20 %."""
    busy = max(1, round(0.2 * players))
    rare = players - busy
    return Weighted("80-20", (0.8 / busy,) * busy + (0.2 / rare,) * rare if rare else (1.0,), busy)


def weighted(weights: Sequence[float]) -> Weighted:
    """Any weights; they need not sum to one."""
    for weight in weights:
        if not (math.isfinite(weight) and weight >= 0):
            raise InvalidTask(f"an activity weight must be a number of at least 0, got {weight!r}")
    if not sum(weights) > 0:
        raise InvalidTask(f"activity weights must not all be 0, got {list(weights)!r}")
    if not math.isfinite(sum(weights)):
        raise InvalidTask(f"activity weights must have a finite sum, got {list(weights)!r}")
    return Weighted("weights", tuple(float(weight) for weight in weights), len(weights))


def trace(path: Path, players: int) -> Trace:
    """A recorded trace; every line is checked now, so that no run fails half-way."""
    length = 0
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                text = line.strip()
                if not text:
                    continue
                if not (text.isascii() and text.isdigit()) or len(text) > 15 or int(text) >= players:
                    raise InvalidTask(
                        f"line {number} of {path} names an unknown player: got {text[:40]!r}, "
                        f"allowed is a whole number from 0 to {players - 1}"
                    )
                length += 1
    except OSError as error:
        raise InvalidTask(f"the trace {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise InvalidTask(f"the trace {path} is not text: it must hold one player index per line") from None
    if not length:
        raise InvalidTask(f"the trace {path} is empty: it must hold one player index per line")
    return Trace(path, players, length)


def with_dead_players(activity: Activity, dead: int) -> Activity:
    """The last `dead` players never wake; the others share the draws in the same proportions."""
    if not dead:
        return activity
    if not isinstance(activity, Weighted):
        raise InvalidTask(
            f"dead players need an activity by weights, got {activity.name!r}: leave them out of the trace"
        )
    if not 0 <= dead < activity.players:
        raise InvalidTask(f"dead must be from 0 to players - 1 = {activity.players - 1}, got {dead!r}")
    weights = activity.weights[: activity.players - dead] + (0.0,) * dead
    weighted(weights)  # refuses a fleet in which nobody is left
    return Weighted(activity.name, weights, activity.active_players)


def read_activity(activity: str | Sequence[float] | Path, players: int) -> Activity:
    """An activity as the command line or Python names it: a law, a list of weights, or the path of a trace."""
    if isinstance(activity, str):
        if activity == "uniform":
            return uniform(players)
        if activity == "80-20":
            return eighty_twenty(players)
        if "," in activity:
            activity = _weights(activity)
        elif not _exists(activity):
            raise InvalidTask(
                f"activity must be 'uniform', '80-20', weights like 3,1,1 or the path of a trace file, got {activity!r}"
            )
        else:
            activity = Path(activity)
    if isinstance(activity, Path):
        return trace(activity, players)
    if len(activity) != players:
        raise InvalidTask(f"activity must have one weight for each of the {players} players, got {len(activity)}")
    return weighted(activity)


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _weights(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidTask(f"activity weights must be numbers like 3,1,1, got {text!r}") from None
