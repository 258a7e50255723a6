"""Fleets of blocks in worlds that are hard to be right in, and with faults that must be found out, compiled.

It follows the truth beside the evidence: an arm is lost wrongly if it is refuted while it was, over all that was
compared so far, at least as good as every other (`docs/blocks.md`). `tests/statistical/test_blocks.py` holds it to the
core.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from outvote.core.blocks.bets import STAKES, WEIGHTS
from outvote.simulation.arrays import Floats, FloatTable, Integers, IntegerTable
from outvote.simulation.kernels.compiling import compiled

UNIFORM, IN_TURN, AMONG_ARMS = 0, 1, 2
"""How the arms of a block are ordered: as they must be; one arm after the other; the next of the arms left."""
OPEN, COMPLETE, OLD = 0, 1, 2
"""A site's block."""
RUNGS = (1, 3, 7, 15, 31, 63, 127)


@dataclass(frozen=True)
class World:
    """What is not alike, and what goes wrong. Times are counted in decisions of the whole fleet."""

    swing: float = 0.0
    """Means go up and down by so much…"""
    period: float = 1.0
    """…in so much time; jumps come once in it, too."""
    jump: float = 0.0
    """Means jump to a level drawn anew, up to so much higher or lower."""
    visits: int = 1
    """A visitor makes so many decisions in a row at its site."""
    visitor: float = 0.0
    """Half of the visitors succeed so much more often, the others so much less."""
    preference: float = 0.0
    """The same of each arm by itself."""
    swap_at: float = math.inf
    """From then on the first two arms have each other's means."""
    death: float = 0.0
    """A site dies at a decision with this probability."""
    late: int = 0
    """So many blocks are on their way, and arrive in any order."""
    age: float = math.inf
    """Blocks this old are closed if they hold enough."""
    pace: float = 1.0
    """After the first arm a site's next decision takes so many times as long."""
    retry: float = 0.0
    """Who fails on the first arm comes back at once, and succeeds so much more often."""
    order: int = UNIFORM
    floor: int = 3
    largest: int = 127


class Rules(NamedTuple):
    """A `World` for the kernel, with the rest that it needs."""

    swing: float
    period: float
    jump: float
    visits: int
    visitor: float
    preference: float
    swap_at: float
    death: float
    late: int
    age: float
    pace: float
    retry: float
    order: int
    floor: int
    largest: int
    needed: float
    horizon: int


class Bets(NamedTuple):
    """Stakes, their weights, and ln F of each rung."""

    up: Floats
    down: Floats
    log_weights: Floats
    factorials: Floats
    tables: np.ndarray
    """By rung, successes of both arms, and stake."""


@dataclass(frozen=True)
class Course:
    """What became of one fleet."""

    wrong: np.ndarray
    """By arm: it was refuted while it was at least as good as every other."""
    refuted: np.ndarray
    decided: int
    """Decisions until one arm was left; −1 if that did not happen."""


def play(
    means: FloatTable,
    shares: Floats,
    world: World,
    *,
    delta: float,
    horizon: int,
    rng: np.random.Generator,
) -> Course:
    """One fleet; `means` are of each site and arm, `shares` of the traffic by site."""
    # every field in the type of its default, or the kernel would be compiled again for a whole number
    fields = {name: type(value)(getattr(world, name)) for name, value in dataclasses.asdict(World()).items()}
    rules = Rules(**fields, needed=-math.log(delta), horizon=horizon)
    arms = means.shape[1]
    wrong, refuted = np.zeros(arms, np.bool_), np.zeros(arms, np.bool_)
    decided = _run(means, np.cumsum(shares) / np.sum(shares), rules, bets(), rng, wrong, refuted)
    return Course(wrong, refuted, decided)


@cache
def bets() -> Bets:
    """Made once for each process."""
    stakes = np.array(STAKES)
    factorials = np.array([math.lgamma(number + 1.0) for number in range(2 * RUNGS[-1] + 2)])
    up, down = np.log1p(stakes), np.log1p(-stakes)
    tables = np.zeros((len(RUNGS), RUNGS[-1] + 1, RUNGS[-1] + 1, len(stakes)))
    for rung, size in enumerate(RUNGS):
        _fill(size, factorials, up + down, tables[rung])
    return Bets(up, down, np.log(np.array(WEIGHTS)), factorials, tables)


@compiled
def _ways(factorials: Floats, of: int, some: int) -> float:
    return float(factorials[of] - factorials[some] - factorials[of - some])


@compiled
def _matched(size: int, ones: int, others: int, factorials: Floats, both: Floats, found: Floats) -> None:
    """Σ P(x)(1 − β²)^x by stake, as in `outvote.core.blocks.bets`."""
    found[:] = 0.0
    for x in range(max(0, ones - others), min(ones, size - others) + 1):
        law = _ways(factorials, size - others, x) + _ways(factorials, others, ones - x) - _ways(factorials, size, ones)
        for stake in range(len(both)):
            found[stake] += math.exp(law + x * both[stake])


@compiled
def _fill(size: int, factorials: Floats, both: Floats, table: np.ndarray) -> None:
    for ones in range(size + 1):
        for others in range(size + 1):
            _matched(size, ones, others, factorials, both, table[ones, others])
            table[ones, others] = np.log(table[ones, others])


@compiled
def log_factors(
    decided: int, ones: int, other_decided: int, others: int, bets: Bets, first: Floats, second: Floats
) -> None:
    """What a block pays on the first arm as suspect, and on the second."""
    if decided == other_decided:
        for rung in range(len(bets.tables)):
            if decided == 2 ** (rung + 1) - 1:
                for stake in range(len(first)):
                    first[stake] = bets.tables[rung, ones, others, stake] + (others - ones) * bets.up[stake]
                    second[stake] = bets.tables[rung, ones, others, stake] + (others - ones) * bets.down[stake]
                return
    swapped = decided > other_decided
    if swapped:
        decided, ones, other_decided, others = other_decided, others, decided, ones
    value = np.empty(len(first))
    first[:] = 0.0
    second[:] = 0.0
    for taken in range(max(0, decided - (other_decided - others)), min(decided, others) + 1):
        law = _ways(bets.factorials, others, taken) - _ways(bets.factorials, other_decided, decided)
        law += _ways(bets.factorials, other_decided - others, decided - taken)
        _matched(decided, ones, taken, bets.factorials, bets.up + bets.down, value)
        for stake in range(len(first)):
            first[stake] += value[stake] * math.exp(law + (taken - ones) * bets.up[stake])
            second[stake] += value[stake] * math.exp(law + (taken - ones) * bets.down[stake])
    for stake in range(len(first)):
        one, other = math.log(first[stake]), math.log(second[stake])
        first[stake], second[stake] = (other, one) if swapped else (one, other)


@compiled
def log_sum(values: Floats) -> float:
    top = values.max()
    total = 0.0
    for value in values:
        total += math.exp(value - top)
    return float(top + math.log(total))


class Sites(NamedTuple):
    """By site, and by arm: open blocks, and visitors."""

    left: IntegerTable
    decided: IntegerTable
    ones: IntegerTable
    truth: np.ndarray
    """Σ of all arms' chances, over the units that were given an arm."""
    opened: Floats
    """When the open block began; below 0 if there is none."""
    sizes: Integers
    numbers: Integers
    caps: Integers
    dead: np.ndarray
    slow: np.ndarray
    visits: Integers
    propensity: FloatTable


class Fleet(NamedTuple):
    """What the server knows, and the truth beside it."""

    announced: np.ndarray
    suspects: np.ndarray
    logs: np.ndarray
    wealth: FloatTable
    """By suspect and rival."""
    better: FloatTable
    """Σ m·τ by arm and rival."""
    wrong: np.ndarray
    refuted: np.ndarray


@compiled
def _planned(number: int, cap: int, rules: Rules) -> int:
    rung, power = 1, 2
    while power <= number:
        rung, power = 2 * rung + 1, 2 * power
    return max(rules.floor, min(rung, cap, rules.largest))


@compiled
def _bet(decided: Integers, ones: Integers, truth: FloatTable, fleet: Fleet, rules: Rules, bets: Bets) -> None:
    """A block arrives: every arm against every other one."""
    first, second = np.empty(len(bets.up)), np.empty(len(bets.up))
    for arm in range(len(decided)):
        for rival in range(arm):
            pairs = min(decided[arm], decided[rival])
            if pairs < rules.floor or not (fleet.announced[arm] and fleet.announced[rival]):
                continue
            log_factors(decided[arm], ones[arm], decided[rival], ones[rival], bets, first, second)
            fleet.logs[arm, rival] += first
            fleet.logs[rival, arm] += second
            fleet.wealth[arm, rival] = log_sum(fleet.logs[arm, rival])
            fleet.wealth[rival, arm] = log_sum(fleet.logs[rival, arm])
            more = truth[arm, arm] - truth[arm, rival] + truth[rival, arm] - truth[rival, rival]
            more *= pairs / (decided[arm] + decided[rival])
            fleet.better[arm, rival] += more
            fleet.better[rival, arm] -= more


@compiled
def _against(arm: int, wealth: FloatTable) -> float:
    """The logarithm of the evidence against an arm: the mean over its rivals."""
    others = np.empty(len(wealth) - 1)
    for rival in range(len(wealth)):
        if rival != arm:
            others[rival - (rival > arm)] = wealth[arm, rival]
    return log_sum(others) - math.log(len(others))


@compiled
def _refute(decided: Integers, fleet: Fleet, rules: Rules) -> None:
    """Those that cross with this block, the wealthiest first; the last arm stays."""
    while fleet.suspects.sum() > 1:
        worst, most = -1, -np.inf
        for arm in range(len(decided)):
            if fleet.suspects[arm] and decided[arm] >= rules.floor:
                against = _against(arm, fleet.wealth)
                if against >= rules.needed and against > most:
                    worst, most = arm, against
        if worst < 0:
            return
        fleet.suspects[worst] = False
        fleet.refuted[worst] = True
        fleet.wrong[worst] = True
        for rival in range(len(decided)):
            if rival != worst and fleet.better[worst, rival] < -1e-9:
                fleet.wrong[worst] = False


@compiled
def _choose(site: int, sites: Sites, fleet: Fleet, order: int, rng: np.random.Generator) -> int:
    """The arm of a site's next decision."""
    total, playing = 0, 0
    for arm in range(len(fleet.announced)):
        if fleet.announced[arm] and sites.left[site, arm] > 0:
            total += sites.left[site, arm]
            playing += 1
    place = 0
    if order == UNIFORM:
        place = int(rng.integers(0, total))
    elif order == AMONG_ARMS:
        place = int(rng.integers(0, playing))
    for arm in range(len(fleet.announced)):
        if fleet.announced[arm] and sites.left[site, arm] > 0:
            place -= sites.left[site, arm] if order == UNIFORM else 1
            if place < 0:
                return arm
    return -1


@compiled
def _begin(site: int, time: float, sites: Sites, fleet: Fleet, rules: Rules) -> None:
    """A site's next block."""
    size = _planned(sites.numbers[site], sites.caps[site], rules)
    sites.opened[site], sites.sizes[site] = time, size
    sites.numbers[site] += 1
    sites.decided[site], sites.ones[site], sites.truth[site] = 0, 0, 0.0
    for arm in range(len(fleet.announced)):
        sites.left[site, arm] = size if fleet.announced[arm] else 0


@compiled
def _visit(
    site: int,
    shift: float,
    time: float,
    means: FloatTable,
    sites: Sites,
    rules: Rules,
    chances: Floats,
    rng: np.random.Generator,
) -> None:
    """With what chances the next decision succeeds, by arm."""
    if sites.visits[site] == 0:
        sites.visits[site] = rules.visits
        common = rules.visitor if rng.random() < 0.5 else -rules.visitor
        for arm in range(len(chances)):
            sites.propensity[site, arm] = common + (rules.preference if rng.random() < 0.5 else -rules.preference)
    sites.visits[site] -= 1
    for arm in range(len(chances)):
        mean = means[site, 1 - arm if time >= rules.swap_at and arm < 2 else arm]
        chances[arm] = min(max(mean + shift + sites.propensity[site, arm], 0.0), 1.0)


@compiled
def _state(site: int, time: float, sites: Sites, fleet: Fleet, rules: Rules) -> int:
    """Whether the block takes more decisions, has all, or is old and has enough. A site without a block waits, too."""
    if sites.opened[site] < 0:
        return OPEN
    made, left, playing = 0, 0, 0
    for arm in range(len(fleet.announced)):
        if fleet.announced[arm]:
            made += sites.decided[site, arm]
            left += sites.left[site, arm]
            playing += 1
    if left == 0:
        return COMPLETE
    return OLD if time - sites.opened[site] >= rules.age and made >= 2 * rules.floor * playing else OPEN


@compiled
def _run(
    means: FloatTable,
    shares: Floats,
    rules: Rules,
    bets: Bets,
    rng: np.random.Generator,
    wrong: np.ndarray,
    refuted: np.ndarray,
) -> int:
    number, arms = means.shape
    logs = np.zeros((arms, arms, len(bets.up)))
    logs[:, :] = bets.log_weights
    fleet = Fleet(
        np.ones(arms, np.bool_),
        np.ones(arms, np.bool_),
        logs,
        np.zeros((arms, arms)),
        np.zeros((arms, arms)),
        wrong,
        refuted,
    )
    sites = Sites(
        np.zeros((number, arms), np.int64),
        np.zeros((number, arms), np.int64),
        np.zeros((number, arms), np.int64),
        np.zeros((number, arms, arms)),
        np.full(number, -1.0),
        np.zeros(number, np.int64),
        np.zeros(number, np.int64),
        np.full(number, rules.largest),
        np.zeros(number, np.bool_),
        np.zeros(number, np.bool_),
        np.zeros(number, np.int64),
        np.zeros((number, arms)),
    )
    on_way, way_from = 0, np.zeros(rules.late + 1, np.int64)
    way_decided, way_ones = np.zeros((rules.late + 1, arms), np.int64), np.zeros((rules.late + 1, arms), np.int64)
    way_truth = np.zeros((rules.late + 1, arms, arms))
    chances, heard_from = np.zeros(arms), np.zeros(number, np.bool_)
    time, level, jumped, waiting, again, draws = 0.0, 0.0, 0.0, 0, -1, 0
    fastest = max(1.0, 1.0 / rules.pace)
    while draws < rules.horizon:
        time += 1.0 / fastest
        site = again
        if again < 0:
            site = min(int(np.searchsorted(shares, rng.random(), side="right")), number - 1)
            if rng.random() * fastest >= (1.0 / rules.pace if sites.slow[site] else 1.0):
                continue
        draws += 1
        if sites.dead[site]:
            continue
        if rules.jump > 0 and time - jumped >= rules.period:
            jumped, level = time, rules.jump * (2 * rng.random() - 1)
        for decides in range(2):  # before its decision, a site looks whether a fall or time has closed its block
            if decides == 1:
                if sites.opened[site] < 0:
                    _begin(site, time, sites, fleet, rules)
                shift = level + rules.swing * math.sin(2 * math.pi * time / rules.period)
                shift += rules.retry if again >= 0 else 0.0
                _visit(site, shift, time, means, sites, rules, chances, rng)
                arm = _choose(site, sites, fleet, rules.order, rng)
                success = rng.random() < chances[arm]
                sites.left[site, arm] -= 1
                sites.decided[site, arm] += 1
                sites.ones[site, arm] += success
                sites.truth[site, arm] += chances
                sites.slow[site] = arm == 0
                again = site if rules.retry > 0 and arm == 0 and not success else -1
                if rules.death > 0 and rng.random() < rules.death:
                    sites.dead[site], again = True, -1
                    continue
            state = _state(site, time, sites, fleet, rules)
            if state == OPEN:
                continue
            if state == OLD:
                sites.caps[site] = max(1, (sites.sizes[site] + 1) // 2 - 1)
            elif decides == 1 and time - sites.opened[site] < rules.age / 2:
                sites.caps[site] = min(127, 2 * sites.sizes[site] + 1)
            sites.opened[site] = -1.0
            told = 0
            for other in range(arms):
                told += fleet.announced[other] and sites.decided[site, other] >= rules.floor
            if told < 2:
                continue
            way_from[on_way], way_decided[on_way], way_ones[on_way] = site, sites.decided[site], sites.ones[site]
            way_truth[on_way] = sites.truth[site]
            if on_way < rules.late:
                on_way += 1
                continue
            here = rng.integers(0, on_way + 1)  # any of those on their way arrives
            _bet(way_decided[here], way_ones[here], way_truth[here], fleet, rules, bets)
            _refute(way_decided[here], fleet, rules)
            heard_from[way_from[here]] = True
            way_from[here], way_decided[here], way_ones[here] = way_from[on_way], way_decided[on_way], way_ones[on_way]
            way_truth[here] = way_truth[on_way]
            waiting += 1
            remaining, standing = fleet.announced.sum(), fleet.suspects.sum()
            if standing < remaining and (
                remaining <= 4 or standing == 1 or 2 * standing <= remaining or waiting >= heard_from.sum()
            ):
                waiting = 0
                fleet.announced[:] = fleet.suspects
                if standing == 1:
                    return draws
    return -1
