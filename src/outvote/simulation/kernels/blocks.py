"""The kernel of `blocks`: what `outvote.core.blocks` does, on arrays. A player is drawn for each decision, and
what else is random when it matters.

Why it is exact in distribution. Which arms a player has drawn matters when its block closes, when one of them falls,
and for the regret at a grid point: until then they are so many at random out of those that were left. What succeeded
matters when the block closes. With visitors, who make several decisions, both are drawn at once. Wealth is kept as it
is, not as its logarithm: a contender's is below (K − 1)/δ, and no stake falls below `LEAST`, from where none comes back
in a world whose means stay as they are.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from outvote.core.blocks.bets import STAKES
from outvote.core.blocks.code import DUE, EVIDENCE, MOST, UNPLANNED
from outvote.core.blocks.server import FEW
from outvote.core.blocks.sizes import LARGEST, RUNGS
from outvote.simulation.arrays import Floats, FloatTable, IntegerCube, Integers, IntegerTable
from outvote.simulation.environments import GOOD_TOLERANCE
from outvote.simulation.kernels.compiling import compiled
from outvote.simulation.kernels.samplers import binomial
from outvote.simulation.kernels.step import choose_player

KINDS: Final = len(STAKES)
LEAST: Final = 1e-300
REASON: Final = len(EVIDENCE)
COINS: Final = 7
"""So many outcomes are sooner drawn one by one than counted by a binomial number."""
UNANNOUNCED: Final = 1 << 60
EXACT: Final = 1e-9
"""A logarithm of base 2 that is this little above a whole number is that number: rounding has moved it."""
LEFT, CONTENDING, ANNOUNCED, WAITING, REPORTED, UNFINISHED, UNSOLVED, NUMBERS = range(8)
"""Places in `FleetArrays.numbers`: arms not announced out, arms not refuted, announcements, blocks since the last of
them, players that have sent a block, that have more than one arm, and that have one that is not good."""
MISSING, UNDRAWN, SIZE, NUMBER, CAP, BEGAN, HEARD, ARMS, BAD, SENT, STATES = range(11)
"""Places in a row of `PlayerArrays.state`. Of the open block: decisions to come, decisions made whose arms are not
drawn, its size (0: none is open). Then: the number of the next block, the cap of sizes, when the open block began, how
many announcements were heard, how many arms remain, how many of them are not good, and whether it has sent a block."""

# Numba's cache on disk knows these classes by name: after a rename, delete kernels/__pycache__/blocks.*.nb?.


class BlockTables(NamedTuple):
    """What a block pays, by decisions of each of two arms: filled when first asked for."""

    stakes: Floats
    factors: Floats
    """One after the other: by decisions, successes of the suspect, successes of the rival, stake."""
    filled: np.ndarray[tuple[int], np.dtype[np.bool_]]
    """By decisions."""
    log_factorials: Floats
    unequal: Floats
    """Room for what one block of unequal counts pays, by stake."""


class FleetArrays(NamedTuple):
    """The server of one trial, and what is counted over all players."""

    wealth: Floats
    """By suspect, rival and stake, one after the other."""
    means: FloatTable
    """By suspect and rival, over the stakes."""
    contending: np.ndarray[tuple[int], np.dtype[np.bool_]]
    fell: Integers
    """By arm: with which announcement it fell, from 1."""
    numbers: Integers


class PlayerArrays(NamedTuple):
    """The players of one trial, and their sites."""

    state: IntegerTable
    left: IntegerTable
    """Of the open block, by arm: decisions that are not drawn."""
    successes: IntegerTable
    """Of the open block, by arm; with visitors only."""
    means: FloatTable
    gaps: FloatTable
    good: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    log_odds: FloatTable
    """Of the means."""
    visitors: FloatTable
    """Means of the visitor who is there; NaN where they were not asked for yet."""


class WorldArrays(NamedTuple):
    """Where and when draws are made. Spreads are standard deviations of log odds."""

    keep: Floats
    alias: Integers
    shares: Floats
    rows: FloatTable
    """Means by player and arm, before anything shifts them."""
    spread: float
    site_spread: float
    leaves: float
    """The probability that the next decision is of a new visitor; 0 where there are no visitors."""
    visitor_spread: float
    timed: bool
    """Blocks close before a decision, too."""
    milliseconds: float
    """From one draw to the next."""


class BlockRules(NamedTuple):
    """What the task says."""

    weights: Floats
    delta: float
    epsilon: float
    floor: int
    age: int
    """In milliseconds."""
    heards: int
    """So many values has the field `heard` of a block."""


class TrialArrays(NamedTuple):
    """What comes out, one row for each trial."""

    grid: Integers
    regret: FloatTable
    costs: IntegerTable
    """Blocks, their bits, announcements, and the bits of those to one player."""
    eliminations: IntegerCube
    ends: IntegerTable
    judged: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    """Correct, safe, best and lost."""


class BlockRoom(NamedTuple):
    """For what one block comes to, by arm."""

    made: Integers
    decided: Integers
    """As the block tells it: 0 for an arm that is out, or has fewer than the floor."""
    successes: Integers
    told: IntegerTable
    """The same without the arms that are out."""
    against: Floats


# ---- what a block pays


@compiled
def log_choose(log_factorials: Floats, n: int, k: int) -> float:
    return log_factorials[n] - log_factorials[k] - log_factorials[n - k]


@compiled
def place_of(decided: int, suspect: int, rival: int) -> int:
    """Where in `BlockTables.factors` the stakes of two arms with equal counts begin."""
    before = decided * (decided + 1) * (2 * decided + 1) // 6  # 1² + … + decided²
    return (before + suspect * (decided + 1) + rival) * KINDS


@compiled
def fill(tables: BlockTables, decided: int) -> None:
    """`outvote.core.blocks.bets.matched` and what comes of it, for all successes of two arms."""
    logs, factors = tables.log_factorials, tables.factors
    for suspect in range(decided + 1):
        for rival in range(decided + 1):
            at = place_of(decided, suspect, rival)
            factors[at : at + KINDS] = 0.0
            ways = log_choose(logs, decided, suspect)
            for x in range(max(0, suspect - rival), min(suspect, decided - rival) + 1):
                law = math.exp(log_choose(logs, decided - rival, x) + log_choose(logs, rival, suspect - x) - ways)
                for i in range(KINDS):
                    stake = tables.stakes[i]
                    factors[at + i] += law * (1.0 - stake) ** x * (1.0 + stake) ** (rival - suspect + x)
    tables.filled[decided] = True


@compiled
def pay_unequal(tables: BlockTables, decided: int, suspect: int, other_decided: int, rival: int) -> None:
    """So many decisions of the arm that has more are drawn at random as the other one has."""
    logs, paid = tables.log_factorials, tables.unequal
    pairs, most = min(decided, other_decided), max(decided, other_decided)
    successes = suspect if decided > other_decided else rival  # of the arm that has more
    if not tables.filled[pairs]:
        fill(tables, pairs)
    paid[:] = 0.0
    ways = log_choose(logs, most, pairs)
    for drawn in range(max(0, pairs - (most - successes)), min(pairs, successes) + 1):
        others = log_choose(logs, most - successes, pairs - drawn)
        law = math.exp(log_choose(logs, successes, drawn) + others - ways)
        at = place_of(pairs, drawn, rival) if decided > other_decided else place_of(pairs, suspect, drawn)
        for i in range(KINDS):
            paid[i] += law * tables.factors[at + i]


@compiled
def multiply(wealth: Floats, start: int, factors: Floats, at: int) -> float:
    """Pay the stakes from a place on; returns their sum."""
    even, odd = 0.0, 0.0
    for i in range(0, KINDS, 2):
        first, second = wealth[start + i] * factors[at + i], wealth[start + i + 1] * factors[at + i + 1]
        first, second = first if first > LEAST else LEAST, second if second > LEAST else LEAST
        wealth[start + i], wealth[start + i + 1] = first, second
        even += first
        odd += second
    return even + odd


@compiled
def bet(fleet: FleetArrays, tables: BlockTables, decided: Integers, successes: Integers) -> None:
    """Every arm of a block that is not refuted against every other one of the block."""
    arms = len(decided)
    for suspect in range(arms):
        n, a = decided[suspect], successes[suspect]
        if n == 0 or not fleet.contending[suspect]:
            continue
        first = place_of(n, a, 0)
        for rival in range(arms):
            if rival == suspect or decided[rival] == 0:
                continue
            start = (suspect * arms + rival) * KINDS
            if decided[rival] == n:
                if not tables.filled[n]:
                    fill(tables, n)
                fleet.means[suspect, rival] = multiply(
                    fleet.wealth, start, tables.factors, first + successes[rival] * KINDS
                )
            else:
                pay_unequal(tables, n, a, decided[rival], successes[rival])
                fleet.means[suspect, rival] = multiply(fleet.wealth, start, tables.unequal, 0)


# ---- how large blocks are, and what they cost


@compiled
def planned(number: int, floor: int, cap: int) -> int:
    """See `outvote.core.blocks.sizes`."""
    bits = 1
    while number >> bits > 0:
        bits += 1
    return max(floor, min((1 << bits) - 1, cap))


@compiled
def below(size: int) -> int:
    """See `outvote.core.blocks.sizes`."""
    found = RUNGS[0]
    for rung in RUNGS:
        if rung < size:
            found = rung
    return found


@compiled
def above(size: int) -> int:
    """See `outvote.core.blocks.sizes`."""
    for rung in RUNGS:
        if rung > size:
            return rung
    return LARGEST


@compiled
def bits_of(symbols: int) -> int:
    """⌈log₂ symbols⌉."""
    bits = 0
    while 1 << bits < symbols:
        bits += 1
    return bits


@compiled
def block_bits(
    log_factorials: Floats, rules: BlockRules, number: int, arms: int, decided: Integers, successes: Integers
) -> int:
    """What `BlockCodebook` needs for a block of the first so many counts."""
    total, ones, ways = 0, 0, 0.0
    planned_size, size = True, decided[0]
    for place in range(arms):
        total += decided[place]
        ones += successes[place]
        ways += log_choose(log_factorials, decided[place], successes[place])
        planned_size &= decided[place] == size
    ways = log_choose(log_factorials, total, ones) - ways + math.log((total + 1.0) * rules.heards)
    if planned_size and size == planned(number, rules.floor, LARGEST):
        ways += math.log(16 / DUE)
    else:
        on_rung = False
        for rung in RUNGS:
            on_rung |= planned_size and size == max(rules.floor, rung)
        ways += math.log(16 / (16 - DUE) * (UNPLANNED + 1)) + (0.0 if on_rung else arms * math.log(MOST + 1.0))
    return max(0, math.ceil(ways / math.log(2.0) - EXACT))


# ---- what the server does


@compiled
def reset(fleet: FleetArrays, rules: BlockRules, players: int) -> None:
    """A new server: no bet was made, no arm is out."""
    arms = len(fleet.fell)
    for stake in range(KINDS):
        fleet.wealth[stake::KINDS] = rules.weights[stake]
    fleet.means[:] = 1.0
    for k in range(arms):
        fleet.means[k, k] = 0.0
    fleet.contending[:] = True
    fleet.fell[:] = UNANNOUNCED
    fleet.numbers[:] = 0
    fleet.numbers[LEFT] = fleet.numbers[CONTENDING] = arms
    fleet.numbers[UNFINISHED] = players


@compiled
def refute(fleet: FleetArrays, delta: float, decided: Integers, against: Floats) -> None:
    """Those that cross with this block, the wealthiest first; the last arm stays."""
    arms = len(decided)
    for arm in range(arms):
        against[arm] = 0.0
        if decided[arm] > 0 and fleet.contending[arm]:
            against[arm] = fleet.means[arm].sum() / (arms - 1)
    while fleet.numbers[CONTENDING] > 1:
        arm = int(against.argmax())
        if against[arm] * delta < 1.0:
            break
        against[arm] = 0.0
        fleet.contending[arm] = False
        fleet.numbers[CONTENDING] -= 1


@compiled
def announce(fleet: FleetArrays, record: TrialArrays, trial: int, draw: int) -> None:
    """Announce the refuted arms, if it is time."""
    numbers, fell = fleet.numbers, fleet.fell
    left, contending = numbers[LEFT], numbers[CONTENDING]
    due = left <= FEW or contending == 1 or 2 * contending <= left or numbers[WAITING] >= numbers[REPORTED]
    if contending == left or not due:
        return
    numbers[ANNOUNCED] += 1
    fallen = len(fell) - left
    for k in range(len(fell)):
        if fell[k] == UNANNOUNCED and not fleet.contending[k]:
            fell[k] = numbers[ANNOUNCED]
            record.eliminations[trial, fallen, 0], record.eliminations[trial, fallen, 1] = k, draw
            fallen += 1
    record.costs[trial, 2] += 1
    record.costs[trial, 3] += REASON + (left if contending > 1 else bits_of(left))
    numbers[LEFT] = contending
    numbers[WAITING] = 0
    if contending == 1:
        record.ends[trial, 0] = draw


# ---- what the players do


@compiled
def take(rng: np.random.Generator, left: Integers, total: int, most: int) -> int:
    """The arm of one of the decisions that are left, `total` in all, of each arm at most `most`: it goes."""
    arms = len(left)
    arm = 0
    if 2 * total > arms * most:  # sooner found by trying
        while True:
            at = rng.random() * arms
            arm = int(at)
            if (at - arm) * most < left[arm]:
                break
    else:
        at = int(rng.random() * total)
        while at >= left[arm]:
            at -= left[arm]
            arm += 1
    left[arm] -= 1
    return arm


@compiled
def draw_arms(rng: np.random.Generator, players: PlayerArrays, n: int, made: Integers) -> float:
    """Which arms a player's decisions were of, at random out of those that were left; returns their regret."""
    left, gaps = players.left[n], players.gaps[n]
    draws, missing, most = players.state[n, UNDRAWN], players.state[n, MISSING], players.state[n, SIZE]
    regret = 0.0
    if draws <= missing:
        for drawn in range(draws):
            regret += gaps[take(rng, left, draws + missing - drawn, most)]
    else:  # sooner drawn are those that stay
        made[:] = left
        left[:] = 0
        for stays in range(missing):
            left[take(rng, made, draws + missing - stays, most)] += 1
        for k in range(len(made)):
            regret += made[k] * gaps[k]
    players.state[n, UNDRAWN] = 0
    return regret


@compiled
def hear(fleet: FleetArrays, players: PlayerArrays, n: int, ends: Integers, draw: int) -> None:
    """A player hears of all announcements; its open block has no decision whose arm is not drawn."""
    state, had_bad = players.state, players.state[n, BAD] > 0
    for k in range(len(fleet.fell)):
        if state[n, HEARD] < fleet.fell[k] < UNANNOUNCED:
            state[n, MISSING] -= players.left[n, k]
            players.left[n, k] = 0
            state[n, ARMS] -= 1
            state[n, BAD] -= not players.good[n, k]
    state[n, HEARD] = fleet.numbers[ANNOUNCED]
    if had_bad and state[n, BAD] == 0:
        fleet.numbers[UNSOLVED] -= 1
        if fleet.numbers[UNSOLVED] == 0:
            ends[2] = draw
    if state[n, ARMS] == 1:
        state[n, SIZE] = 0
        fleet.numbers[UNFINISHED] -= 1
        if fleet.numbers[UNFINISHED] == 0:
            ends[1] = draw


@compiled
def open_block(fleet: FleetArrays, players: PlayerArrays, n: int, floor: int, now: int) -> None:
    """The next block of a player."""
    state = players.state
    size = planned(state[n, NUMBER], floor, state[n, CAP])
    state[n, SIZE], state[n, MISSING], state[n, BEGAN] = size, state[n, ARMS] * size, now
    state[n, NUMBER] += 1
    for k in range(len(fleet.fell)):
        players.left[n, k] = size if fleet.fell[k] > state[n, HEARD] else 0
        players.successes[n, k] = 0


@compiled
def visit(rng: np.random.Generator, world: WorldArrays, players: PlayerArrays, n: int, k: int) -> None:
    """Whoever is at the site decides, after a new visitor has come or not."""
    visitors = players.visitors
    if rng.random() < world.leaves:
        for other in range(visitors.shape[1]):
            visitors[n, other] = np.nan
    if math.isnan(visitors[n, k]):
        of_visitor = world.visitor_spread * rng.standard_normal()
        visitors[n, k] = 1.0 / (1.0 + math.exp(-players.log_odds[n, k] - of_visitor))
    players.successes[n, k] += rng.random() < visitors[n, k]


@compiled
def count_successes(rng: np.random.Generator, draws: int, mean: float) -> int:
    """Of so many decisions."""
    if draws > COINS:
        return binomial(rng, draws, mean)
    found = 0
    for _ in range(draws):
        found += rng.random() < mean
    return found


@compiled
def close_block(
    rng: np.random.Generator,
    fleet: FleetArrays,
    players: PlayerArrays,
    n: int,
    floor: int,
    visited: bool,
    room: BlockRoom,
) -> int:
    """What a player's block tells: for how many of its arms; 0 if nothing is sent."""
    state, compared, place = players.state, 0, 0
    for k in range(len(fleet.fell)):
        room.decided[k] = room.successes[k] = 0
        if fleet.fell[k] <= state[n, HEARD]:
            continue
        decided = state[n, SIZE] - players.left[n, k]
        if decided >= floor:
            room.decided[k] = decided
            if visited:
                room.successes[k] = players.successes[n, k]
            else:
                room.successes[k] = count_successes(rng, decided, players.means[n, k])
            compared += 1
        room.told[0, place], room.told[1, place] = room.decided[k], room.successes[k]
        place += 1
    state[n, SIZE] = 0
    if compared > 1 and not state[n, SENT]:
        state[n, SENT] = 1
        fleet.numbers[REPORTED] += 1
    return place if compared > 1 else 0


# ---- the trials


@compiled
def log_odds(mean: float) -> float:
    """Infinite for 0 and 1, which nothing shifts."""
    return math.log(mean) - math.log1p(-mean)


@compiled
def start(
    rng: np.random.Generator, world: WorldArrays, rules: BlockRules, fleet: FleetArrays, players: PlayerArrays
) -> None:
    """A new trial: what differs by site is drawn, and nothing has happened."""
    arms, means, state = len(fleet.fell), players.means, players.state
    state[:] = 0
    state[:, CAP] = LARGEST
    state[:, ARMS] = arms
    for n in range(len(means)):
        of_site = world.site_spread * rng.standard_normal() if world.site_spread > 0.0 else 0.0
        for k in range(arms):
            of_arm = world.spread * rng.standard_normal() if world.spread > 0.0 else 0.0
            shift = of_site + of_arm
            players.log_odds[n, k] = log_odds(world.rows[n, k]) + shift
            # Where nothing shifts it, a mean stays what it is to the last bit.
            means[n, k] = world.rows[n, k] if shift == 0.0 else 1.0 / (1.0 + math.exp(-players.log_odds[n, k]))
        best = means[n].max()
        for k in range(arms):
            players.gaps[n, k] = best - means[n, k]
            players.good[n, k] = best <= means[n, k] + rules.epsilon + GOOD_TOLERANCE
            state[n, BAD] += not players.good[n, k]
    players.visitors[:] = np.nan
    reset(fleet, rules, len(means))
    fleet.numbers[UNSOLVED] = (state[:, BAD] > 0).sum()


@compiled
def judge(judged: np.ndarray, means: FloatTable, good: np.ndarray, shares: Floats, fell: Integers) -> None:
    """Of the arms that were not announced out: all good, some good, only the best; and whether no best one is left."""
    players, arms = means.shape
    left = fell == UNANNOUNCED
    averages = np.zeros(arms)
    judged[:] = True
    for n in range(players):
        best = means[n].max()
        some = False
        for k in range(arms):
            averages[k] += shares[n] * means[n, k]
            some |= left[k] and good[n, k]
            judged[0] &= good[n, k] or not left[k]
            judged[2] &= best <= means[n, k] + GOOD_TOLERANCE or not left[k]
        judged[1] &= some
    judged[2] &= left.sum() == 1
    for k in range(arms):
        judged[3] &= not left[k] or averages.max() > averages[k] + GOOD_TOLERANCE


@compiled
def blocks_trials(
    rng: np.random.Generator,
    world: WorldArrays,
    rules: BlockRules,
    tables: BlockTables,
    fleet: FleetArrays,
    players: PlayerArrays,
    room: BlockRoom,
    record: TrialArrays,
) -> None:
    """Run as many trials as `record` has rows, one after the other from one generator."""
    asleep = (world.shares == 0.0).sum()
    visited = world.leaves > 0.0 and world.visitor_spread > 0.0
    state, numbers, gaps = players.state, fleet.numbers, players.gaps
    for trial in range(len(record.regret)):
        start(rng, world, rules, fleet, players)
        record.costs[trial] = 0
        record.eliminations[trial] = -1
        ends = record.ends[trial]
        ends[:] = -1
        if numbers[UNSOLVED] == 0:
            ends[2] = 1  # Algorithm 1 tests after the first draw
        last, alike = 0, False
        regret = 0.0
        draw = 0
        for point in range(len(record.grid)):
            while draw < record.grid[point]:
                if alike and numbers[UNFINISHED] == asleep:
                    regret += (record.grid[point] - draw) * gaps[0, last]
                    draw = record.grid[point]
                    break
                draw += 1
                n = choose_player(rng, world.keep, world.alias)
                now = int(draw * world.milliseconds)
                closes = False
                if state[n, HEARD] != numbers[ANNOUNCED]:
                    if state[n, UNDRAWN] > 0:
                        regret += draw_arms(rng, players, n, room.made)
                    hear(fleet, players, n, ends, draw)
                    closes = state[n, SIZE] > 0 and state[n, MISSING] == 0
                if state[n, ARMS] == 1:
                    regret += gaps[n, last]
                    continue
                for decides in (False, True):
                    if decides:
                        if state[n, SIZE] == 0:
                            open_block(fleet, players, n, rules.floor, now)
                        if visited:
                            k = take(rng, players.left[n], state[n, MISSING], state[n, SIZE])
                            regret += gaps[n, k]
                            visit(rng, world, players, n, k)
                        else:
                            state[n, UNDRAWN] += 1
                        state[n, MISSING] -= 1
                        closes = state[n, MISSING] == 0
                        if closes and now - state[n, BEGAN] < rules.age // 2:
                            state[n, CAP] = above(state[n, SIZE])
                    may_age = state[n, SIZE] > 0 and not closes and (decides or world.timed)
                    if may_age and now - state[n, BEGAN] >= rules.age:
                        made = state[n, SIZE] * state[n, ARMS] - state[n, MISSING]
                        closes = made >= 2 * rules.floor * state[n, ARMS]
                        if closes:
                            state[n, CAP] = below(state[n, SIZE])
                    if not closes:
                        continue
                    if state[n, UNDRAWN] > 0:
                        regret += draw_arms(rng, players, n, room.made)
                    told = close_block(rng, fleet, players, n, rules.floor, visited, room)
                    if told == 0:
                        continue
                    record.costs[trial, 0] += 1
                    record.costs[trial, 1] += block_bits(
                        tables.log_factorials, rules, state[n, NUMBER] - 1, told, room.told[0], room.told[1]
                    )
                    numbers[WAITING] += 1
                    bet(fleet, tables, room.decided, room.successes)
                    refute(fleet, rules.delta, room.decided, room.against)
                    announce(fleet, record, trial, draw)
                    if ends[0] == draw:
                        last = int(fleet.contending.argmax())
                        alike = gaps[:, last].min() == gaps[:, last].max()
            for n in range(len(state)):
                if state[n, UNDRAWN] > 0:
                    regret += draw_arms(rng, players, n, room.made)
            record.regret[trial, point] = regret
        judge(record.judged[trial], players.means, players.good, world.shares, fleet.fell)
