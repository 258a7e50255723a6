"""Worlds in which an arm that is as good as the others must not be lost, and faults by which it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.validity.worlds import AMONG_ARMS, IN_TURN, Course, World, play
from outvote.simulation.arrays import Floats, FloatTable

Maker = Callable[[np.random.Generator, int], FloatTable]
"""Draws the means of each site and arm."""


def alike(*means: float) -> Maker:
    """Every site has these means."""
    return lambda rng, sites: np.tile(np.array(means), (sites, 1))


def levels(base: float, arms: Sequence[float], spread: float, *, ranking: float = 0.0) -> Maker:
    """On the logit scale sites differ by `spread`, and each arm at each site by `ranking`."""

    def make(rng: np.random.Generator, sites: int) -> FloatTable:
        logits = base + np.array(arms) + spread * rng.standard_normal((sites, 1))
        logits = logits + ranking * rng.standard_normal((sites, len(arms)))
        means: FloatTable = 1 / (1 + np.exp(-logits))
        return means

    return make


def two_levels(*arms: float) -> Maker:
    """Half of the sites succeed about one time in ten, the others nine times."""

    def make(rng: np.random.Generator, sites: int) -> FloatTable:
        logits = np.where(rng.random((sites, 1)) < 0.5, -2.2, 2.2) + np.array(arms)
        means: FloatTable = 1 / (1 + np.exp(-logits))
        return means

    return make


@dataclass(frozen=True)
class Scenario:
    make: Maker
    sites: int = 12
    world: World = field(default_factory=World)
    eighty_twenty: bool = True
    horizon: int = 12_000

    def shares(self) -> Floats:
        """A fifth of the sites has four fifths of the traffic, or all have the same."""
        shares = np.ones(self.sites)
        if self.eighty_twenty:
            busy = max(1, self.sites // 5)
            shares[:busy] = 4 * (self.sites - busy) / busy
        return shares

    def play(self, delta: float, seed: int) -> Course:
        rng = np.random.default_rng(seed)
        means = self.make(rng, self.sites)
        return play(means, self.shares(), self.world, delta=delta, horizon=self.horizon, rng=rng)


TIED = alike(0.4, 0.4, 0.35)
SCENARIOS: dict[str, Scenario] = {
    "two of three equal": Scenario(alike(0.3, 0.3, 0.25)),
    "four equal, rare": Scenario(alike(*(0.02,) * 4), horizon=20_000),
    "three equal, nearly always": Scenario(alike(*(0.985,) * 3), horizon=20_000),
    "ten equal, 50 sites": Scenario(alike(*(0.3,) * 10), sites=50, horizon=20_000),
    "two equal, 500 sites, uniform": Scenario(alike(0.5, 0.5), sites=500, eighty_twenty=False, horizon=20_000),
    "a unique best by .02": Scenario(alike(0.12, 0.1, 0.1, 0.1), sites=8),
    "sites at .1 and .9, two of three equal": Scenario(two_levels(0, 0, -0.3)),
    "sites at .1 and .9, a unique best": Scenario(two_levels(0.15, 0, 0)),
    "site levels of logit sd 1.5, two of three equal": Scenario(levels(-2, (0, 0, -0.3), 1.5)),
    "site levels of logit sd 1, a unique best, 64 sites": Scenario(levels(-2, (0.15, 0, 0), 1.0), sites=64),
    "sites that differ in ranking": Scenario(levels(-2, (0, 0, 0), 0.4, ranking=0.4), sites=20),
    "a slow cycle of ±.3": Scenario(TIED, world=World(swing=0.3, period=2_000)),
    "a fast cycle of ±.3": Scenario(TIED, world=World(swing=0.3, period=37)),
    "a cycle, and blocks closed by age": Scenario(
        TIED, sites=100, eighty_twenty=False, world=World(swing=0.3, period=900, age=900)
    ),
    "quiet and busy sites, blocks closed by age": Scenario(levels(-1, (0, 0, 0), 0.8), sites=60, world=World(age=700)),
    "jumps up to ±.4": Scenario(TIED, world=World(jump=0.4, period=700)),
    "the best changes halfway": Scenario(alike(0.33, 0.3), world=World(swap_at=3_000)),
    "the best changes late": Scenario(alike(0.3, 0.2), world=World(swap_at=600), horizon=8_000),
    "visitors of 5 visits at .1 or .9": Scenario(alike(0.5, 0.5, 0.5), world=World(visits=5, visitor=0.4)),
    "visitors of 20 visits at .1 or .9": Scenario(alike(0.5, 0.5, 0.5), world=World(visits=20, visitor=0.4)),
    "visitors of 50 visits, a unique best": Scenario(alike(0.56, 0.5, 0.5), world=World(visits=50, visitor=0.4)),
    "visitors who prefer an arm by ±.3": Scenario(alike(0.5, 0.5), world=World(visits=5, preference=0.15)),
    "sites die": Scenario(TIED, sites=60, world=World(death=0.002)),
    "blocks arrive in any order": Scenario(two_levels(0, 0, -0.3), sites=40, world=World(late=60)),
    "one arm slows the next decision threefold": Scenario(
        alike(0.3, 0.3), sites=20, eighty_twenty=False, world=World(swing=0.25, period=400, age=400, pace=3.0)
    ),
    "one arm speeds the next decision threefold": Scenario(
        alike(0.3, 0.3), sites=20, eighty_twenty=False, world=World(swing=0.25, period=400, age=400, pace=1 / 3)
    ),
}
"""All is in order here, however hard the world is."""

_RETRY = Scenario(alike(0.3, 0.3), sites=20, eighty_twenty=False, world=World(retry=0.2), horizon=40_000)
_VISITORS = SCENARIOS["visitors of 20 visits at .1 or .9"]
_CYCLE = Scenario(
    alike(0.5, 0.5),
    sites=1,
    eighty_twenty=False,
    world=World(swing=0.5, period=16 * 127 / 6, floor=127),
    horizon=40_000,
)
CONTROLS: dict[str, Scenario] = {
    "blocks that are not shuffled": replace(_VISITORS, world=replace(_VISITORS.world, order=IN_TURN)),
    "arms drawn among the arms left": replace(_CYCLE, world=replace(_CYCLE.world, order=AMONG_ARMS)),
    "failed on the first arm, back at once with +.2": _RETRY,
    "the same, in blocks of 3": replace(_RETRY, world=replace(_RETRY.world, largest=3)),
}
"""One thing is wrong, and equal arms are lost more often than δ."""
