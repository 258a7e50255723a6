"""What the paper compares with (decision 12): Median Elimination alone and shared, UCB1 shared."""

from __future__ import annotations

import math

import pytest

from outvote.core.messages import Vote
from outvote.core.task import Task
from outvote.simulation.baselines import LocalMedianPlayer, Ucb1Player
from outvote.simulation.fleets import make_fleet

# K = 3, ε = .8, η = δ = .5: 100·ln(9/.25) = 358.35; 177.78·ln(9/.125) = 760.30
TASK = Task(arms=3, players=4, epsilon=0.8, delta=0.5)
WORTH = (1.0, 0.5, 0.0)


def play(player: LocalMedianPlayer, turns: int) -> list[Vote]:
    votes: list[Vote] = []
    for _ in range(turns):
        arm, ticket = player.decide()
        votes += player.reward(arm, WORTH[arm], ticket=ticket)
    return votes


def test_median_elimination_alone_has_the_epochs_of_delta_itself_and_obeys_itself() -> None:
    player = LocalMedianPlayer(TASK, 0)
    assert play(player, 3 * 359 - 1) == []
    assert player.remaining == (0, 1, 2)
    assert [vote.arm for vote in play(player, 1)] == [2]
    assert list(player.remaining) == list(player.candidates()) == [0, 1]
    assert [player.decide()[0] for _ in range(4)] == [0, 1, 0, 1]
    # two of arm 0 and two of arm 1 were decided and never rewarded
    assert play(player, 2 * 761 - 1) == []
    assert [vote.arm for vote in play(player, 1)] == [1]
    assert list(player.remaining) == [0]
    assert player.status == "finished"


def test_alone_nobody_hears_of_anybody_and_nothing_is_sent() -> None:
    fleet = make_fleet("me-local", TASK, 2)
    assert len(fleet.members) == 4
    first, *others = fleet.by_draw(4)
    for _ in range(3 * 359):
        arm, ticket = first.decide()
        fleet.handle(0, first.reward(arm, WORTH[arm], ticket=ticket), 1)
    assert first.remaining == (0, 1)
    assert all(other.remaining == (0, 1, 2) for other in others)
    assert fleet.announced == []
    costs = fleet.costs(1_000)
    assert (costs.up_bits, costs.down_bits, costs.up_messages, costs.down_messages) == (0, 0, 0, 0)


def test_alone_a_fleet_is_finished_when_enough_players_are() -> None:
    fleet = make_fleet("me-local", TASK, 2)
    for player in fleet.members[:2]:
        assert not fleet.finished()
        for _ in range(3 * 359 + 2 * 761):
            arm, ticket = player.decide()
            player.reward(arm, WORTH[arm], ticket=ticket)
    assert fleet.finished()


@pytest.mark.parametrize("protocol", ["me-unlimited", "ucb-unlimited"])
def test_without_limit_one_player_sees_every_draw_and_each_is_told_to_all(protocol: str) -> None:
    fleet = make_fleet(protocol, TASK, 4)
    members = fleet.by_draw(4)
    assert len(members) == 4
    assert all(member is members[0] for member in members)
    # N·T·⌈log₂K⌉ = 4 · 1000 · 2
    costs = fleet.costs(1_000)
    assert costs.up_bits + costs.down_bits == 8_000
    assert costs.up_messages + costs.down_messages == 4_000
    assert costs.instance_bits == 0


def test_median_elimination_without_limit_is_one_median_elimination() -> None:
    fleet = make_fleet("me-unlimited", TASK, 4)
    players = fleet.by_draw(4)
    for turn in range(3 * 359):
        member = players[turn % 4]
        arm, ticket = member.decide()
        assert arm == turn % 3
        fleet.handle(turn % 4, member.reward(arm, WORTH[arm], ticket=ticket), turn)
    assert fleet.eliminations == [(2, 3 * 359 - 1)]
    assert fleet.remaining_sets() == [(0, 1)]


def test_ucb1_by_hand() -> None:
    # Arm 0 always pays 1, arm 1 nothing. Each once; then t = 2: 1 + √(2 ln 2) against √(2 ln 2), and so on.
    # t = 5: 1 + √(2 ln 5 / 4) = 1.897 against √(2 ln 5) = 1.794. t = 6: 1 + √(2 ln 6 / 5) = 1.847 against 1.893.
    player = Ucb1Player(2)
    plays = []
    for _ in range(8):
        arm, ticket = player.decide()
        plays.append(arm)
        assert not player.reward(arm, 1.0 - arm, ticket=ticket)
    assert plays == [0, 1, 0, 0, 0, 0, 1, 0]


def test_ucb1_plays_the_arm_of_the_highest_index() -> None:
    player = Ucb1Player(3)
    pulls, totals = [0, 0, 0], [0.0, 0.0, 0.0]
    for turn in range(500):
        arm, _ = player.decide()
        if turn < 3:
            assert arm == turn
        else:
            index = [total / n + math.sqrt(2 * math.log(turn) / n) for total, n in zip(totals, pulls, strict=True)]
            assert index[arm] == pytest.approx(max(index), rel=1e-12)
        reward = (0.7, 0.5, 0.2)[arm]
        player.reward(arm, reward)
        pulls[arm] += 1
        totals[arm] += reward
    assert pulls[0] > pulls[1] > pulls[2] > 1
    assert player.remaining == player.candidates() == (0, 1, 2)
