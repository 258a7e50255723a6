"""The arithmetic of epochs and quorums, against numbers worked out by hand and the tables of the design."""

from __future__ import annotations

import math

import pytest

from outvote.core.errors import InvalidTask
from outvote.core.task import Task
from outvote.core.votes.schedule import Schedule, certified_log_eta, least_quorum, paper_log_eta

K, EPSILON, DELTA = 10, 0.5, 0.05
ALONE = Schedule(K, EPSILON, math.log(DELTA))
SHARED = Schedule(K, EPSILON, paper_log_eta(DELTA, 64))


def test_a_round_number_of_pulls_by_hand() -> None:
    # ε = .8: ε_1 = .2, 4/ε_1² = 100; K = 2, η = .81: η_1 = .405, ln(6/.405) = 2.69563; 269.563
    # ε_2 = .15, 4/ε_2² = 177.778; η_2 = .2025, ln(6/.2025) = 3.38878; 602.449
    schedule = Schedule(2, 0.8, math.log(0.81))
    assert [schedule.pulls(epoch) for epoch in (1, 2)] == [270, 603]


def test_an_epoch_takes_the_smallest_whole_number_that_is_enough() -> None:
    for epoch in range(1, 12):
        exact = 4 / SHARED.epoch_epsilon(epoch) ** 2 * math.log(3 * K / SHARED.epoch_eta(epoch))
        assert SHARED.pulls(epoch) - 1 < exact <= SHARED.pulls(epoch)


def test_epsilon_and_eta_of_an_epoch() -> None:
    # ε_1 = ε/4, ε_{l+1} = ¾ ε_l; η_1 = η/2, η_{l+1} = η_l/2
    assert [ALONE.epoch_epsilon(epoch) for epoch in (1, 2, 3)] == [0.125, 0.09375, 0.0703125]
    assert [ALONE.epoch_eta(epoch) for epoch in (1, 2, 3)] == pytest.approx([0.025, 0.0125, 0.00625], rel=1e-12)


@pytest.mark.parametrize("players", [1, 4, 64, 1024, 100_000])
@pytest.mark.parametrize("arms", [2, 10, 1000])
@pytest.mark.parametrize("instances", [1, 8])
@pytest.mark.parametrize("delta", [0.9, 0.05, 1e-9])
def test_certified_eta_makes_all_players_accurate_with_the_promised_probability(
    players: int, arms: int, instances: int, delta: float
) -> None:
    eta = math.exp(certified_log_eta(delta, players, arms, instances))
    inaccurate = 2 * eta**2 / (27 * arms)  # p
    # (1 − p)^N = 1 − δ/M, compared as probabilities of failure so that small ones keep their digits
    assert -math.expm1(players * math.log1p(-inaccurate)) == pytest.approx(delta / instances, rel=1e-9)


def test_the_instances_of_edme_share_delta() -> None:
    # η_i = (δ/M)^(2/N_γi)
    task = Task(arms=K, players=64, epsilon=EPSILON, delta=DELTA, protocol="edme", instances=[1, 64])
    etas = [math.exp(schedule.log_eta) for schedule in task.schedules()]
    assert etas == pytest.approx([0.025**2, 0.025 ** (1 / 32)], rel=1e-12)


def test_a_certified_edme_has_the_same_epochs_in_all_its_instances() -> None:
    # N does not depend on the instance, and δ/M is the same for each
    task = Task(arms=K, players=64, epsilon=EPSILON, delta=DELTA, protocol="edme", instances=2, quorum="certified")
    first, second = task.schedules()
    assert first == second
    assert first.log_eta == certified_log_eta(0.025, 64, K)


def test_a_task_takes_eta_from_its_quorum_rule() -> None:
    paper = Task(arms=K, players=64, epsilon=EPSILON, delta=DELTA, protocol="dme")
    certified = Task(arms=K, players=64, epsilon=EPSILON, delta=DELTA, quorum="certified", protocol="dme")
    assert paper.schedules()[0].pulls(1) == 1073
    # η = .32887, η_1 = .16443, ln(30/.16443) = 5.20645; 256 · 5.20645 = 1332.85: 24 % more than the paper's
    assert certified.schedules()[0].pulls(1) == 1333


def test_eta_of_few_active_players_does_not_underflow() -> None:
    # η = .05^2000 = 1e-2602 is no floating-point number; ln η = 2000 · ln .05 = −5991.46
    task = Task(arms=K, players=64, epsilon=EPSILON, delta=DELTA, active_players=0.001, protocol="dme")
    schedule = task.schedules()[0]
    assert schedule.log_eta == pytest.approx(-5991.4645, abs=1e-3)
    # 256 · (ln 60 + 5991.4645) = 256 · 5995.5589 = 1534863.08
    assert schedule.pulls(1) == 1_534_864


def test_too_few_active_players_are_refused() -> None:
    # 2/N_γ is infinite
    with pytest.raises(InvalidTask, match="infinitely many pulls"):
        Task(arms=K, players=64, epsilon=EPSILON, delta=DELTA, active_players=5e-324, protocol="dme")


@pytest.mark.parametrize(
    ("active", "votes_needed"),
    [(0.001, 1), (0.5, 1), (1, 1), (2, 1), (2.001, 2), (2.5, 2), (3, 2), (4, 2), (4.5, 3), (5, 3), (64, 32)],
)
def test_the_quorum_is_half_of_the_active_players_as_real_numbers(active: float, votes_needed: int) -> None:
    assert least_quorum(active) == votes_needed
