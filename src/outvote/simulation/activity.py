"""Who is active: P(n) of the paper, as weights, as a recorded trace, or as a function of one's own.

An activity draws the players of one trial from its generator, and from nothing else.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Protocol, TypeAlias

import numpy as np

from outvote.core.errors import InvalidSettings
from outvote.simulation.arrays import Floats, Integers

BLOCK = 16_384
"""Draws that are prepared at once."""


ActivityFunction: TypeAlias = Callable[[int, np.random.Generator], int]
"""(time, generator) -> the active player. Time counts draws from 1; all that is random comes from the generator."""


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
    digest: str
    """Of the file's players."""

    @property
    def name(self) -> str:
        return f"trace {self.path}"

    @property
    def active_players(self) -> int:
        return self.players

    def draws(self, rng: np.random.Generator, horizon: int) -> Iterator[tuple[list[int], list[float]]]:
        with self.path.open(encoding="utf-8") as lines:
            numbers = (int(line) for line in lines if not line.isspace())
            for start in range(0, horizon, BLOCK):
                block = list(islice(numbers, min(BLOCK, horizon - start)))
                if len(block) < min(BLOCK, horizon - start):
                    raise InvalidSettings(
                        f"must not change while it is used: the trace {self.path} had {self.length} draws when it was "
                        f"checked, got {start + len(block)}",
                        field="activity",
                    )
                yield block, rng.random(len(block)).tolist()


@dataclass(frozen=True)
class FromFunction:
    """The players that a function names, draw after draw."""

    function: ActivityFunction
    players: int
    length: float = math.inf

    @property
    def name(self) -> str:
        return f"function {getattr(self.function, '__qualname__', type(self.function).__qualname__)}"

    @property
    def active_players(self) -> int:
        return self.players

    def draws(self, rng: np.random.Generator, horizon: int) -> Iterator[tuple[list[int], list[float]]]:
        for time in range(1, horizon + 1):
            player = self.function(time, rng)
            if player not in range(self.players):
                raise _no_player(player, self.players, f"at draw {time}")
            yield [int(player)], [rng.random()]


class Visitors:
    """Who makes a player's decisions: one visitor after another, each with a geometric number of them."""

    def __init__(self, visits: float, players: int, rng: Random) -> None:
        """A visitor makes `visits` decisions on average."""
        self._leaves = 1 / visits
        self._rng = rng
        self._present: list[int | None] = [None] * players
        self._came = 0

    def next(self, player: int) -> int:
        """The visitor of a player's next decision, numbered from 0 as they come."""
        visitor = self._present[player]
        if visitor is None or self._rng.random() < self._leaves:
            visitor = self._present[player] = self._came
            self._came += 1
        return visitor


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
            raise InvalidSettings(f"weights must be numbers of at least 0, got {weight!r}", field="activity")
    if not 0 < sum(weights) < math.inf:
        problem = f"weights must have a sum above 0 that is finite, got {list(weights)!r}"
        raise InvalidSettings(problem, field="activity", code="range")
    name = "weights " + ",".join(str(float(weight)).removesuffix(".0") for weight in weights)
    return Weighted(name, tuple(float(weight) for weight in weights), len(weights))


def trace(path: Path, players: int) -> Trace:
    """A recorded trace; every line is checked now, so that no run fails half-way."""
    length, digest = 0, hashlib.sha256()
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                text = line.strip()
                if not text:
                    continue
                if not (text.isascii() and text.isdigit()) or len(text) > 15 or int(text) >= players:
                    raise _no_player(text[:40], players, f"in line {number} of {path}")
                length += 1
                digest.update(text.encode() + b"\n")
    except OSError as error:
        raise _no_trace(path, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise _no_trace(path, "is not text: it must hold one player index per line") from None
    if not length:
        raise _no_trace(path, "is empty: it must hold one player index per line")
    return Trace(path, players, length, digest.hexdigest())


def _no_trace(path: Path, why: str) -> InvalidSettings:
    return InvalidSettings(f"must be a trace that can be used: {path} {why}", field="activity")


def _no_player(got: object, players: int, where: str) -> InvalidSettings:
    allowed = f"whole numbers from 0 to {players - 1}"
    return InvalidSettings(f"must name players by {allowed}, got {got!r} {where}", field="activity", code="range")


def with_dead_players(activity: Activity, dead: int) -> Activity:
    """The last `dead` players never wake; the others share the draws in the same proportions."""
    if not dead:
        return activity
    if not isinstance(activity, Weighted):
        problem = f"needs an activity by weights, got {dead!r} with {activity.name!r}: leave dead players out of it"
        raise InvalidSettings(problem, field="dead", code="conflict")
    if not 0 <= dead < activity.players:
        problem = f"must be from 0 to players - 1 = {activity.players - 1}, got {dead!r}"
        raise InvalidSettings(problem, field="dead", code="range")
    weights = activity.weights[: activity.players - dead] + (0.0,) * dead
    weighted(weights)  # refuses a fleet in which nobody is left
    return replace(activity, weights=weights)


def read_activity(activity: str | Sequence[float] | Path | ActivityFunction | Activity, players: int) -> Activity:
    """An activity as the command line or Python names it: a law, weights, the path of a trace, or one's own."""
    if isinstance(activity, str):
        if activity == "uniform":
            return uniform(players)
        if activity == "80-20":
            return eighty_twenty(players)
        if "," in activity:
            activity = _weights(activity)
        elif not _exists(activity):
            raise InvalidSettings(
                f"must be 'uniform', '80-20', weights like 3,1,1 or the path of a trace file, got {activity!r}",
                field="activity",
                code="choice",
            )
        else:
            activity = Path(activity)
    if isinstance(activity, Path):
        return trace(activity, players)
    if hasattr(activity, "draws"):
        return activity  # type: ignore[return-value]  # an `Activity`
    if callable(activity):
        return FromFunction(activity, players)
    if len(activity) != players:
        problem = f"must have one weight for each of the {players} players, got {len(activity)}"
        raise InvalidSettings(problem, field="activity")
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
        raise InvalidSettings(f"weights must be numbers like 3,1,1, got {text!r}", field="activity") from None
