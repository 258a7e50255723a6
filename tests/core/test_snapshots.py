"""Snapshots: a restored participant goes on exactly as the original, and nothing is restored from a damaged one."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

from outvote.core import protocols
from outvote.core.errors import MalformedSnapshot
from outvote.core.messages import Vote
from outvote.core.task import Task
from outvote.core.votes.player import MedianPlayer
from outvote.core.votes.server import VoteServer

Tree: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str | int, ...]


# ---- participants in the middle of things; every other state: tests/property

# One player, certified: p = δ = .99, η² = 27·3·.99/2, η_1 = 3.166; 4/(.99/4)² = 65.30, 65.30·ln(9/3.166) = 68.2
WINDOWED = Task(arms=3, players=1, epsilon=0.99, delta=0.99, quorum="certified", reward_window=60, protocol="dme")
NAMED = Task(arms=4, players=["paris", "rome", "berlin"], epsilon=0.5, delta=0.05, protocol="dme")
WORTH = (1.0, 0.5, 0.0)


def player_with_waiting_and_open_groups() -> MedianPlayer:
    player = MedianPlayer(WINDOWED, "site", random.Random(1))
    for turn in range(3 * 69 + 10):
        ticket = player.decide(turn)
        if turn % 4:  # every fourth is never answered
            player.reward(ticket, WORTH[ticket.arm], turn)
    assert [group.due is None for group in player.decisions.groups] == [False] * 3 + [True] * 3
    player.reward(ticket, 1.0, 10**5)
    assert sum(player.decisions.seen.late) == 1
    return player


def server_of_named_players() -> VoteServer:
    server = VoteServer(NAMED)
    server.receive("paris", Vote(3), 0, incarnation="first life")
    server.receive("paris", Vote(2, 0, 1), 0, incarnation="first life")
    server.receive("paris", Vote(2), 0, incarnation="second life")
    server.receive("rome", Vote(2, 0, 2), 0)
    with pytest.raises(ValueError, match="unknown player"):
        server.receive("oslo", Vote(2), 0)
    assert server.refused == 1
    return server


def test_a_player_is_a_few_numbers_per_arm_and_instance() -> None:
    player = MedianPlayer(WINDOWED, "site")
    for now in range(0, 10**6, 100):
        ticket = player.decide(now)
        player.reward(ticket, WORTH[ticket.arm], now)
        player.tick(now)
        assert len(json.dumps(player.snapshot())) < 1_500
    assert player.finished
    assert player.snapshot()["decisions"]["groups"] == []  # nothing is left to learn


# ---- refusal


def refused(task: Task, data: Any) -> str:
    with pytest.raises(MalformedSnapshot) as caught:
        protocols.restore(task, data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


MAKERS = [player_with_waiting_and_open_groups, server_of_named_players]
Maker: TypeAlias = Callable[[], MedianPlayer | VoteServer]


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
@pytest.mark.parametrize("make", MAKERS)
def test_whatever_was_cut_or_altered_the_rest_is_refused(make: Maker, change: Callable[[Any, Any], None]) -> None:
    original = make()
    snapshot: Tree = json.loads(json.dumps(original.snapshot(), allow_nan=False))
    places = list(nodes(snapshot))
    assert len(places) > 8
    for path in places:
        refused(original.task, damaged(snapshot, path, change))
    assert protocols.restore(original.task, snapshot).snapshot() == snapshot


@pytest.mark.parametrize("make", MAKERS)
def test_a_snapshot_of_another_task_is_refused(make: Maker) -> None:
    original = make()
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
    snapshot = MedianPlayer(WINDOWED, "site").snapshot()
    assert sealed_again(snapshot) == snapshot
    for version in (1, 2, None, "3"):
        message = refused(WINDOWED, sealed_again(snapshot, version=version))
        assert f"has version {version!r}, version 3 is needed: use the version of Outvote that took it" in message


def test_one_kind_is_not_restored_as_the_other() -> None:
    with pytest.raises(MalformedSnapshot, match="kind 'server' is needed, got 'player'"):
        VoteServer.restore(WINDOWED, MedianPlayer(WINDOWED, "site").snapshot())
    with pytest.raises(MalformedSnapshot, match="kind 'player' is needed, got 'server'"):
        MedianPlayer.restore(NAMED, VoteServer(NAMED).snapshot())


@pytest.mark.parametrize(
    "garbage",
    [None, 7, "snapshot", [], {}, {"kind": "player"}, {"kind": "player", "checksum": None}, {"kind": "fleet"}, b"{}"],
    ids=repr,
)
def test_garbage_is_refused(garbage: Any) -> None:
    refused(WINDOWED, garbage)


@pytest.mark.parametrize("value", [math.nan, math.inf, {1, 2}, object()], ids=["nan", "inf", "set", "object"])
def test_what_is_no_json_is_refused(value: object) -> None:
    refused(WINDOWED, {**MedianPlayer(WINDOWED, "site").snapshot(), "pulls": [value]})
