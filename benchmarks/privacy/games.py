"""The adversary on one event: its reward is tossed, a real player speaks, and the adversary says what it was.

The odds are even, and the adversary knows all but this reward, or all but this and the other rewards. So its advantage
is twice the share of right answers, less one.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.privacy.inference import guess
from benchmarks.privacy.posterior import Laws, others_known, others_unknown
from outvote.core.tally.noise import binomial_law
from outvote.core.tally.player import TallyPlayer
from outvote.core.task import Task
from outvote.core.votes.epochs import Instance
from outvote.core.votes.schedule import Schedule


def play_tallies(task: Task, *, mean: float, games: int, known: bool, seed: int) -> int:
    """Right answers of so many about one event of a player's first tallies, of arms that all have this mean.

    Where the others are `known` to the adversary they have all failed: with noise no others tell more, and without it
    any do. Its place in the tally is drawn too.
    """
    if task.floor is None:
        raise ValueError(f"this game is about tallies, got a task of {task.protocol!r}")
    rng = random.Random(seed)
    size = task.floor
    laws = others_known(size, 0, task.privacy_budget) if known else others_unknown(size, mean, task.privacy_budget)
    right = 0
    for game in range(games):
        if game % len(task.arms) == 0:  # the first K tallies have the size of the floor
            player = TallyPlayer(task, 0, rng)
        reward, place = rng.getrandbits(1), rng.randrange(size)
        for event in range(size):
            ticket = player.decide(0)
            other = not known and rng.random() < mean
            player.reward(ticket, float(reward if event == place else other), 0)
        [tally] = player.tick(0)
        answer = guess(laws, tally.successes)
        right += reward == (rng.getrandbits(1) if answer == 0.5 else answer)
    return right


@dataclass(slots=True)
class Sums:
    """An arm's events at one player, as an epoch sees them."""

    arm: int
    pulls: int
    total: float


@dataclass(frozen=True, slots=True)
class VoteGames:
    """Games about one event of the first epoch."""

    games: int
    right: int
    """Answers that were right, by one who knows nothing of the other rewards but their means."""
    changed: int
    """Games in which the votes would have been others, had the reward been the other: who knows all other rewards is
    right in these, and guesses in the rest."""


def play_votes(task: Task, means: Sequence[float], *, arm: int, games: int, seed: int) -> VoteGames:
    """Games about one event of this arm in the first epoch of a player that has received nothing yet.

    An event counts in the first epoch of every instance; the event is one that all of them count.
    """
    rng = np.random.default_rng(seed)
    schedules = task.schedules()
    shortest = min(range(len(schedules)), key=lambda index: schedules[index].pulls(1))
    laws = rank_laws(schedules[shortest].pulls(1), tuple(means), arm)
    right = changed = 0
    for _ in range(games):
        sums = _draw_sums(schedules, means, arm, rng)
        lists = [first_votes(schedules, sums, arm=arm, reward=reward) for reward in (0, 1)]
        changed += lists[0] != lists[1]
        reward = int(rng.integers(2))
        answer = guess(laws, seen_rank(lists[reward][shortest], arm, len(means)))
        right += reward == (int(rng.integers(2)) if answer == 0.5 else answer)
    return VoteGames(games, right, changed)


def first_votes(
    schedules: Sequence[Schedule], sums: Sequence[Sequence[int]], *, arm: int, reward: int
) -> list[list[int]]:
    """The votes that end the first epoch, by instance, worst arm first; `sums` are without this event of this arm."""
    found = []
    for schedule, totals in zip(schedules, sums, strict=True):
        pulls = schedule.pulls(1)
        lanes = [Sums(each, pulls, float(total + reward * (each == arm))) for each, total in enumerate(totals)]
        found.append(Instance(schedule, len(totals)).end_epoch(lanes))
    return found


def seen_rank(votes: Sequence[int], arm: int, arms: int) -> int:
    """What votes tell of how an arm did: how many are voted out before it; if it is not voted out, half of all."""
    return votes.index(arm) if arm in votes else arms // 2


@functools.lru_cache(maxsize=64)
def rank_laws(pulls: int, means: tuple[float, ...], arm: int) -> Laws:
    """The law of what votes tell of how an arm did, to one who knows no reward; ties as if they were tossed for.

    Who the others are tells hardly more: those with one mean are as likely to stand in any order.
    """
    arms = len(means)
    half = arms // 2
    own = np.array(binomial_law(pulls - 1, means[arm]))
    below = np.ones((pulls + 1, 1))  # by this arm's successes: the law of how many others have fewer
    for other, mean in enumerate(means):
        if other != arm:
            law = np.array(binomial_law(pulls, mean))
            beaten = (np.cumsum(law) - law / 2)[:, None]
            below = np.pad(below * (1 - beaten), ((0, 0), (0, 1))) + np.pad(below * beaten, ((0, 0), (1, 0)))
    seen = np.concatenate([below[:, :half], below[:, half:].sum(axis=1, keepdims=True)], axis=1)
    failed, succeeded = own @ seen[:-1], own @ seen[1:]
    return Laws(tuple(map(float, failed)), tuple(map(float, succeeded)))


def _draw_sums(
    schedules: Sequence[Schedule], means: Sequence[float], arm: int, rng: np.random.Generator
) -> list[list[int]]:
    """Successes of each arm in the first epoch of each instance, without one event of `arm`: they count the same
    events from the first on, so a longer epoch has what a shorter one has and more."""
    lengths = [schedule.pulls(1) for schedule in schedules]
    totals: list[list[int]] = [[] for _ in lengths]
    done, sums = 0, np.zeros(len(means), np.int64)
    for index in sorted(range(len(lengths)), key=lambda each: lengths[each]):
        more = np.full(len(means), lengths[index] - done)
        if not done:
            more[arm] -= 1
        sums = sums + rng.binomial(more, means)
        done = lengths[index]
        totals[index] = [int(each) for each in sums]
    return totals
