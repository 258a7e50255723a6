"""Our protocols: their entries in the registry, and how the participants of a task are made.

Everybody who runs a task, simulated or real, makes the participants here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from outvote.core.blocks.code import BlockCodebook
from outvote.core.blocks.player import BlockPlayer
from outvote.core.blocks.server import BlockServer
from outvote.core.codes import Codebook, TallyCodebook
from outvote.core.errors import MalformedSnapshot, one_of
from outvote.core.ledger import bits_bound, tally_bits_bound
from outvote.core.messages import PlayerId
from outvote.core.registry import REGISTRY, Entry, Player, Server, entry_of, networked, register
from outvote.core.tally.player import TallyPlayer
from outvote.core.tally.server import TallyServer
from outvote.core.task import Task
from outvote.core.votes.player import MedianPlayer
from outvote.core.votes.server import VoteServer

if TYPE_CHECKING:
    import random

__all__ = [
    "REGISTRY",
    "Entry",
    "Player",
    "Server",
    "entry_of",
    "networked",
    "player",
    "register",
    "restore",
    "server",
]


def _votes(summary: str, voters: str) -> Entry:
    return Entry(
        summary=summary,
        player=MedianPlayer,
        server=VoteServer,
        restore_player=MedianPlayer.restore,
        restore_server=VoteServer.restore,
        codebook=Codebook,
        bits_bound=lambda task, draws: bits_bound(task),
        first_message=lambda task: len(task.arms) * min(schedule.pulls(1) for schedule in task.schedules()),
        takes=frozenset({voters, "quorum", "tolerate"}),
    )


register("dme", _votes("Distributed Median Elimination (Algorithm 3)", "active_players"))
register("edme", _votes("Extended Distributed Median Elimination: M instances at once (Algorithm 4)", "instances"))
register(
    "tally",
    Entry(
        summary="Tally: pooled counts and anytime evidence, our own protocol",
        player=TallyPlayer,
        server=TallyServer,
        restore_player=TallyPlayer.restore,
        restore_server=TallyServer.restore,
        codebook=TallyCodebook,
        bits_bound=lambda task, draws: None if draws is None else tally_bits_bound(task, draws),
        first_message=lambda task: task.tally_sizes[0],
        takes=frozenset({"floor", "privacy_budget", "tolerate"}),
        exact=True,
        codes=("implied", "binary", "truncated", "huffman"),
    ),
)


register(
    "blocks",
    Entry(
        summary="randomised blocks: compared within a site, right where sites differ and drift",
        player=BlockPlayer,
        server=BlockServer,
        restore_player=BlockPlayer.restore,
        restore_server=BlockServer.restore,
        codebook=BlockCodebook,
        bits_bound=lambda task, draws: None,
        first_message=lambda task: len(task.arms) * (task.floor or 0),
        on_network=False,
        floors=(1, 3, 31),
        takes=frozenset({"floor"}),
        exact=True,
        codes=("implied",),
        parameters={"block_age": 86_400.0},
    ),
)


def player(task: Task, player_id: PlayerId, *, rng: random.Random | None = None) -> Player:
    """A new player of the task. `rng` is for protocols that draw at random."""
    return task.entry.player(task, player_id, rng)


def server(task: Task) -> Server:
    """A new server of the task."""
    return task.entry.server(task)


def restore(task: Task, snapshot: Mapping[str, Any], *, rng: random.Random | None = None) -> Player | Server:
    """The player or the server that a snapshot was taken of; `rng` as for `player`."""
    kind = snapshot.get("kind") if isinstance(snapshot, Mapping) else None
    if kind == "player":
        return task.entry.restore_player(task, snapshot, rng)
    if kind == "server":
        return task.entry.restore_server(task, snapshot)
    raise MalformedSnapshot(f"a snapshot's kind must be one of {one_of(('player', 'server'))}, got {kind!r}")
