"""Players, tasks and servers of `blocks` for tests by hand."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from outvote.core.blocks.player import BlockPlayer
from outvote.core.blocks.server import BlockServer
from outvote.core.messages import Block, Elimination, PlayerId
from outvote.core.task import Task


def new_task(arms: int = 2, *, floor: int = 3, window: float = 0.0, age: float = 86_400.0, **options: Any) -> Task:
    fields: dict[str, Any] = {"players": 4, "delta": 0.05, "protocol": "blocks", "reward_window": window}
    return Task(arms=arms, floor=floor, parameters={"block_age": age}, **{**fields, **options})


class Unshuffled(random.Random):
    """A generator that leaves every order as it was: the last arm comes first, all its decisions in a row."""

    def randbytes(self, n: int) -> bytes:
        return b"\xff" * n


def new_player(arms: int = 2, *, seed: int | None = 1, **options: Any) -> BlockPlayer:
    """Without a seed nothing is shuffled."""
    return BlockPlayer(new_task(arms, **options), 0, Unshuffled(1) if seed is None else random.Random(seed))


def play(player: BlockPlayer, turns: int, worth: Sequence[float], now: int = 0) -> list[Block]:
    """Decide and reward at once; arm k always pays worth[k]."""
    blocks: list[Block] = []
    for _ in range(turns):
        ticket = player.decide(now)
        player.reward(ticket, worth[ticket.arm], now)
        blocks += player.tick(now)
    return blocks


def new_server(arms: int = 3, *, players: int | Sequence[str] = 4, floor: int = 1, **options: Any) -> BlockServer:
    return BlockServer(new_task(arms, floor=floor, **{"players": players, **options}))


def send(
    server: BlockServer,
    *blocks: Sequence[tuple[int, int]],
    player: PlayerId = 0,
    first: int = 0,
    heard: int = 0,
    life: str = "",
) -> list[Elimination]:
    """Blocks of one player, one after the other."""
    announced: list[Elimination] = []
    for number, counts in enumerate(blocks, start=first):
        announced += server.receive(player, Block(number, heard, tuple(counts)), 0, incarnation=life)
    return announced


def through_json(state: BlockPlayer | BlockServer) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(state.snapshot(), allow_nan=False))
    return loaded
