"""What arms are worth: reward laws, site effects, drift, and which arms are good."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from outvote.core.errors import InvalidSettings
from outvote.simulation.environments import (
    PROBLEMS,
    BetaLaw,
    Environment,
    Means,
    bernoulli,
    best_arms,
    good_arms,
    puller,
)


def started(environment: Environment, *, players: int = 5, horizon: int = 100, seed: int = 0) -> Means:
    return environment.start(players=players, horizon=horizon, rng=np.random.default_rng(seed))


def test_the_problems_of_the_paper() -> None:
    assert PROBLEMS[1] == (0.7, 0.5, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1)
    assert PROBLEMS[2] == (0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1)


# ---- reward laws


def test_bernoulli_pays_1_below_the_mean_and_0_from_it_on() -> None:
    assert [bernoulli(0.3, uniform) for uniform in (0.0, 0.2999, 0.3, 0.3001, 0.9999)] == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert bernoulli(0.0, 0.0) == 0.0
    assert bernoulli(1.0, 0.999999) == 1.0


@pytest.mark.parametrize("mean", [0.05, 0.3, 0.5, 0.7, 0.95])
@pytest.mark.parametrize("concentration", [0.5, 4.0, 100.0])
def test_beta_rewards_have_their_mean_and_their_variance(mean: float, concentration: float) -> None:
    law = BetaLaw(concentration)
    points = 4_000
    # The mean of the quantiles at the middles of equal parts of [0, 1]; rewards rise with u, so it is off by at most
    # half a part of the whole range: 1/8000.
    rewards = [law(mean, (point + 0.5) / points) for point in range(points)]
    assert rewards == sorted(rewards)
    assert 0.0 <= rewards[0] <= rewards[-1] <= 1.0
    assert sum(rewards) / points == pytest.approx(mean, abs=1 / 8_000)
    # Var = mean·(1 − mean)/(c + 1), the square of a reward is off by as much at most
    second = sum(reward**2 for reward in rewards) / points
    assert second - mean**2 == pytest.approx(mean * (1 - mean) / (concentration + 1), abs=1 / 8_000)


@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_beta_rewards_of_a_certain_arm_are_certain(mean: float) -> None:
    assert [BetaLaw(4.0)(mean, uniform) for uniform in (0.0, 0.5, 0.999)] == [mean] * 3


@pytest.mark.parametrize("concentration", [0.0, -1.0, math.nan, math.inf])
def test_a_concentration_that_cannot_be_is_refused(concentration: float) -> None:
    with pytest.raises(InvalidSettings, match=f"above 0, got {concentration}"):
        BetaLaw(concentration)


# ---- worlds


def test_by_default_means_are_the_same_for_everybody_and_always() -> None:
    world = started(Environment((0.7, 0.2)))
    assert world(0, 1, None, None) == world(4, 100, None, None) == (0.7, 0.2)


def test_site_effects_differ_by_player_and_stay_within_a_trial() -> None:
    world = started(Environment((0.7, 0.5, 0.1), spread=0.5))
    means = [tuple(world(player, 1, None, None)) for player in range(5)]
    assert len(set(means)) == 5
    assert all(0 < mean < 1 for row in means for mean in row)
    assert [tuple(world(player, 99, None, None)) for player in range(5)] == means


def test_site_effects_come_from_the_generator_that_is_passed_in() -> None:
    environment = Environment((0.7, 0.5), spread=0.5)
    first, again, other = (started(environment, seed=seed)(0, 1, None, None) for seed in (1, 1, 2))
    assert first == again != other


def test_site_effects_are_normal_on_the_logit_scale() -> None:
    world = started(Environment((0.7, 0.2), spread=0.5), players=10_000)
    for arm, mean in enumerate((0.7, 0.2)):
        logits = [math.log(m / (1 - m)) for m in (world(player, 1, None, None)[arm] for player in range(10_000))]
        # standard errors .005 and .0035; six of them: a false alarm in 1e8
        assert float(np.mean(logits)) == pytest.approx(math.log(mean / (1 - mean)), abs=0.03)
        assert float(np.std(logits)) == pytest.approx(0.5, abs=0.022)


def test_a_certain_arm_has_no_site_effect() -> None:
    world = started(Environment((1.0, 0.0, 0.5), spread=2.0))
    assert all(list(world(player, 1, None, None)[:2]) == [1.0, 0.0] for player in range(5))


def test_a_wild_spread_still_gives_means() -> None:
    world = started(Environment((0.7, 0.2), spread=1e5), players=100)
    assert all(0.0 <= mean <= 1.0 for player in range(100) for mean in world(player, 1, None, None))


def test_drifting_means_go_in_a_straight_line_from_start_to_end() -> None:
    world = started(Environment((0.7, 0.1), drift_to=(0.3, 0.9)), horizon=200)
    assert list(world(0, 0, None, None)) == pytest.approx([0.7, 0.1])
    assert list(world(3, 50, None, None)) == pytest.approx([0.6, 0.3])
    assert list(world(0, 100, None, None)) == pytest.approx([0.5, 0.5])
    assert list(world(1, 200, None, None)) == pytest.approx([0.3, 0.9])


@pytest.mark.parametrize(
    ("means", "spread", "drift_to", "parts"),
    [
        ((0.5,), 0.0, None, ["means", "at least 2", "got 1"]),
        ((), 0.0, None, ["means", "at least 2", "got 0"]),
        ((0.5, 1.1), 0.0, None, ["means", "from 0 to 1", "got 1.1"]),
        ((0.5, -0.1), 0.0, None, ["means", "from 0 to 1", "got -0.1"]),
        ((0.5, math.nan), 0.0, None, ["means", "from 0 to 1", "got nan"]),
        ((0.5, 0.4), -1.0, None, ["spread", "at least 0", "got -1.0"]),
        ((0.5, 0.4), math.inf, None, ["spread", "at least 0", "got inf"]),
        ((0.5, 0.4), math.nan, None, ["spread", "at least 0", "got nan"]),
        ((0.5, 0.4), 0.0, (0.5,), ["drift_to", "2 arms", "got 1"]),
        ((0.5, 0.4), 0.0, (0.5, 2.0), ["drift_to", "from 0 to 1", "got 2.0"]),
        ((0.5, 0.4), 0.0, (0.5, 0.4, 0.3), ["drift_to", "2 arms", "got 3"]),
    ],
)
def test_an_environment_that_cannot_be_is_refused(
    means: tuple[float, ...], spread: float, drift_to: tuple[float, ...] | None, parts: list[str]
) -> None:
    with pytest.raises(InvalidSettings) as caught:
        Environment(means, spread=spread, drift_to=drift_to)
    for part in parts:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- pulls


def test_a_pull_gives_the_reward_and_the_gap_to_the_best_arm() -> None:
    environment = Environment((0.7, 0.2))
    pull = puller(environment, started(environment))
    assert pull(0, 0, 1, 0.69) == (1.0, 0.0)
    assert pull(0, 0, 1, 0.7) == (0.0, 0.0)
    assert pull(3, 1, 9, 0.19) == pytest.approx((1.0, 0.5))
    assert pull(3, 1, 9, 0.2) == pytest.approx((0.0, 0.5))


def test_a_pull_is_judged_by_the_means_of_its_player_and_draw() -> None:
    by_site = puller(Environment((0.7, 0.2), spread=1.0), lambda player, *rest: ((0.7, 0.2), (0.1, 0.9))[player])
    assert by_site(0, 1, 1, 0.5) == pytest.approx((0.0, 0.5))
    assert by_site(1, 1, 1, 0.5) == (1.0, 0.0)
    environment = Environment((0.0, 1.0), drift_to=(1.0, 0.0))
    drifting = puller(environment, started(environment, horizon=10))
    assert drifting(0, 0, 0, 0.5) == (0.0, 1.0)
    assert drifting(0, 0, 10, 0.5) == (1.0, 0.0)


def test_the_fast_way_pays_the_same_as_the_plain_one() -> None:
    def same(mean: float, uniform: float) -> float:
        return bernoulli(mean, uniform)

    environments = Environment(PROBLEMS[1]), Environment(PROBLEMS[1], law=same)
    fast, plain = (puller(each, started(each)) for each in environments)
    rng = np.random.default_rng(0)
    for uniform in [0.0, *PROBLEMS[1], *rng.random(500).tolist()]:
        for arm in range(10):
            assert fast(0, arm, 1, uniform) == plain(0, arm, 1, uniform)


# ---- good arms (Definition 1)


@pytest.mark.parametrize(
    ("means", "epsilon", "good"),
    [
        ((0.7, 0.2), 0.5, {0, 1}),  # .7 − .2 is .5 exactly, but not in floating point
        ((0.7, 0.2), 0.4999, {0}),
        ((0.3, 0.2, 0.1), 0.1, {0, 1}),
        ((0.1, 0.4, 0.7), 0.3, {1, 2}),
        ((0.5, 0.5), 0.01, {0, 1}),
        (PROBLEMS[1], 0.5, {0, 1, 2}),
        (PROBLEMS[2], 0.5, set(range(10))),
    ],
)
def test_good_arms_are_within_epsilon_of_the_best(means: Sequence[float], epsilon: float, good: set[int]) -> None:
    assert good_arms(means, epsilon) == good


def test_best_arms_are_all_of_the_highest_mean() -> None:
    assert best_arms((0.2, 0.7, 0.7)) == {1, 2}
    assert best_arms((0.7, 0.6999)) == {0}
