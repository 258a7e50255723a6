"""The registry: every protocol of a task has an entry, and participants are made by its name."""

from __future__ import annotations

import dataclasses
import random

import pytest

from outvote.core import protocols
from outvote.core.errors import InvalidTask
from outvote.core.ledger import Ledger
from outvote.core.messages import Elimination, Vote
from outvote.core.task import Task


def of(protocol: str) -> Task:
    return Task(arms=3, players=2, epsilon=0.5, delta=0.05, protocol=protocol)


def test_a_name_that_is_taken_is_refused_and_the_same_entry_is_not() -> None:
    before = dict(protocols.REGISTRY)
    protocols.register("dme", protocols.REGISTRY["dme"])
    with pytest.raises(InvalidTask, match="protocol must be a new name, got 'dme', which is registered"):
        protocols.register("dme", protocols.REGISTRY["tally"])
    assert before == protocols.REGISTRY


def test_a_protocol_of_ones_own_has_its_parameters_and_pays_for_no_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = dataclasses.replace(protocols.REGISTRY["dme"], takes=frozenset(), parameters={"pulls": 300, "how": "all"})
    monkeypatch.setitem(protocols.REGISTRY, "mine", entry)
    task = Task(arms=3, players=4, epsilon=0.5, protocol="mine", parameters={"pulls": 5})
    assert task.parameters == {"pulls": 5, "how": "all"}
    assert Task.from_json(task.to_json()) == task
    assert task != Task(arms=3, players=4, epsilon=0.5, protocol="mine")
    ledger = Ledger(task)
    ledger.send_up(0, Vote(1))
    assert (task.instances, ledger.instance_bits, ledger.up_bits) == ((), 0, 2)
    for wrong, told in ({"pull": 5}, "got 'pull'"), ({"pulls": [5]}, "must be numbers and texts"), (5, "an object"):
        with pytest.raises(InvalidTask, match=told):
            Task(arms=3, players=4, epsilon=0.5, protocol="mine", parameters=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidTask, match="instances is for 'edme', got 2 for 'mine'"):
        Task(arms=3, players=4, epsilon=0.5, protocol="mine", instances=2)


@pytest.mark.parametrize("protocol", ["dme", "edme"])
def test_a_player_and_a_server_are_made_by_the_name_of_the_protocol(protocol: str) -> None:
    player = protocols.player(of(protocol), "site", rng=random.Random(7))
    server = protocols.server(of(protocol))
    assert player.snapshot()["task"] == server.snapshot()["task"] == of(protocol).fingerprint()
    assert player.snapshot()["player"] == "site"
    player.reward(player.decide(0), 1.0, 0)
    assert list(player.tick(0)) == []
    assert server.receive("site", Vote(2), 0) == [Elimination((2,))]
    player.receive(Elimination((2,)))
    assert player.remaining == server.remaining == (0, 1)


@pytest.mark.parametrize("protocol", ["dme", "edme", "tally"])
def test_players_of_one_task_are_alike_whatever_generator_they_are_given(protocol: str) -> None:
    one = protocols.player(of(protocol), 0, rng=random.Random(1))
    other = protocols.player(of(protocol), 0)
    assert [one.decide(now) for now in range(100)] == [other.decide(now) for now in range(100)]


def test_players_of_blocks_draw_their_arms() -> None:
    task = of("blocks")
    first, again = (
        [protocols.player(task, 0, rng=random.Random(seed)).decide(0).arm for seed in range(40)] for _ in "ab"
    )
    assert first == again
    assert set(first) == set(range(len(task.arms)))
