"""What the paper compares with (decision 12): who hears of what, and what it costs.

What they play is in `tests/agreement/test_pseudocode.py`.
"""

from __future__ import annotations

import pytest

from outvote.core.task import Task
from outvote.simulation.fleets import make_fleet

# K = 3, ε = .8, η = δ = .5: 100·ln(9/.25) = 358.35; 177.78·ln(9/.125) = 760.30
TASK = Task(arms=3, players=4, epsilon=0.8, delta=0.5, protocol="dme")
WORTH = (1.0, 0.5, 0.0)


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
