"""The one registry: from the name of a protocol to its player and its server.

Everybody who runs a task, simulated or real, makes the participants here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from outvote.core.errors import MalformedSnapshot, one_of
from outvote.core.messages import Elimination, PlayerId, UpMessage
from outvote.core.tally.player import TallyPlayer
from outvote.core.tally.server import TallyServer
from outvote.core.task import Task
from outvote.core.votes.player import MedianPlayer
from outvote.core.votes.server import VoteServer

if TYPE_CHECKING:
    import random


class Player(Protocol):
    """What a site does: it decides, learns, and now and then has something to send."""

    player: PlayerId
    late_rewards: int
    dropped_rewards: int

    def decide(self) -> tuple[int, int]: ...
    def expose(self, arm: int) -> int | None: ...
    def reward(self, arm: int, reward: float, *, ticket: int | None = None) -> Sequence[UpMessage]: ...
    def take_full(self) -> list[int]: ...
    def close(self, ticket: int) -> Sequence[UpMessage]: ...
    def receive(self, message: Elimination) -> None: ...
    def candidates(self, instance: int = 0) -> tuple[int, ...]: ...
    def snapshot(self) -> dict[str, Any]: ...
    @property
    def remaining(self) -> tuple[int, ...]: ...
    @property
    def finished(self) -> bool: ...
    @property
    def status(self) -> str: ...


class Server(Protocol):
    """What the fleet knows: it counts, and announces."""

    def receive(self, player: PlayerId, message: Any, *, incarnation: str = "") -> list[Elimination]: ...
    def snapshot(self) -> dict[str, Any]: ...
    @property
    def remaining(self) -> tuple[int, ...]: ...
    @property
    def eliminated(self) -> tuple[int, ...]: ...
    @property
    def held(self) -> bool: ...
    def adopt(self, eliminated: Sequence[int]) -> list[Elimination]: ...
    @property
    def winner(self) -> int | None: ...
    @property
    def finished(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """One protocol: what it is, and how its participants are made and restored."""

    summary: str
    player: Callable[[Task, PlayerId, random.Random | None], Player]
    server: Callable[[Task], Server]
    restore_player: Callable[[Task, Mapping[str, Any], random.Random | None], Player]
    restore_server: Callable[[Task, Mapping[str, Any]], Server]


def _median_entry(summary: str) -> Entry:
    return Entry(
        summary=summary,
        player=lambda task, player, rng: MedianPlayer(task, player),  # a fixed design: it draws nothing at random
        server=VoteServer,
        restore_player=lambda task, data, rng: MedianPlayer.restore(task, data),
        restore_server=VoteServer.restore,
    )


REGISTRY: dict[str, Entry] = {
    "dme": _median_entry("Distributed Median Elimination (Algorithm 3)"),
    "edme": _median_entry("Extended Distributed Median Elimination: M instances at once (Algorithm 4)"),
    "tally": Entry(
        summary="Tally: pooled counts and anytime evidence, our own protocol",
        player=TallyPlayer,
        server=TallyServer,
        restore_player=TallyPlayer.restore,
        restore_server=TallyServer.restore,
    ),
}


def player(task: Task, player_id: PlayerId, *, rng: random.Random | None = None) -> Player:
    """A new player of the task. `rng` is for protocols that draw at random."""
    return REGISTRY[task.protocol].player(task, player_id, rng)


def server(task: Task) -> Server:
    """A new server of the task."""
    return REGISTRY[task.protocol].server(task)


def restore(task: Task, snapshot: Mapping[str, Any], *, rng: random.Random | None = None) -> Player | Server:
    """The player or the server that a snapshot was taken of; `rng` as for `player`."""
    kind = snapshot.get("kind") if isinstance(snapshot, Mapping) else None
    entry = REGISTRY[task.protocol]
    if kind == "player":
        return entry.restore_player(task, snapshot, rng)
    if kind == "server":
        return entry.restore_server(task, snapshot)
    raise MalformedSnapshot(f"a snapshot's kind must be one of {one_of(('player', 'server'))}, got {kind!r}")
