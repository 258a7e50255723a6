"""The server counts a player's votes in their own order, whatever order they arrive in and however often."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import event, given
from hypothesis import strategies as st

from amounts import examples
from outvote.core.messages import Elimination, Vote
from outvote.core.task import Task

from .fleet import new_server, restored_server, server_state
from .tasks import SEEDS, tasks

Arrival = tuple[int, Vote]


@dataclass(frozen=True)
class Ballots:
    """A task, and the votes of each player in their order: at most K − 1 in each instance."""

    task: Task
    votes: Sequence[Sequence[Vote]]

    def name(self, player: int) -> str | int:
        return self.task.player_names[player] if self.task.player_names else player

    def quorate(self) -> set[int]:
        """The arms that have a quorum in some instance once every vote is counted."""
        return {
            arm
            for instance, active in enumerate(self.task.instances)
            for arm in range(len(self.task.arms))
            if 2 * sum((arm, instance) in [(v.arm, v.instance) for v in votes] for votes in self.votes) >= active
        }


@st.composite
def ballots(draw: st.DrawFn) -> Ballots:
    task = draw(tasks(short=True))
    return Ballots(task, [draw(votes_of(task)) for _ in range(task.players)])


@st.composite
def votes_of(draw: st.DrawFn, task: Task) -> list[Vote]:
    """One player's votes: in each instance a part of a permutation, the instances mixed."""
    arms = len(task.arms)
    length = st.integers(0, 2 * arms).map(lambda length: min(length, arms - 1))  # most often long
    rows = [draw(st.permutations(range(arms)))[: draw(length)] for _ in task.instances]
    order = draw(st.permutations([instance for instance, row in enumerate(rows) for _ in row]))
    left = [iter(row) for row in rows]
    return [Vote(next(left[instance]), instance, sequence) for sequence, instance in enumerate(order)]


class LiteralServer:
    """Algorithm 3, lines 13 to 18, for votes that arrive in order and once."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.votes: set[tuple[int, int, int]] = set()
        self.announced: list[int] = []

    def receive(self, player: int, vote: Vote) -> None:
        self.votes.add((player, vote.instance, vote.arm))
        count = len([v for v in self.votes if v[1:] == (vote.instance, vote.arm)])
        reached = 2 * count >= self.task.instances[vote.instance]
        if reached and vote.arm not in self.announced and len(self.announced) < len(self.task.arms) - 1:
            self.announced.append(vote.arm)


def in_order(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """When each vote takes effect: as soon as it and all that the player sent before it are there."""
    applied: list[Arrival] = []
    there: set[Arrival] = set()
    for player, vote in arrivals:
        there.add((player, vote))
        mine = {v.sequence: v for p, v in there if p == player}
        expected = sum(p == player for p, _ in applied)
        while expected in mine:
            applied.append((player, mine[expected]))
            expected += 1
    return applied


def shuffled(fleet: Ballots, rng: random.Random, *, copies: float = 0.0) -> list[Arrival]:
    """All votes in any order, some of them several times."""
    arrivals = [(player, vote) for player, votes in enumerate(fleet.votes) for vote in votes]
    arrivals += [arrival for arrival in arrivals if rng.random() < copies]
    rng.shuffle(arrivals)
    return arrivals


@examples(400)
@given(fleet=ballots(), seed=SEEDS, copies=st.sampled_from([0.0, 0.5, 1.0]), lost=st.sampled_from([0.0, 0.2, 0.5]))
def test_arrival_order_and_copies_change_nothing_but_the_moment_a_vote_counts(
    fleet: Ballots, seed: int, copies: float, lost: float
) -> None:
    rng = random.Random(seed)
    arrivals = shuffled(fleet, rng, copies=copies)
    arrivals = arrivals[: round((1 - lost) * len(arrivals))]  # then some are held at the end, and must not count
    restart = rng.randrange(len(arrivals) + 1)
    server, announced = new_server(fleet.task), list[Elimination]()
    for position, (player, vote) in enumerate(arrivals):
        if position == restart:
            server = restored_server(fleet.task, json.loads(json.dumps(server.snapshot())))
        announced += server.receive(fleet.name(player), vote, 0)

    orderly, in_turn, literal = new_server(fleet.task), list[Elimination](), LiteralServer(fleet.task)
    for player, vote in in_order(arrivals):
        in_turn += orderly.receive(fleet.name(player), vote, 0)
        literal.receive(player, vote)
    event("something is held at the end", len(in_order(arrivals)) < len(set(arrivals)))
    assert announced == in_turn
    assert list(server.eliminated) == list(orderly.eliminated) == literal.announced
    assert votes_by_name(server_state(server)["votes"]) == votes_by_name(server_state(orderly)["votes"])
    assert server.duplicates == len(arrivals) - len(set(arrivals))
    assert orderly.duplicates == 0
    for instance in range(len(fleet.task.instances)):
        for arm in range(len(fleet.task.arms)):
            count = len([v for v in literal.votes if v[1:] == (instance, arm)])
            assert server.votes(arm, instance) == orderly.votes(arm, instance) == count


def votes_by_name(votes: dict[str | int, list[list[int]]]) -> dict[str | int, list[list[int]]]:
    """Without players of whom nothing counts: a server knows them once a vote of theirs is held."""
    return {name: instances for name, instances in votes.items() if any(instances)}


@examples(400)
@given(fleet=ballots(), first=SEEDS, second=SEEDS)
def test_the_same_arms_remain_in_every_order_unless_all_have_a_quorum(fleet: Ballots, first: int, second: int) -> None:
    arms, quorate = set(range(len(fleet.task.arms))), fleet.quorate()
    event("arms with a quorum", f"{len(quorate)} of {len(arms)}")
    for seed in (first, second):
        server = new_server(fleet.task)
        for player, vote in shuffled(fleet, random.Random(seed), copies=0.3):
            server.receive(fleet.name(player), vote, 0)
        assert server.finished == (len(server.remaining) == 1)
        assert server.winner == (server.remaining[0] if server.finished else None)
        if quorate == arms:  # the one that comes last stays
            assert len(server.remaining) == 1
        else:
            assert set(server.remaining) == arms - quorate


@examples(200)
@given(data=st.data(), fleet=ballots(), seed=SEEDS)
def test_a_player_that_lost_its_memory_still_has_one_vote_for_each_arm(
    data: st.DataObject, fleet: Ballots, seed: int
) -> None:
    second = Ballots(fleet.task, [data.draw(votes_of(fleet.task)) for _ in fleet.votes])
    rng = random.Random(seed)
    arrivals = [(player, vote, "first life") for player, vote in shuffled(fleet, rng, copies=0.3)]
    arrivals += [(player, vote, "second life") for player, vote in shuffled(second, rng, copies=0.3)]
    rng.shuffle(arrivals)
    server = new_server(fleet.task)
    for player, vote, life in arrivals:
        server.receive(fleet.name(player), vote, 0, incarnation=life)
    for instance in range(len(fleet.task.instances)):
        for arm in range(len(fleet.task.arms)):
            voters = {player for player, vote, _ in arrivals if (vote.arm, vote.instance) == (arm, instance)}
            assert server.votes(arm, instance) == len(voters)
