"""What the guides for researchers add runs in `simulate` as its own objects do, and costs what a hand computes."""

from __future__ import annotations

import math
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from docs.blocks import DOCS
from outvote.core import protocols
from outvote.core.errors import InvalidSettings
from outvote.core.messages import Elimination
from outvote.simulation import Environment, simulate
from outvote.simulation.settings import read_settings
from outvote.simulation.stepwise import run_trial, trial_draws

sys.path.append(str(DOCS))

from howto import explore_first, one_shot, seasons

PULLS = 300


@pytest.fixture(autouse=True)
def guides_are_followed(registered: None) -> None:
    one_shot.register()
    explore_first.register()


def in_turn(time: int, rng: object) -> int:
    return (time - 1) % 4


def as_promised(mean: float, uniform: float) -> float:
    return mean


# ---- write a protocol


ONE_SHOT: dict[str, Any] = {
    "protocol": "one-shot", "parameters": {"pulls": PULLS}, "means": (0, 1, 0), "players": 4,
    "horizon": 5_000, "trials": 3, "grid": 1,
}  # fmt: skip


@pytest.mark.parametrize("workers", [1, 2])
def test_one_shot_costs_what_a_hand_computes(workers: int) -> None:
    """Four players take turns and play arms 0, 1 and 2, 300 times each.

    The first is done with its play 900, at draw 899·4 + 1, and votes against arms 0 and 2: 2 votes of ⌈log₂3⌉ = 2 bits,
    then 2 eliminations of 2 bits to 4 players. The others hear of them just before their own last play.
    """
    result = simulate(**ONE_SHOT, activity=in_turn, workers=workers)
    assert (result.bits.up, result.bits.down, result.bits.instance) == (2 * 2, 2 * 4 * 2, 0)
    assert (result.messages.up, result.messages.down) == (2, 8)
    assert result.bits.bound == 2 * 4 * 2 * 2
    assert result.per_trial.first_elimination == [899 * 4 + 1] * 3
    # arm 0 by all, arm 2 by the first player, and but once by the three others
    assert result.per_trial.regret == [4 * 300 + 300 + 3 * 299] * 3
    assert (result.best, result.engine, result.parameters, result.instances) == (1, "core", {"pulls": PULLS}, [])


def test_fast_has_no_kernel_for_it() -> None:
    with pytest.raises(InvalidSettings, match="'fast' cannot run the protocol 'one-shot', for which it has no kernel"):
        simulate(**ONE_SHOT, engine="fast")


def test_a_simulation_of_it_is_its_objects_driven_by_hand() -> None:
    """The same players and uniform numbers give the same regret, votes and eliminations, draw for draw."""
    options = ONE_SHOT | {"means": (0.3, 0.6, 0.5), "parameters": {"pulls": 40}, "epsilon": 0.05, "horizon": 900}
    for number in range(20):
        settings, seed = read_settings(**(options | {"grid": 900})), np.random.SeedSequence(number)
        trial = run_trial(settings, seed, lambda draws: None)
        players = [protocols.player(settings.task, player) for player in range(4)]
        server, votes, regret = protocols.server(settings.task), 0, [0.0]
        fallen: list[Elimination] = []
        heard = [0] * 4
        for draw, (active, uniform) in enumerate(trial_draws(settings, seed), 1):
            player = players[active]
            for elimination in fallen[heard[active] :]:
                player.receive(elimination)
            heard[active] = len(fallen)
            ticket = player.decide(draw)
            mean = settings.means[ticket.arm]
            regret.append(0.6 - mean)
            player.reward(ticket, float(uniform < mean), draw)
            for vote in player.tick(draw):
                votes += 1
                fallen += server.receive(active, vote, draw)
                assert fallen == [] or draw >= trial.eliminations[0][1]
        assert [after - before for before, after in pairwise([0.0, *trial.regret])] == pytest.approx(regret[1:])
        assert [arm for arm, _ in trial.eliminations] == list(server.eliminated)
        assert (trial.costs.up_bits, trial.costs.down_bits) == (2 * votes, 2 * 4 * len(fallen))


def test_one_shot_hardly_ever_loses_the_best_arm() -> None:
    """Lost with probability δ = .05 at most; 200 trials. More than 30 losses have probability 1e-7 at the very most."""
    world: dict[str, Any] = {"means": (0.2, 0.6, 0.5), "players": 3, "epsilon": 0.4}
    result = simulate(protocol="one-shot", **world, horizon=900, trials=200, grid=1, workers=2)
    assert result.first_elimination.share > 0.5
    assert result.eliminations[1].share * 200 <= 30


# ---- write an environment


def test_means_by_player_cost_what_a_hand_computes() -> None:
    """Alone, each player plays its worse arm ⌈4/(ε/4)² · ln(3K/(δ/2))⌉ = ⌈100·ln 24⌉ = 318 times, and keeps the other.

    Together they cannot both be right.
    """
    swapped: dict[str, Any] = {"environment": Environment([(1, 0), (0, 1)]), "players": 2, "epsilon": 0.8, "delta": 0.5}
    assert math.ceil(100 * math.log(24)) == 318
    alone = simulate(**swapped, protocol="me-local", horizon=4_000, trials=5, grid=1)
    assert alone.per_trial.regret == [2 * 318] * 5
    assert (alone.best, alone.engine, alone.means) == (1, "core", [[1, 0], [0, 1]])
    assert simulate(**swapped, protocol="dme", horizon=4_000, trials=5, grid=1).best == 0


def test_means_over_time_cost_what_a_hand_computes() -> None:
    """318 plays of arm 1, then arm 0 alone; from draw 1001 on that is the worse one."""
    turned = Environment(lambda player, time, visitor, context: (1, 0) if time <= 1000 else (0, 1))
    result = simulate(
        environment=turned, protocol="me-local", players=1, epsilon=0.8, delta=0.5, horizon=2_000, trials=3, workers=2
    )
    assert result.per_trial.regret == [318 + 1000] * 3
    assert (result.means, result.correct) == (None, 0)


def test_a_world_that_is_drawn_for_each_trial() -> None:
    """A geometric number of draws has mean 500 and deviation 500: over 400 trials the first season ends at 500 ± 125.

    That is five deviations, a false alarm in 1e6. Who always plays the first arm loses .8 in each draw of winter.
    """
    world = seasons.Seasons((0.9, 0.1))
    starts = [world.start(players=1, horizon=10_000, rng=np.random.default_rng(seed)) for seed in range(400)]
    ends = [next(time for time in range(1, 20_000) if means(0, time, None, None) == (0.1, 0.9)) for means in starts]
    assert abs(np.mean(ends) - 501) < 125
    result = simulate(protocol="explore-first", parameters={"pulls": 1}, environment=world, horizon=5_000, trials=4)
    assert len(set(result.per_trial.regret)) == 4
    assert result.environment == "seasons 1"


# ---- add a baseline


def test_explore_first_costs_what_a_hand_computes() -> None:
    """Ten plays of each arm: gaps of .7, 0 and .5. Shared, every draw costs 4 players ⌈log₂3⌉ = 2 bits."""
    options: dict[str, Any] = {"means": (0.2, 0.9, 0.4), "rewards": as_promised, "players": 4, "horizon": 200}
    shared = simulate(protocol="explore-first-shared", **options, trials=2, activity=in_turn)
    assert shared.regret.mean[-1] == pytest.approx(10 * (0.7 + 0.5))
    assert (shared.bits.total, shared.bits.bound, shared.finished.mean) == (4 * 200 * 2, 4 * 200 * 2, 30)
    alone = simulate(protocol="explore-first", **options, trials=2, activity=in_turn)
    assert alone.regret.mean[-1] == pytest.approx(4 * 12)
    assert (alone.bits.total, alone.finished.mean, alone.best) == (0, 4 * 30, 1)
    assert simulate(protocol="explore-first", **options, trials=1, parameters={"pulls": 1}).parameters == {"pulls": 1}


def test_explore_first_finds_the_best_as_often_as_the_binomial_law_says() -> None:
    """Ten plays of means .6 and .4; equal totals go to the first arm. 4,000 trials, five deviations: 6e-7."""
    law = [[math.comb(10, k) * p**k * (1 - p) ** (10 - k) for k in range(11)] for p in (0.6, 0.4)]
    right = sum(law[0][a] * law[1][b] for a in range(11) for b in range(a + 1))
    result = simulate(protocol="explore-first-shared", means=(0.6, 0.4), players=1, horizon=21, trials=4_000, grid=1)
    assert abs(result.best - right) < 5 * math.sqrt(right * (1 - right) / 4_000)
