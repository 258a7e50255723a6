"""Noise: its law against the closed form, the exactness of its draws, and what it promises about single rewards."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import pytest
from scipy import stats

from outvote.core.tally import noise
from outvote.core.tally import player as tally_player
from outvote.core.tally.noise import Channel, binomial_law, noisy, two_sided_geometric
from outvote.core.tally.player import TallyPlayer
from outvote.core.task import Task

from . import laws

BUDGETS = [0.1, 0.5, 1.0, 3.0]
SIZES = [2, 3, 7, 15]


# ---- what the channel does to probabilities


@pytest.mark.parametrize("mean", [0.0, 0.001, 0.3, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("trials", [1, 2, 7, 15, 31])
def test_the_binomial_law_is_the_one_of_the_textbook(trials: int, mean: float) -> None:
    assert binomial_law(trials, mean) == pytest.approx(laws.binomial(trials, mean), rel=1e-11, abs=1e-300)


def test_the_channel_of_two_trials_by_hand() -> None:
    # α = ½: P(z = 0 | s = 0) = ½ + ½·⅓ = 1/(1 + α) = 2/3; inside (1 − α)/(1 + α)·α^|z − s| = ⅓·2^−|z − s|
    expected = [[2 / 3, 1 / 6, 1 / 6], [1 / 3, 1 / 3, 1 / 3], [1 / 6, 1 / 6, 2 / 3]]
    for row, by_hand in zip(Channel(2, math.log(2)).matrix(), expected, strict=True):
        assert row == pytest.approx(by_hand, rel=1e-14)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("trials", SIZES)
def test_the_channel_has_its_closed_form(trials: int, budget: float) -> None:
    rows = Channel(trials, budget).matrix()
    assert [len(row) for row in rows] == [trials + 1] * (trials + 1)
    for row, expected in zip(rows, laws.clamped(trials, budget), strict=True):
        assert row == pytest.approx(expected, rel=1e-12)
        assert math.fsum(row) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("trials", SIZES)
def test_without_a_budget_the_channel_changes_nothing(trials: int) -> None:
    channel = Channel(trials, None)
    assert channel.matrix() == [[float(z == s) for z in range(trials + 1)] for s in range(trials + 1)]
    assert channel.sent(0.3) == binomial_law(trials, 0.3)
    assert channel.expected([float(z * z) for z in range(trials + 1)]) == [float(s * s) for s in range(trials + 1)]


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("trials", SIZES)
def test_what_is_sent_and_what_is_expected_are_products_with_the_channel(trials: int, budget: float) -> None:
    channel, rows = Channel(trials, budget), laws.clamped(trials, budget)
    for mean in (0.0, 0.01, 0.4, 0.9, 1.0):
        assert channel.sent(mean) == pytest.approx(laws.sent(trials, mean, budget), rel=1e-10)
    values = [math.sin(z) + z * z for z in range(trials + 1)]
    assert channel.expected(values) == pytest.approx([laws.mean_of(row, values) for row in rows], rel=1e-12)


# ---- what it promises


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("trials", SIZES)
def test_one_success_more_or_less_moves_no_probability_by_more_than_the_budget(trials: int, budget: float) -> None:
    rows = Channel(trials, budget).matrix()
    most = 0.0
    for fewer, more in pairwise(rows):
        for a, b in zip(fewer, more, strict=True):
            most = max(most, a / b, b / a)
    assert most <= math.exp(budget) * (1 + 1e-12)
    assert most == pytest.approx(math.exp(budget))  # and no budget is wasted


Transcript = tuple[tuple[int, int, int, int], ...]
"""(arm, what is sent, size, place) of every tally."""


def transcripts(rewards: Sequence[float], budget: float, monkeypatch: pytest.MonkeyPatch) -> dict[Transcript, float]:
    """The exact law of all that a player of two arms and tallies of 2 sends, for rewards in the order of decisions."""
    task = Task(
        arms=2, players=1, epsilon=0, delta=0.05, protocol="tally", floor=2, privacy_budget=budget, reward_window=60
    )
    between = [y for y in rewards if 0.0 < y < 1.0]
    law: dict[Transcript, float] = {}
    for rounded_up in product([True, False], repeat=len(between)):
        weight = math.prod(y if up else 1 - y for y, up in zip(between, rounded_up, strict=True))
        counts: list[tuple[int, int, Fraction]] = []

        def remember(*args: Any, counts: list[tuple[int, int, Fraction]] = counts) -> int:
            counts.append(args[:3])
            return int(args[0])

        monkeypatch.setattr(tally_player, "noisy", remember)
        player, coins = TallyPlayer(task, 0, random.Random(1)), list(rounded_up)
        monkeypatch.setattr(player.decisions, "_uniform", lambda ticket, coins=coins: 1.0 - coins.pop(0))
        for reward in rewards:
            player.reward(player.decide(0), reward, 0)
        tallies = player.tick(10**6)
        assert len(tallies) == len(counts) == len(rewards) // 2
        assert all(asked == budget for _, _, asked in counts)
        rows = [laws.clamped(size, budget)[successes] for successes, size, _ in counts]
        for values in product(*(range(len(row)) for row in rows)):
            key = tuple((t.arm, z, t.trials, t.sequence) for t, z in zip(tallies, values, strict=True))
            likely = math.prod(row[z] for row, z in zip(rows, values, strict=True))
            law[key] = law.get(key, 0.0) + weight * likely
    return law


@pytest.mark.parametrize("budget", [0.25, 1.0, 2.0])
@pytest.mark.parametrize(
    ("rewards", "index", "other"),
    [
        ([0.0, 0.0, 1.0, 1.0], 0, 1.0),
        ([1.0, 0.0, 0.0, 1.0], 3, 0.0),
        ([1.0, 1.0, 1.0, 1.0], 2, 0.0),
        ([0.0, 0.5, 0.25, 1.0], 1, 0.0),
        ([0.0, 0.5, 0.25, 1.0], 2, 1.0),
        ([0.0, 0.5, 0.25, 1.0], 0, 0.75),
        ([0.1, 0.5, 0.25, 0.9], 3, 0.1),
    ],
)
def test_one_reward_moves_the_probability_of_no_transcript_by_more_than_the_budget(
    rewards: list[float], index: int, other: float, budget: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    neighbour = [other if i == index else y for i, y in enumerate(rewards)]
    one, two = transcripts(rewards, budget, monkeypatch), transcripts(neighbour, budget, monkeypatch)
    assert math.fsum(one.values()) == pytest.approx(1.0)
    assert set(one) == set(two)  # the same arms, sizes and places: these depend on no reward
    ratios = [max(one[key] / two[key], two[key] / one[key]) for key in one]
    assert max(ratios) <= math.exp(budget) * (1 + 1e-12)
    assert max(ratios) > 1.01  # it does move


# ---- how it is drawn


class Choices(random.Random):
    """A generator that follows a path of choices and asks for one more where the path ends."""

    def __init__(self, path: Sequence[int]) -> None:
        super().__init__(0)
        self.path = list(path)
        self.asked = 0

    def choose(self, options: Sequence[float]) -> int:
        if self.asked == len(self.path):
            raise NeedsChoice(options)
        self.asked += 1
        return self.path[self.asked - 1]


class NeedsChoice(Exception):
    """So many ways to go on, each with its probability."""

    def __init__(self, options: Sequence[float]) -> None:
        self.options = options


class StartsAgain(Exception):
    """The sampler threw a draw away."""


def law_of(draw: Callable[[Choices], int], make: type[Choices], *, least: float) -> tuple[dict[int, float], float]:
    """The law of what `draw` returns, by following every path down to `least`, and what was left out.

    A draw that starts again has the law of the first, so its probability is shared out among the others.
    """
    found: dict[int, float] = {}
    left_out = 0.0
    paths: list[tuple[list[int], float]] = [([], 1.0)]
    while paths:
        path, weight = paths.pop()
        if weight < least:
            left_out += weight
            continue
        try:
            value = draw(make(path))
            found[value] = found.get(value, 0.0) + weight
        except NeedsChoice as ways:
            paths += [([*path, way], weight * p) for way, p in enumerate(ways.options) if p > 0]
        except StartsAgain:
            pass
    total = math.fsum(found.values())
    return {value: weight / total for value, weight in found.items()}, left_out / total


class Below:
    """A whole number below `limit` of which only is asked whether it is below another."""

    def __init__(self, choices: Choices, limit: int) -> None:
        self.choices, self.limit = choices, limit

    def __lt__(self, other: int) -> bool:
        return not self.choices.choose([min(other / self.limit, 1.0), max(1 - other / self.limit, 0.0)])


class Comparing(Choices):
    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> Any:
        return Below(self, start)


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 1), (1, 2), (2, 3), (3, 7), (99, 100), (5, 5)])
def test_an_event_happens_with_the_exponential_of_a_fraction(numerator: int, denominator: int) -> None:
    law, left_out = law_of(lambda choices: noise._happens(numerator, denominator, choices), Comparing, least=1e-17)
    assert left_out < 1e-15
    assert law[True] == pytest.approx(math.exp(-numerator / denominator), rel=1e-14)


class Enumerating(Choices):
    """For the sampler itself, whose events of exponential probability were tested above."""

    begun = False

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        if self.begun:
            raise StartsAgain
        self.begun = True
        return self.choose([1 / start] * start)

    def getrandbits(self, k: int, /) -> int:
        assert k == 1
        return self.choose([0.5, 0.5])

    def happens(self, numerator: int, denominator: int) -> bool:
        yes = math.exp(-numerator / denominator)
        return not self.choose([yes, 1 - yes])


@pytest.mark.parametrize(
    "budget", [Fraction(1), Fraction(1, 2), Fraction(2), Fraction(3, 2), Fraction(2, 7), Fraction(5), Fraction(1, 10)]
)
def test_noise_has_exactly_its_law(budget: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_happens", lambda n, d, choices: choices.happens(n, d))
    law, left_out = law_of(lambda choices: two_sided_geometric(budget, choices), Enumerating, least=1e-13)
    assert left_out < 1e-11
    for value in range(-8, 9):
        assert law.get(value, 0.0) == pytest.approx(laws.geometric(float(budget), value), rel=1e-9, abs=1e-10)


def test_noise_of_a_budget_that_is_no_simple_fraction_has_its_law() -> None:
    """Chi-square over the values from −9 to 9 and the two tails; false-alarm rate 1e-6, seed 11."""
    budget, rng, draws = Fraction(0.3), random.Random(11), 20_000
    seen = Counter(min(max(two_sided_geometric(budget, rng), -10), 10) for _ in range(draws))
    tail = math.exp(-0.3 * 10) / (1 + math.exp(-0.3))  # P(G ≥ 10)
    expected = [draws * (tail if abs(value) == 10 else laws.geometric(0.3, value)) for value in range(-10, 11)]
    assert stats.chisquare([seen[value] for value in range(-10, 11)], expected).pvalue > 1e-6


def test_noise_is_clamped_to_the_tally(monkeypatch: pytest.MonkeyPatch) -> None:
    for drawn, expected in [(-9, 0), (-2, 0), (-1, 1), (0, 2), (1, 3), (2, 3), (9, 3)]:
        monkeypatch.setattr(noise, "two_sided_geometric", lambda budget, rng, drawn=drawn: drawn)
        assert noisy(2, 3, Fraction(1), random.Random(0)) == expected
