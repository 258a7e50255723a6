"""A fleet of Tally in which every idea of the design can be exchanged for another, draw by draw, compiled.

`Variant()` is the protocol as `outvote.core` has it, but for the test whether all sites see the same means: here they
do. What differs is said by its fields. `check.py` holds it against the protocol itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from benchmarks.tally.payments import Array, Prior, Tables, tables_of

from outvote.core.tally_player import GROWTH
from outvote.core.task import Task
from outvote.simulation.activity import eighty_twenty, uniform
from outvote.simulation.arrays import Floats, FloatTable, Integers
from outvote.simulation.kernels.compiling import compiled

DELTA = 0.05
HORIZON = 300_000
"""A trial that has not ended by then is given up."""

LEADER, POWER, MEAN, PAIRS, JEFFREYS_UNION, JEFFREYS_MEAN = range(6)
EVIDENCE = {
    "leader": LEADER,
    "power": POWER,
    "mean": MEAN,
    "pairs": PAIRS,
    "jeffreys-union": JEFFREYS_UNION,
    "jeffreys-mean": JEFFREYS_MEAN,
}


def sizes_from(floor: int) -> tuple[int, ...]:
    """The sizes of tallies that a task with this floor has."""
    return Task(arms=2, players=1, epsilon=0.0, delta=DELTA, protocol="tally", floor=floor).tally_sizes


@dataclass(frozen=True)
class Variant:
    """What a fleet does; the defaults are Tally's."""

    evidence: str = "leader"
    """Rounds of bets against the leader, against rivals j by weight 1/E_j^`power`, or against all (`mean`); or bets of
    each pair of arms on its own, any of which refutes (`pairs`); or Jeffreys mixtures over the best fit to equal means,
    any of which or whose mean refutes (`jeffreys-union`, `jeffreys-mean`)."""
    power: float = 1.0
    prior: Prior | None = None
    """What is bet on; None: the protocol's own."""
    knows_means: bool = False
    """One bet, on the means of the two best arms, which nobody can know."""
    sizes: tuple[int, ...] = sizes_from(3)
    growth: int = GROWTH
    by_place: bool = False
    """Sizes grow with the place in the cycle, which skips eliminated arms, and not with the tallies opened."""
    small_again: int = 0
    """Tallies are small again when at most so many arms are left."""
    early: int = 0
    """An announcement that leaves at most so many arms makes players send at once what they have, if it is no less than
    the floor: an early tally. Its size is none of the usual ones, so it is named."""
    cut: bool = False
    """Early tallies are cut down to the largest usual size, which their length tells; what is above is lost."""
    subset: int | None = None
    """Each player tries so many arms only, until none of them is left."""
    follows_leader: bool = False
    """Announcements name the leader as well, and from then on every other tally of a player is the leader's."""
    share: float = 0.5
    """The server announces once at most this share of the arms it last announced is left, or one arm."""
    masks: bool = True
    """Announcements are masks of survivors; otherwise they name each arm that falls."""
    budget: float | None = None
    """Of differential privacy."""


@dataclass(frozen=True)
class Setting:
    """Where a variant is tried."""

    means: tuple[float, ...]
    players: int = 64
    activity: str = "uniform"

    def shares(self) -> Floats:
        """How likely each player is to be the next."""
        return (uniform if self.activity == "uniform" else eighty_twenty)(self.players).shares()


class Outcome(NamedTuple):
    """One number for each trial."""

    regret: Floats
    draws: Floats
    up: Floats
    down: Floats
    tallies: Floats
    won: Floats
    """1 where the best arm is the one left, else 0."""
    ended: Floats
    """1 where one arm is left, else 0."""


def run(variant: Variant, setting: Setting, seeds: range, order: Sequence[int] = ()) -> Outcome:
    """One trial for each seed; equal seeds bring equal draws and rewards to all variants without noise.

    `order` is the shuffle of arms that players cycle through; if none is given, every trial has its own.
    """
    means = np.array(setting.means)
    arms = len(means)
    tables = tables_of(all_sizes(variant), prior_of(variant, setting), variant.budget)
    rounds = variant.evidence in ("leader", "power", "mean")
    rules = Rules(
        evidence=EVIDENCE[variant.evidence],
        power=variant.power,
        threshold=math.log(1 / DELTA) if rounds else math.log((arms - 1) / DELTA),
        growth=variant.growth,
        by_place=variant.by_place,
        small_again=variant.small_again,
        levels=len(variant.sizes),
        early=variant.early,
        cut=variant.cut,
        subset=arms if variant.subset is None else variant.subset,
        follows_leader=variant.follows_leader,
        share=variant.share,
        masks=variant.masks,
        alpha=0.0 if variant.budget is None else math.exp(-variant.budget),
    )
    cumulative = np.cumsum(setting.shares())
    cumulative[-1] = 1.0
    results = np.empty((len(seeds), len(Outcome._fields)))
    _trials(np.array(seeds), np.array(order, np.int64), means, cumulative, rules, tables, results)
    return Outcome(*results.T)


def all_sizes(variant: Variant) -> tuple[int, ...]:
    """The usual sizes first, then those that early tallies alone can have."""
    if not variant.early or variant.cut:
        return variant.sizes
    between = range(variant.sizes[0], variant.sizes[-1])
    return (*variant.sizes, *(size for size in between if size not in variant.sizes))


def prior_of(variant: Variant, setting: Setting) -> Prior | None:
    low, high = sorted(setting.means)[-2:]
    return ((low, high, 1.0),) if variant.knows_means else variant.prior


# ---- what is compiled


class Rules(NamedTuple):
    """A variant as numbers."""

    evidence: int
    power: float
    threshold: float
    growth: int
    by_place: bool
    small_again: int
    levels: int
    """So many of the sizes are the usual ones; those after them are of early tallies alone."""
    early: int
    cut: bool
    subset: int
    follows_leader: bool
    share: float
    masks: bool
    alpha: float


class Players(NamedTuple):
    """Of each player the open tally, and how it came to it."""

    place: Integers
    opened: Integers
    arm: Integers
    level: Integers
    """The place of the tally's size among the sizes."""
    events: Integers
    successes: Integers
    cut_events: Integers
    cut_successes: Integers
    """Of the open tally up to the largest usual size that it has passed."""


class Server(NamedTuple):
    """What the server knows of each arm."""

    announced: Array
    """Players may play it."""
    contends: Array
    """It may be best."""
    log_evidence: Floats
    trials: Integers
    successes: Integers
    worse: FloatTable
    better: FloatTable
    """What its tallies paid in all rounds, as the suspect and as the rival."""
    pairs: Array
    """What the bets of each pair of arms paid."""
    log_pairs: FloatTable
    """The evidence of each pair."""
    came: Array
    taken: Array
    """Of each size and arm: the tallies that came, and those of them that rounds have taken."""
    tallies: Array
    """All that came."""


@compiled
def _trials(
    seeds: Integers,
    order: Integers,
    means: Floats,
    cumulative: Floats,
    rules: Rules,
    tables: Tables,
    results: FloatTable,
) -> None:
    for i in range(len(seeds)):
        np.random.seed(seeds[i])  # noqa: NPY002  # compiled code has this generator, one for each thread
        shuffled = np.random.permutation(len(means))  # noqa: NPY002
        _trial(order if len(order) else shuffled, means, cumulative, rules, tables, results[i])


@compiled
def _trial(order: Integers, means: Floats, cumulative: Floats, rules: Rules, tables: Tables, result: Floats) -> None:
    arms, fleet = len(means), len(cumulative)
    players, server = _new_players(fleet), _new_server(arms, tables)
    named, flag = -1, 0
    for player in range(fleet):
        _open_next(players, player, order, server, named, rules, tables)
    best, regret, up, down, tallies, draw, remaining = means.max(), 0.0, 0, 0, 0, 0, arms
    while draw < HORIZON and remaining > 1:
        draw += 1
        player = int(np.searchsorted(cumulative, np.random.random(), side="right"))  # noqa: NPY002
        arm, level = players.arm[player], players.level[player]
        regret += best - means[arm]
        players.events[player] += 1
        if np.random.random() < means[arm]:  # noqa: NPY002
            players.successes[player] += 1
        size = tables.sizes[level]
        if players.events[player] < size:
            if rules.cut and players.events[player] in tables.sizes:
                players.cut_events[player] = players.events[player]
                players.cut_successes[player] = players.successes[player]
            continue
        sent = _noisy(players.successes[player], size, rules)
        up += tables.bits[level] + flag
        tallies += 1
        _open_next(players, player, order, server, named, rules, tables)
        _weigh(server, arm, level, sent, rules, tables)
        left = server.contends.sum()
        while left < remaining and (left <= rules.share * remaining or left == 1):
            down += fleet * _announcement_bits(remaining, left, arms, rules)
            remaining = left
            server.announced[:] = server.contends
            if rules.follows_leader:
                named = _leader(server, -1)
            if left <= rules.early and not rules.cut:
                flag = 1  # from now on every tally says whether it is an early one
            for other in range(fleet):
                if not server.announced[players.arm[other]] and left > 1:
                    _open_next(players, other, order, server, named, rules, tables)
                elif 1 < left <= rules.early:
                    bits = _send_early(players, other, order, server, named, rules, tables)
                    up += bits
                    tallies += bits > 0
            left = server.contends.sum()
    ended = remaining == 1
    result[0], result[1], result[2], result[3], result[4] = regret, draw, up, down, tallies
    result[5], result[6] = ended and server.announced[np.argmax(means)], ended


@compiled
def _new_players(fleet: int) -> Players:
    whole = np.zeros((8, fleet), np.int64)
    whole[0] = whole[2] = -1
    return Players(whole[0], whole[1], whole[2], whole[3], whole[4], whole[5], whole[6], whole[7])


@compiled
def _new_server(arms: int, tables: Tables) -> Server:
    levels, stakes = len(tables.sizes), len(tables.log_weights)
    return Server(
        np.ones(arms, np.bool_),
        np.ones(arms, np.bool_),
        np.zeros(arms),
        np.zeros(arms, np.int64),
        np.zeros(arms, np.int64),
        np.zeros((arms, stakes)),
        np.zeros((arms, stakes)),
        np.zeros((arms, arms, stakes)),
        np.full((arms, arms), -np.inf),
        np.zeros((levels, arms), np.int64),
        np.zeros((levels, arms), np.int64),
        np.empty((levels, arms, HORIZON // tables.sizes[0] + 1), np.int16),  # memory is taken where it is written
    )


@compiled
def _open_next(
    players: Players, player: int, order: Integers, server: Server, named: int, rules: Rules, tables: Tables
) -> None:
    """A tally of the next remaining arm of the player's cycle, or of the leader in between."""
    arms = len(order)
    if named >= 0 and server.announced[named] and players.arm[player] != named:
        arm = named
    else:
        width = rules.subset
        if width < arms:
            some = False
            for i in range(width):
                some |= server.announced[order[(player + i) % arms]]
            width = width if some else arms
        while True:
            players.place[player] += 1
            arm = order[(player + players.place[player] % width) % arms]
            if server.announced[arm] and arm != named:
                break
    count = players.place[player] if rules.by_place else players.opened[player]
    level, until = 0, arms
    while level < rules.levels - 1 and count >= until:
        level += 1
        until *= rules.growth
    if server.announced.sum() <= rules.small_again:
        level = 0
    players.opened[player] += 1
    players.arm[player], players.level[player] = arm, level
    players.events[player] = players.successes[player] = 0
    players.cut_events[player] = players.cut_successes[player] = 0


@compiled
def _send_early(
    players: Players, player: int, order: Integers, server: Server, named: int, rules: Rules, tables: Tables
) -> int:
    """The open tally as it is, if it is no less than the floor; its bits, 0 if nothing was sent."""
    arm, size = players.arm[player], tables.sizes[players.level[player]]
    events = players.cut_events[player] if rules.cut else players.events[player]
    if events < tables.sizes[0]:
        return 0
    level = int(np.argmax(tables.sizes == events))
    sent = _noisy(players.cut_successes[player] if rules.cut else players.successes[player], events, rules)
    _open_next(players, player, order, server, named, rules, tables)
    _weigh(server, arm, level, sent, rules, tables)
    bits = int(tables.bits[level])
    if not rules.cut:  # that it is early, and which size from the floor to one below the usual
        bits += 1 + _width(size - tables.sizes[0])
    return bits


@compiled
def _noisy(successes: int, size: int, rules: Rules) -> int:
    """What a tally says."""
    return int(successes if rules.alpha == 0 else min(max(successes + _noise(rules.alpha), 0), size))


@compiled
def _noise(alpha: float) -> int:
    """Two-sided geometric: the difference of two geometric numbers."""
    scale = math.log(alpha)
    first = math.floor(math.log(1 - np.random.random()) / scale)  # noqa: NPY002
    return int(first - math.floor(math.log(1 - np.random.random()) / scale))  # noqa: NPY002


@compiled
def _announcement_bits(before: int, left: int, arms: int, rules: Rules) -> int:
    """To one player."""
    if not rules.masks:
        return int((before - left) * _width(arms))
    if left == 1:
        return _width(before)
    return before + (_width(left) if rules.follows_leader else 0)


@compiled
def _width(symbols: int) -> int:
    return math.ceil(math.log2(symbols))


@compiled
def _weigh(server: Server, arm: int, level: int, sent: int, rules: Rules, tables: Tables) -> None:
    """A tally has come: bring the evidence up to date and drop who is refuted."""
    if rules.evidence in (LEADER, POWER, MEAN):
        if not server.contends[arm]:
            return
        _keep(server, arm, level, sent)
        ready = level
        while ready >= 0:
            ready = _ready(server, level)
            if ready >= 0:
                _play_round(server, ready, rules, tables)
                _drop_the_refuted(server, rules)
        return
    _keep(server, arm, level, sent)
    server.trials[arm] += tables.sizes[level]
    server.successes[arm] += sent
    for other in range(len(server.contends)):
        if other != arm:
            if rules.evidence == PAIRS:
                _bet_on_pair(server, arm, other, level, sent, tables)
            else:
                _mix_jeffreys(server, arm, other)
    for suspect in range(len(server.contends)):
        row = server.log_pairs[suspect]
        server.log_evidence[suspect] = _log_sum(row) if rules.evidence == JEFFREYS_MEAN else row.max()
    _drop_the_refuted(server, rules)


@compiled
def _keep(server: Server, arm: int, level: int, sent: int) -> None:
    server.tallies[level, arm, server.came[level, arm]] = sent
    server.came[level, arm] += 1


@compiled
def _drop_the_refuted(server: Server, rules: Rules) -> None:
    """The strongest evidence first, so that if all are refuted the least refuted stays."""
    while server.contends.sum() > 1:
        worst = -1
        for arm in range(len(server.contends)):
            if server.contends[arm] and (worst < 0 or server.log_evidence[arm] > server.log_evidence[worst]):
                worst = arm
        if server.log_evidence[worst] < rules.threshold:
            break
        server.contends[worst] = False


# ---- rounds


@compiled
def _ready(server: Server, newest: int) -> int:
    """A size of which every contender has a tally waiting, the one that just came first; −1 if there is none."""
    if server.contends.sum() > 1:
        for i in range(-1, len(server.came)):
            level = newest if i < 0 else i
            all_wait = True
            for arm in range(len(server.contends)):
                all_wait &= not server.contends[arm] or server.came[level, arm] > server.taken[level, arm]
            if all_wait:
                return level
    return -1


@compiled
def _play_round(server: Server, level: int, rules: Rules, tables: Tables) -> None:
    """One tally of every contender; what is staked on whom depends on earlier rounds alone."""
    arms = len(server.contends)
    before = np.zeros((arms, arms))
    stakes = _stakes(server, before, rules, tables)
    for arm in range(arms):
        if server.contends[arm]:
            sent = server.tallies[level, arm, server.taken[level, arm]]
            server.taken[level, arm] += 1
            server.trials[arm] += tables.sizes[level]
            server.successes[arm] += sent
            server.worse[arm] += tables.worse[level, sent]
            server.better[arm] += tables.better[level, sent]
    for arm in range(arms):
        if server.contends[arm]:
            gain = 0.0
            for rival in range(arms):
                if stakes[arm, rival] > 0:
                    after = _wealth(tables.log_weights, server.worse[arm], server.better[rival])
                    gain += stakes[arm, rival] * math.exp(after - before[arm, rival])
            server.log_evidence[arm] += math.log(gain)


@compiled
def _stakes(server: Server, before: FloatTable, rules: Rules, tables: Tables) -> FloatTable:
    """How each contender's wealth is spread over its rivals; fills in the wealth of the bets that have a share."""
    arms = len(server.contends)
    stakes = np.zeros((arms, arms))
    leader = _leader(server, -1)
    second = _leader(server, leader)
    for arm in range(arms):
        if not server.contends[arm]:
            continue
        exponent = np.full(arms, -np.inf)
        for rival in range(arms):
            if rival == arm or not server.contends[rival]:
                continue
            if rules.evidence == LEADER and rival != (second if arm == leader else leader):
                continue
            before[arm, rival] = _wealth(tables.log_weights, server.worse[arm], server.better[rival])
            if rules.evidence == MEAN:
                exponent[rival] = before[arm, rival]
            elif rules.evidence == POWER:
                exponent[rival] = -rules.power * server.log_evidence[rival]
            else:
                exponent[rival] = 0.0
        share = np.exp(exponent - exponent.max())
        stakes[arm] = share / share.sum()
    return stakes


@compiled
def _leader(server: Server, other_than: int) -> int:
    """The contender with the highest mean in the rounds so far; of equal ones the lowest index."""
    found, highest = -1, -1.0
    for arm in range(len(server.contends)):
        standing = (server.successes[arm] + 0.5) / (server.trials[arm] + 1)
        if server.contends[arm] and arm != other_than and standing > highest:
            found, highest = arm, standing
    return found


@compiled
def _wealth(log_weights: Floats, suspect: Floats, rival: Floats) -> float:
    top = -np.inf
    for i in range(len(log_weights)):
        top = max(top, log_weights[i] + suspect[i] + rival[i])
    total = 0.0
    for i in range(len(log_weights)):
        total += math.exp(log_weights[i] + suspect[i] + rival[i] - top)
    return top + math.log(total)


# ---- evidence without rounds


@compiled
def _bet_on_pair(server: Server, arm: int, other: int, level: int, sent: int, tables: Tables) -> None:
    """The newest tally of an arm is matched with the other's of the same number and size, if that has come."""
    number = server.came[level, arm] - 1
    if number >= server.came[level, other]:
        return
    match = server.tallies[level, other, number]
    nothing = np.zeros(len(tables.log_weights))
    server.pairs[arm, other] += tables.worse[level, sent] + tables.better[level, match]
    server.pairs[other, arm] += tables.worse[level, match] + tables.better[level, sent]
    server.log_pairs[arm, other] = _wealth(tables.log_weights, server.pairs[arm, other], nothing)
    server.log_pairs[other, arm] = _wealth(tables.log_weights, server.pairs[other, arm], nothing)


@compiled
def _mix_jeffreys(server: Server, arm: int, other: int) -> None:
    """Both arms' counts under Jeffreys' prior, over their best fit to one of them being at least as good."""
    s, n, r, m = server.successes[arm], server.trials[arm], server.successes[other], server.trials[other]
    if n == 0 or m == 0:
        return
    mixed = _log_beta(s, n) + _log_beta(r, m)
    apart, together = _log_fit(s, n) + _log_fit(r, m), _log_fit(s + r, n + m)
    arm_is_lower = s * m < r * n
    server.log_pairs[arm, other] = mixed - (together if arm_is_lower else apart)
    server.log_pairs[other, arm] = mixed - (apart if arm_is_lower else together)


@compiled
def _log_beta(successes: int, trials: int) -> float:
    return (
        math.lgamma(successes + 0.5) + math.lgamma(trials - successes + 0.5)
        - math.lgamma(trials + 1.0) - math.log(math.pi)
    )  # fmt: skip


@compiled
def _log_fit(successes: int, trials: int) -> float:
    fit = 0.0
    if successes > 0:
        fit += successes * math.log(successes / trials)
    if successes < trials:
        fit += (trials - successes) * math.log(1 - successes / trials)
    return fit


@compiled
def _log_sum(values: Floats) -> float:
    top = float(values.max())
    return top if top == -np.inf else top + math.log(np.exp(values - top).sum())
