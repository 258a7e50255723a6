"""Votes as players cast them, for several files of this folder."""

from __future__ import annotations

from outvote.core.messages import PlayerId, Vote
from outvote.core.votes.server import VoteServer


def cast(server: VoteServer, player: PlayerId, *arms: int, first: int = 0, incarnation: str = "") -> list[int]:
    """One player's votes in their order; the arms that are announced in answer."""
    announced: list[int] = []
    for sequence, arm in enumerate(arms, start=first):
        for elimination in server.receive(player, Vote(arm, 0, sequence), 0, incarnation=incarnation):
            announced += elimination.arms
    return announced
