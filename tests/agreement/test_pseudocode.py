"""The engine and the core against `pseudocode.py`, a literal writing of the paper's algorithms.

Both are given the same active players and the same uniform numbers, so they must agree draw for draw: the arm of every
play (through the regret after every draw), every elimination, every vote, and the three ends.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from agreement.pseudocode import run as run_pseudocode
from outvote.simulation.settings import Settings, read_settings
from outvote.simulation.stepwise import run_trial, trial_draws

PROTOCOLS = ("dme", "edme", "me-local", "me-unlimited", "ucb-unlimited")
SETTINGS: dict[str, dict[str, Any]] = {
    # ε and δ near 1 make epochs short, so that these runs go through all of them.
    "three arms": dict(means=(0.9, 0.5, 0.1), players=3, epsilon=0.95, delta=0.5, horizon=6_000),
    "two arms, one player": dict(means=(0.2, 0.8), players=1, epsilon=0.9, delta=0.3, horizon=2_000),
    "near ties": dict(means=(0.5, 0.52, 0.51, 0.5, 0.49), players=4, epsilon=0.95, delta=0.9, horizon=20_000),
    "80-20": dict(means=(0.6, 0.4, 0.2, 0.1), players=10, activity="80-20", epsilon=0.9, delta=0.4, horizon=20_000),
    "few active players": dict(
        means=(0.6, 0.4, 0.3, 0.2), players=6, active_players=1.5, epsilon=0.9, delta=0.6, horizon=15_000
    ),
    "overestimated": dict(
        means=(0.7, 0.2, 0.1), players=5, active_players=5, activity=(50, 1, 1, 1, 1), epsilon=0.95, horizon=20_000
    ),
    "dead players": dict(means=(0.8, 0.3, 0.1), players=6, dead=3, epsilon=0.95, delta=0.7, horizon=12_000),
    "certain rewards tie": dict(means=(1.0, 1.0, 0.0), players=2, epsilon=0.9, delta=0.5, horizon=8_000),
    "ε excludes arms": dict(means=(0.9, 0.6, 0.3), players=3, epsilon=0.4, delta=0.2, horizon=40_000),
    "many arms": dict(
        means=tuple(0.05 * k for k in range(19)), players=3, epsilon=0.99, delta=0.9, horizon=40_000, instances=4
    ),
    "own instances": dict(
        means=(0.6, 0.5, 0.3, 0.2), players=6, epsilon=0.95, delta=0.8, horizon=15_000, instances=(1, 2.5, 6)
    ),
    "the paper's problem 1": dict(problem=1, players=2, epsilon=0.9, delta=0.05, horizon=20_000),
}


def settings_of(protocol: str, options: dict[str, Any]) -> Settings:
    chosen = dict(options)
    chosen.pop("active_players" if protocol == "edme" else "instances", None)
    return read_settings(protocol=protocol, trials=1, grid=chosen["horizon"], engine="core", **chosen)


def first_of_each_arm(eliminations: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """As (arm, draw); players on their own eliminate an arm one after another."""
    first: dict[int, int] = {}
    for draw, arm in eliminations:
        first.setdefault(arm, draw)
    return list(first.items())


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_engine_agrees_with_the_pseudocode_draw_for_draw(protocol: str, name: str) -> None:
    settings = settings_of(protocol, SETTINGS[name])
    seed = np.random.SeedSequence(20)
    players, uniforms = map(list, zip(*trial_draws(settings, seed), strict=True))
    means = settings.means
    expected = run_pseudocode(
        protocol,
        means=means,
        players=settings.task.players,
        active_players=settings.active_players,
        epsilon=settings.task.epsilon,
        delta=settings.task.delta,
        draws=players,
        uniforms=uniforms,
        instances=settings.task.instances if protocol == "edme" else (),
    )
    trial = run_trial(settings, seed, lambda draws: None)

    assert trial.regret == pytest.approx(list(accumulate(max(means) - means[arm] for arm in expected.plays)))
    assert trial.eliminations == first_of_each_arm(expected.eliminations)
    assert trial.first_elimination == expected.first_elimination
    assert trial.finished == expected.finished
    assert trial.all_finished == expected.all_finished
    assert trial.solved == expected.solved
    if protocol in ("dme", "edme"):
        assert trial.costs.up_messages == len(expected.votes)
        assert expected.server_remaining is not None
        assert len(expected.server_remaining) == len(means) - len(trial.eliminations)


def test_these_settings_reach_what_they_are_for() -> None:
    """Agreement on runs in which nothing happens would prove nothing."""
    reached = {
        name: run_trial(settings_of("dme", options), np.random.SeedSequence(20), lambda draws: None)
        for name, options in SETTINGS.items()
    }
    assert sum(trial.finished is not None for trial in reached.values()) >= 8
    assert sum(len(trial.eliminations) >= 2 for trial in reached.values()) >= 9
    assert reached["certain rewards tie"].finished is None
    assert reached["dead players"].finished is not None
    assert reached["dead players"].all_finished is None
    # nothing is eliminated where the only active player is one of five that N_γ counts on
    assert not reached["overestimated"].eliminations
