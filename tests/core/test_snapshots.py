"""Snapshots: a restored participant goes on exactly as the original, and nothing is restored from a damaged one."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

from outvote.core import protocols
from outvote.core.errors import MalformedSnapshot
from outvote.core.messages import Elimination, Vote
from outvote.core.task import Task
from outvote.core.votes.player import MedianPlayer
from outvote.core.votes.server import VoteServer

Tree: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str | int, ...]


def through_json(snapshot: Tree) -> Tree:
    loaded: Tree = json.loads(json.dumps(snapshot, allow_nan=False))
    return loaded


# ---- participants in several states

# One player, certified: p = δ = .99, η² = 27·3·.99/2, η_1 = 3.166; 4/(.99/4)² = 65.30, 65.30·ln(9/3.166) = 68.2
SHORT: dict[str, Any] = {"arms": 3, "players": 1, "epsilon": 0.99, "delta": 0.99, "quorum": "certified"}
PLAIN = Task(**SHORT)
WINDOWED = Task(**SHORT, reward_window=60)
EXTENDED = Task(arms=3, players=2, epsilon=0.99, delta=0.99, protocol="edme", instances=2)
WORTH = (1.0, 0.5, 0.0)


def play(player: MedianPlayer, turns: int) -> list[Vote]:
    votes: list[Vote] = []
    for _ in range(turns):
        arm, ticket = player.decide()
        votes += player.reward(arm, WORTH[arm], ticket=ticket)
    return votes


def new_player() -> MedianPlayer:
    return MedianPlayer(PLAIN, "site")


def player_that_voted() -> MedianPlayer:
    player = MedianPlayer(PLAIN, "site")
    assert play(player, 3 * 69) == [Vote(2, 0, 0)]
    play(player, 20)
    return player


def player_that_heard_of_an_elimination() -> MedianPlayer:
    player = player_that_voted()
    player.decide()
    player.receive(Elimination((2,)))
    player.reward(2, 1.0)
    assert player.late_rewards == 1
    return player


def player_with_full_and_open_batches() -> MedianPlayer:
    player = MedianPlayer(WINDOWED, "site")
    for turn in range(3 * 69 + 10):
        arm, ticket = player.decide()
        if turn % 4:  # every fourth is never answered
            player.reward(arm, WORTH[arm], ticket=ticket)
    assert player.take_full() == [0, 1, 2]
    player.close(1)
    player.reward(1, 1.0, ticket=1)
    assert player.dropped_rewards == 1
    return player


def finished_player_with_a_window() -> MedianPlayer:
    player = MedianPlayer(WINDOWED, "site")
    for _ in range(5_000):
        arm, ticket = player.decide()
        player.reward(arm, WORTH[arm], ticket=ticket)
        for full in player.take_full():
            player.close(full)
    assert player.finished
    assert {batch[2] for batch in player.snapshot()["batches"]} == {-1}  # nothing is left to learn: endless batches
    return player


def player_of_two_instances() -> MedianPlayer:
    # 65.30·ln(18/.495^(2/N_γ)): 280.6 pulls for N_γ = 1, 234.7 for N_γ = 2
    player = MedianPlayer(EXTENDED, "site")
    play(player, 3 * 235 + 7)
    assert (player.epoch(0), player.epoch(1)) == (1, 2)
    player.decide()
    return player


PLAYERS: dict[str, Callable[[], MedianPlayer]] = {
    maker.__name__: maker
    for maker in (
        new_player,
        player_that_voted,
        player_that_heard_of_an_elimination,
        player_with_full_and_open_batches,
        finished_player_with_a_window,
        player_of_two_instances,
    )
}

FLEET = Task(arms=4, players=4, epsilon=0.5, delta=0.05)
NAMED = Task(arms=4, players=["paris", "rome", "berlin"], epsilon=0.5, delta=0.05)
EXTENDED_FLEET = Task(arms=3, players=4, epsilon=0.5, delta=0.05, protocol="edme", instances=2)


def new_server() -> VoteServer:
    return VoteServer(FLEET)


def server_with_held_votes() -> VoteServer:
    server = VoteServer(FLEET)
    for player, arm, sequence in ((0, 3, 0), (1, 3, 0), (0, 2, 1), (1, 2, 1), (2, 1, 2), (2, 0, 1), (3, 0, 0)):
        server.receive(player, Vote(arm, 0, sequence))
    server.receive(0, Vote(3, 0, 0))
    assert (server.eliminated, server.duplicates) == ((3, 2), 1)
    return server


def server_of_named_players() -> VoteServer:
    server = VoteServer(NAMED)
    server.receive("paris", Vote(3), incarnation="first life")
    server.receive("paris", Vote(2, 0, 1), incarnation="first life")
    server.receive("paris", Vote(2), incarnation="second life")
    server.receive("rome", Vote(2, 0, 2))
    with pytest.raises(ValueError, match="unknown player"):
        server.receive("oslo", Vote(2))
    assert server.refused == 1
    return server


def server_of_two_instances() -> VoteServer:
    server = VoteServer(EXTENDED_FLEET)  # N_γ = 2, 4: quorums 1, 2
    server.receive("a", Vote(2, 1, 0))
    server.receive("a", Vote(2, 0, 1))
    server.receive("a", Vote(1, 1, 3))
    server.receive("b", Vote(1, 1, 0))
    assert server.eliminated == (2,)
    return server


SERVERS: dict[str, Callable[[], VoteServer]] = {
    maker.__name__: maker
    for maker in (new_server, server_with_held_votes, server_of_named_players, server_of_two_instances)
}


# ---- going on as if nothing had happened


@pytest.mark.parametrize("state", [*PLAYERS, *SERVERS])
def test_the_registry_restores_what_a_snapshot_is_of(state: str) -> None:
    original = PLAYERS[state]() if state in PLAYERS else SERVERS[state]()
    restored = protocols.restore(original.task, through_json(original.snapshot()))
    assert type(restored) is type(original)
    assert restored.snapshot() == original.snapshot()


@pytest.mark.parametrize("state", PLAYERS)
def test_a_player_is_a_few_numbers_per_arm_and_instance(state: str) -> None:
    # No event is kept: the size does not grow with the thousands of events behind some of these states.
    assert len(json.dumps(PLAYERS[state]().snapshot())) < 1_500


# ---- refusal


def refused(task: Task, data: Any) -> str:
    with pytest.raises(MalformedSnapshot) as caught:
        protocols.restore(task, data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


EVERY_STATE: dict[str, Callable[[], MedianPlayer | VoteServer]] = {**PLAYERS, **SERVERS}


def nodes(tree: Any, path: Path = ()) -> Iterator[Path]:
    """Every place in a snapshot."""
    if path:
        yield path
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, child in children:
        yield from nodes(child, (*path, key))


def damaged(snapshot: Tree, path: Path, change: Callable[[Any, Any], None]) -> Tree:
    """A copy in which one place was changed."""
    copied = copy.deepcopy(snapshot)
    parent: Any = copied
    for key in path[:-1]:
        parent = parent[key]
    change(parent, path[-1])
    return copied


def cut(parent: Any, key: Any) -> None:
    del parent[key]


def add_one(parent: Any, key: Any) -> None:
    value = parent[key]
    if isinstance(value, bool):
        parent[key] = not value
    elif isinstance(value, int | float):
        parent[key] = value + 1
    elif isinstance(value, str):
        parent[key] = value + "x"
    elif value is None:
        parent[key] = 0
    elif isinstance(value, list):
        value.append(0)
    else:
        value["colour"] = "red"


def retype(parent: Any, key: Any) -> None:
    value = parent[key]
    parent[key] = float(value) if isinstance(value, int) and not isinstance(value, bool) else [value]


@pytest.mark.parametrize("change", [cut, add_one, retype])
@pytest.mark.parametrize("state", EVERY_STATE)
def test_whatever_was_cut_or_altered_the_rest_is_refused(state: str, change: Callable[[Any, Any], None]) -> None:
    original = EVERY_STATE[state]()
    snapshot = through_json(original.snapshot())
    places = list(nodes(snapshot))
    assert len(places) > 8
    for path in places:
        refused(original.task, damaged(snapshot, path, change))
    assert protocols.restore(original.task, snapshot).snapshot() == snapshot


@pytest.mark.parametrize("state", EVERY_STATE)
def test_a_snapshot_of_another_task_is_refused(state: str) -> None:
    original = EVERY_STATE[state]()
    task = original.task.to_json()
    for other in (
        {**task, "epsilon": 0.6},
        {**task, "arms": [*task["arms"], "one more"]},
        {**task, "name": "another"},
        {**task, "reward_window": 3.0},
    ):
        message = refused(Task.from_json(other), original.snapshot())
        assert Task.from_json(other).fingerprint() in message
        assert original.task.fingerprint() in message


def sealed_again(snapshot: Tree, **changes: Any) -> Tree:
    """What a later version of this code might write: other fields, and a checksum that fits them."""
    state = {key: value for key, value in {**snapshot, **changes}.items() if key != "checksum"}
    text = json.dumps(state, sort_keys=True, allow_nan=False)
    return {**state, "checksum": hashlib.sha256(text.encode()).hexdigest()[:16]}


def test_another_version_is_refused_though_it_is_whole() -> None:
    snapshot = new_player().snapshot()
    assert sealed_again(snapshot) == snapshot
    for version in (1, 3, None, "2"):
        message = refused(PLAIN, sealed_again(snapshot, version=version))
        assert f"has version {version!r}, version 2 is needed: use the version of Outvote that took it" in message


def test_one_kind_is_not_restored_as_the_other() -> None:
    with pytest.raises(MalformedSnapshot, match="kind 'server' is needed, got 'player'"):
        VoteServer.restore(PLAIN, new_player().snapshot())
    with pytest.raises(MalformedSnapshot, match="kind 'player' is needed, got 'server'"):
        MedianPlayer.restore(FLEET, new_server().snapshot())


@pytest.mark.parametrize(
    "garbage",
    [None, 7, "snapshot", [], {}, {"kind": "player"}, {"kind": "player", "checksum": None}, {"kind": "fleet"}, b"{}"],
    ids=repr,
)
def test_garbage_is_refused(garbage: Any) -> None:
    refused(PLAIN, garbage)


@pytest.mark.parametrize("value", [math.nan, math.inf, {1, 2}, object()], ids=["nan", "inf", "set", "object"])
def test_what_is_no_json_is_refused(value: object) -> None:
    refused(PLAIN, {**new_player().snapshot(), "pulls": [value]})
