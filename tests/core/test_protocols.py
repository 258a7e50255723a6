"""The registry: every protocol of a task has an entry, and participants are made by its name."""

from __future__ import annotations

import random

import pytest

from outvote.core import protocols, task
from outvote.core.messages import Elimination, Vote
from outvote.core.task import Task


def of(protocol: str) -> Task:
    return Task(arms=3, players=2, epsilon=0.5, delta=0.05, protocol=protocol)


def test_the_registry_has_the_protocols_of_a_task_and_no_others() -> None:
    assert tuple(protocols.REGISTRY) == task.PROTOCOLS
    assert all(entry.summary for entry in protocols.REGISTRY.values())


@pytest.mark.parametrize("protocol", ["dme", "edme"])
def test_a_player_and_a_server_are_made_by_the_name_of_the_protocol(protocol: str) -> None:
    player = protocols.player(of(protocol), "site", rng=random.Random(7))
    server = protocols.server(of(protocol))
    assert player.snapshot()["task"] == server.snapshot()["task"] == of(protocol).fingerprint()
    assert player.snapshot()["player"] == "site"
    arm, ticket = player.decide()
    assert list(player.reward(arm, 1.0, ticket=ticket)) == []
    assert server.receive("site", Vote(2)) == [Elimination((2,))]
    player.receive(Elimination((2,)))
    assert player.remaining == server.remaining == (0, 1)


@pytest.mark.parametrize("protocol", task.PROTOCOLS)
def test_players_of_one_task_are_alike_whatever_generator_they_are_given(protocol: str) -> None:
    one = protocols.player(of(protocol), 0, rng=random.Random(1))
    other = protocols.player(of(protocol), 0)
    assert [one.decide() for _ in range(100)] == [other.decide() for _ in range(100)]
