"""The adversary of docs/adversary.md is as good as was computed, and no better: played on real players and fleets.

Seeds are fixed. A test fails by chance with probability 10⁻⁶ at most.
"""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, ks_2samp

from benchmarks.privacy import adversary, games, inference, posterior
from benchmarks.privacy.skipping import listen_to_votes
from outvote.core.tally.noise import binomial_law
from outvote.core.task import Task
from outvote.simulation.settings import read_settings

SEED = 7
FALSE_ALARM = 1e-6
# ---- one event's reward


@pytest.mark.parametrize("budget", [None, 1.0, 0.1])
@pytest.mark.parametrize("known", [False, True])
def test_the_adversary_of_a_tally_is_as_good_as_computed(budget: float | None, known: bool) -> None:
    task = Task(arms=10, players=1, epsilon=0, delta=0.05, protocol="tally", privacy_budget=budget, floor=7)
    laws = posterior.worst_case(7, budget) if known else posterior.others_unknown(7, 0.3, budget)
    right = games.play_tallies(task, mean=0.3, games=2000, known=known, seed=SEED)
    assert binomtest(right, 2000, (1 + laws.advantage) / 2).pvalue > FALSE_ALARM
    if budget is not None:  # by chance above the bound, never by more than chance
        most = (1 + inference.budget_advantage(budget)) / 2
        assert binomtest(right, 2000, most, alternative="greater").pvalue > FALSE_ALARM


def test_ranks_are_what_going_through_all_sums_says() -> None:
    means, pulls = (0.2, 0.3, 0.6), 4
    expected = [[0.0] * 2 for _ in range(2)]  # three arms: one place, or not voted out
    laws = [binomial_law(pulls - 1, means[0]), *(binomial_law(pulls, mean) for mean in means[1:])]
    for reward in range(2):
        for mine, second, third in itertools.product(range(pulls), range(pulls + 1), range(pulls + 1)):
            weight = laws[0][mine] * laws[1][second] * laws[2][third]
            for tosses in itertools.product((0, 1), repeat=2):
                below = sum(
                    other < mine + reward or (other == mine + reward and toss)
                    for other, toss in zip((second, third), tosses, strict=True)
                )
                expected[reward][min(below, 1)] += weight / 4
    found = games.rank_laws(pulls, means, 0)
    assert found.failed == pytest.approx(expected[0])
    assert found.succeeded == pytest.approx(expected[1])


@pytest.mark.parametrize("protocol", ["dme", "edme"])
def test_votes_tell_no_more_than_the_sum_of_an_epoch(protocol: str) -> None:
    means = (0.7, 0.5, 0.3, *(0.1,) * 7)
    task = Task(arms=10, players=16, epsilon=0.5, delta=0.05, protocol=protocol)
    shortest = min(schedule.pulls(1) for schedule in task.schedules())
    bound = inference.sum_advantage(shortest, 0.1)
    assert games.rank_laws(shortest, means, 9).advantage <= bound
    found = games.play_votes(task, means, arm=9, games=300, seed=SEED)
    assert binomtest(found.right, found.games, (1 + bound) / 2, alternative="greater").pvalue > FALSE_ALARM
    assert 0 < found.changed < found.games


# ---- the best arm


@pytest.mark.parametrize("budget", [None, 1.0])
def test_the_posterior_from_all_tallies_is_right_as_often_as_it_says(budget: float | None) -> None:
    """Σ (right − its probability) has mean 0: five standard deviations, a false alarm in about two million runs."""
    options: dict[str, Any] = {} if budget is None else {"privacy_budget": budget, "floor": 3}
    surprise = variance = 0.0
    rng = random.Random(SEED)
    for trial in range(25):
        means = rng.sample((0.65, 0.5, 0.4), 3)
        settings = read_settings(
            protocol="tally", means=means, players=4, horizon=200_000, grid=1, trials=1, delta=0.9, **options
        )
        transcript = adversary.listen(settings, np.random.SeedSequence([SEED, trial]))
        said = adversary.best_arm_from_tallies(transcript, range(4))
        guess = adversary.guess(said, rng)
        surprise += (guess == transcript.best) - said[guess]
        variance += said[guess] * (1 - said[guess])
    assert abs(surprise) <= 5 * math.sqrt(variance) + 1e-9
    assert variance > 1  # else nothing was in doubt, and this test could not fail


@pytest.mark.parametrize("protocol", ["dme", "edme"])
def test_listening_from_epoch_to_epoch_agrees_with_listening_draw_by_draw(protocol: str) -> None:
    means = (0.6, 0.5, 0.4)
    settings = read_settings(
        protocol=protocol,
        means=means,
        players=3,
        epsilon=0.95,
        delta=0.9,
        horizon=1e6,
        trials=1,
        grid=1,
        instances=2 if protocol == "edme" else None,
    )
    literal = [adversary.listen(settings, np.random.SeedSequence([SEED, trial])) for trial in range(40)]
    skipped = [listen_to_votes(settings.task, means, np.random.SeedSequence([SEED + 1, trial])) for trial in range(160)]
    for figure in (
        lambda run: sum(map(sum, run.pulls)),
        lambda run: len(run.sent[0]),
        lambda run: run.pulls[1][2],
        lambda run: run.successes[2][0],
        lambda run: run.sent[0][0].arm if run.sent[0] else -1,
    ):
        assert ks_2samp(list(map(figure, literal)), list(map(figure, skipped))).pvalue > FALSE_ALARM
