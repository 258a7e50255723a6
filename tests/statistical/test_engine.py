"""What the engine `core` promises about distributions. Each test says its false-alarm rate; seeds are fixed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from outvote import simulate
from outvote.simulation.activity import Activity, eighty_twenty, uniform, weighted, with_dead_players
from outvote.simulation.streams import generator

ALARM = 1e-6
"""The false-alarm rate of each test here."""


@pytest.mark.parametrize("protocol", ["dme", "edme"])
@pytest.mark.parametrize("activity", ["uniform", "80-20"])
def test_failures_stay_below_delta(protocol: str, activity: str) -> None:
    """Lemma 1 where ε excludes arms: a trial fails when an arm that is no ε-approximation remains at its end."""
    delta, trials = 0.3, 60
    result = simulate(
        protocol=protocol, activity=activity, means=(0.95, 0.2, 0.1), players=5, epsilon=0.6, delta=delta,
        horizon=26_000, trials=trials, seed=1,
    )  # fmt: skip
    assert result.finished.share == 1  # or there would be nothing to fail
    failures = round((1 - result.correct) * trials)
    assert stats.binom.sf(failures - 1, trials, delta) > ALARM


@pytest.mark.parametrize(
    "activity",
    [uniform(7), eighty_twenty(20), weighted((5, 0, 1, 2.5)), with_dead_players(eighty_twenty(20), 5)],
    ids=["uniform", "80-20", "weights", "dead players"],
)
def test_players_are_active_as_often_as_the_law_says(activity: Activity) -> None:
    draws = 50_000
    seen = np.zeros(activity.players)
    for players, uniforms in activity.draws(generator(2), draws):
        np.add.at(seen, players, 1)
        assert len(uniforms) == len(players)
    weights = np.asarray(activity.weights)  # type: ignore[attr-defined]  # all of these are by weight
    expected = draws * weights / weights.sum()
    assert seen.sum() == draws
    assert (seen[expected == 0] == 0).all()
    awake = expected > 0
    assert stats.chisquare(seen[awake], expected[awake]).pvalue > ALARM


def test_the_confidence_band_covers_the_mean_as_often_as_it_says() -> None:
    """Two-sided: the coverage of 95 % intervals over independent simulations is compatible with 95 %."""
    options = dict(protocol="ucb-unlimited", means=(0.5, 0.4), players=1, horizon=60, grid=1)
    truth = simulate(**options, trials=10_000, seed=10**6).regret.mean[0]  # type: ignore[arg-type]
    repeats = 400
    covered = 0
    for seed in range(repeats):
        band = simulate(**options, trials=25, seed=seed).regret  # type: ignore[arg-type]
        assert band.low[0] is not None
        assert band.high[0] is not None
        covered += band.low[0] <= truth <= band.high[0]
    # regret of single trials is skewed, so allow the nominal 95 % to be off by 2 points
    assert stats.binom.cdf(covered, repeats, 0.93) > ALARM
    assert stats.binom.sf(covered - 1, repeats, 0.97) > ALARM
