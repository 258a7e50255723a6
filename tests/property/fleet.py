"""A whole fleet of voters in memory: N players, one server with its log, and the link of `in_flight`.

What must hold at every moment is in `check`, what must hold once everything has arrived in `check_settled`.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from outvote.core import protocols
from outvote.core.codes import pack, unpack
from outvote.core.messages import Elimination, PlayerId, Vote
from outvote.core.task import Task
from outvote.core.votes.player import ARM_TRANSITIONS, MedianPlayer
from outvote.core.votes.server import VoteServer

from .in_flight import AnyFleet, AnySite
from .tasks import Rewards

EPOCH_ENDS = "epoch ends, mean below the median"
ELIMINATED = "elimination received"

States = dict[tuple[int, int], str]


class Site(AnySite):
    """A player, and the states of its arms."""

    player: MedianPlayer

    def __init__(self, task: Task, name: PlayerId) -> None:
        super().__init__(task, name)
        self.rng = random.Random(str(name))  # draws when groups close: of the site, not of the player's memory
        self.player = new_player(task, name, self.rng)
        self.states = self.arm_states()
        self.save()

    def arm_states(self) -> States:
        instances = range(len(self.task.instances))
        return {(arm, i): self.player.arm_state(arm, i) for arm in range(len(self.task.arms)) for i in instances}

    def save(self) -> None:
        outbox = [[vote.arm, vote.instance, vote.sequence] for vote in self.outbox]
        self.disk = json.dumps({"snapshot": self.player.snapshot(), "outbox": outbox})
        self.states_on_disk = self.arm_states()

    def restart(self, *, crashed: bool) -> None:
        record = json.loads(self.disk)
        self.player = restored_player(self.task, record["snapshot"], self.rng)
        assert self.player.snapshot() == record["snapshot"], "a restored player differs from the saved one"
        self.player.resume(self.now, crashed=crashed)
        self.outbox = [Vote(*vote) for vote in record["outbox"]]
        self.states = self.arm_states()
        assert self.states == self.states_on_disk, "a restored player has other arms than the saved one"


class Fleet(AnyFleet[Site]):
    """The participants of one task and the messages between them."""

    server: VoteServer

    def __init__(self, task: Task, rewards: Rewards) -> None:
        super().__init__(task, rewards, [Site(task, name) for name in task.player_names or range(task.players)])
        self.server = new_server(task)
        self.was_finished = False
        self.transitions: set[tuple[str, str]] = set()
        """The rows of `ARM_TRANSITIONS` that were seen to happen."""
        self.save_server()

    def play(self, site: Site, draws: int, rng: random.Random, *, prompt: bool = True) -> None:
        super().play(site, draws, rng, prompt=prompt)
        self._observe(site, EPOCH_ENDS, ())

    def produce(self, site: Site, messages: Sequence[Vote]) -> None:
        self._observe(site, EPOCH_ENDS, messages)
        super().produce(site, messages)

    def _observe(self, site: Site, event: str, votes: Sequence[Vote]) -> None:
        """Since the last look, arms may have moved by this event only, and to be voted needs a vote."""
        before, site.states = site.states, site.arm_states()
        moved = {key for key, state in site.states.items() if state != before[key]}
        for key in moved:
            step = before[key], event
            assert ARM_TRANSITIONS.get(step) == site.states[key], f"{step} led to {site.states[key]}"
            self.transitions.add(step)
        if event == EPOCH_ENDS:
            assert moved == {(vote.arm, vote.instance) for vote in votes}

    def tell(self, site: Site, rng: random.Random) -> None:
        """In one message or one by one."""
        arms = self.server.eliminated
        messages = [arms] if rng.random() < 0.5 else [(arm,) for arm in arms]
        for message in filter(None, messages):
            self.down.append((site, pack(self.codebook.encode_down((), Elimination(tuple(sorted(message)))))))

    def deliver_up(self, index: int, *, again: bool) -> None:
        name, sequence, payload = self.up[index] if again else self.up.pop(index)
        vote = self.codebook.decode_up(unpack(payload), player=name, sequence=sequence)
        assert isinstance(vote, Vote)
        announced = self.server.receive(name, vote, self.draws)
        if (name, vote) in self.log:
            assert announced == [], "a vote that came again announced an arm"
            self.happened["duplicate votes"] += 1
        self.log.setdefault((name, vote), self.draws)
        self.announce(announced)
        self.happened["votes held out of order"] += len(self.applied()) < len(self.log)

    def deliver_down(self, index: int, *, again: bool) -> None:
        site, payload = self.down[index] if again else self.down.pop(index)
        message = self.codebook.decode_down(range(len(self.task.arms)), unpack(payload))
        site.player.receive(message)
        self._observe(site, ELIMINATED, ())
        assert not set(message.arms) & set(site.player.remaining), "an announced arm is still played"

    def server_state(self, server: VoteServer) -> dict[str, Any]:
        return server_state(server)

    def send_down(self, elimination: Elimination) -> None:
        self.down += [(site, pack(self.codebook.encode_down((), elimination))) for site in self.sites]

    # ---- what must hold

    def check(self) -> None:
        for site in self.sites:
            self._check_site(site)
        self._check_server()
        self._check_ledger()

    def _check_site(self, site: Site) -> None:
        produced = self.produced[site.name]
        assert site.outbox == produced, "a message was lost, or made twice"
        assert [vote.sequence for vote in produced] == list(range(len(produced)))
        assert len({(vote.instance, vote.arm) for vote in produced}) == len(produced), "an arm was voted twice"
        self.happened["ties"] += site.player.status == "tied"
        remaining = set(site.player.remaining)
        assert remaining, "the last arm was eliminated"
        assert remaining >= set(self.server.remaining)
        for i in range(len(self.task.instances)):
            voted = {vote.arm for vote in produced if vote.instance == i}
            assert len(voted) < len(self.task.arms), "an instance voted out every arm"
            assert set(site.player.candidates(i)) == remaining - voted
            self.happened["empty candidate sets"] += not site.player.candidates(i)

    def _check_server(self) -> None:
        server, arms = self.server, range(len(self.task.arms))
        assert server.remaining, "the last arm was eliminated"
        assert server.eliminated == tuple(arm for message in self.announced for arm in message.arms)
        assert sorted(server.eliminated + server.remaining) == list(arms)
        applied = self.applied()
        for i, active in enumerate(self.task.instances):
            for arm in arms:
                votes = len({name for name, vote in applied if (vote.instance, vote.arm) == (i, arm)})
                assert server.votes(arm, i) == votes
                if 2 * votes >= active and len(server.remaining) > 1:
                    assert arm in server.eliminated, "an arm with a quorum was not announced"
            for site in self.sites:
                voted = {vote.arm for name, vote in applied if (name, vote.instance) == (site.name, i)}
                assert set(server.candidates(site.name, i)) == set(server.remaining) - voted
            heard = {name for name, _ in self.log}
            assert server.finished_players(i) == sum(len(server.candidates(name, i)) <= 1 for name in heard)
        quorate = {arm for arm in arms for i, a in enumerate(self.task.instances) if 2 * server.votes(arm, i) >= a}
        assert quorate >= set(server.eliminated), "an arm was announced without a quorum"
        # Were two or more arms left, N_γ players that each keep at most one of them would have given some arm N_γ/2
        # votes: so the server finishes by elimination only.
        assert server.finished == (len(server.remaining) == 1)
        assert server.finished or not self.was_finished, "a finished task went on"
        self.was_finished = server.finished
        self.happened["finished"] += server.finished

    def applied(self) -> list[tuple[PlayerId, Vote]]:
        """The votes of the log that no gap holds back, player by player."""
        found = []
        for site in self.sites:
            mine = {vote.sequence: vote for name, vote in self.log if name == site.name}
            for sequence in range(len(mine)):
                if sequence not in mine:
                    break
                found.append((site.name, mine[sequence]))
        return found

    def _check_ledger(self) -> None:
        votes = sum(map(len, self.produced.values()))
        arm_bits = math.ceil(math.log2(len(self.task.arms)))
        instance_bits = math.ceil(math.log2(len(self.task.instances)))
        assert self.ledger.up_bits == votes * (arm_bits + instance_bits)
        assert self.ledger.down_bits == self.task.players * len(self.announced) * arm_bits
        assert self.ledger.instance_bits == votes * instance_bits
        assert self.ledger.bound is not None
        assert self.ledger.total_bits - self.ledger.instance_bits <= self.ledger.bound

    def check_settled(self) -> None:
        clean = new_server(self.task)
        players = [new_player(self.task, site.name) for site in self.sites]
        for (name, vote), at in self.log.items():
            for elimination in clean.receive(name, vote, at):
                for player in players:
                    player.receive(elimination)
        assert clean.eliminated == self.server.eliminated
        assert server_state(clean) == server_state(self.server)
        views = [player.remaining for player in players] + [site.player.remaining for site in self.sites]
        assert set(views) == {self.server.remaining}
        for site in self.sites:
            snapshot = site.player.snapshot()
            assert restored_player(self.task, json.loads(json.dumps(snapshot))).snapshot() == snapshot
        snapshot = self.server.snapshot()
        assert restored_server(self.task, json.loads(json.dumps(snapshot))).snapshot() == snapshot


# ---- the participants, as the registry makes them but with all that a test asks them


def new_player(task: Task, name: PlayerId, rng: random.Random | None = None) -> MedianPlayer:
    player = protocols.player(task, name, rng=rng)
    assert isinstance(player, MedianPlayer)
    return player


def new_server(task: Task) -> VoteServer:
    server = protocols.server(task)
    assert isinstance(server, VoteServer)
    return server


def restored_player(task: Task, snapshot: Mapping[str, Any], rng: random.Random | None = None) -> MedianPlayer:
    player = protocols.restore(task, snapshot, rng=rng)
    assert isinstance(player, MedianPlayer)
    return player


def restored_server(task: Task, snapshot: Mapping[str, Any]) -> VoteServer:
    server = protocols.restore(task, snapshot)
    assert isinstance(server, VoteServer)
    return server


def server_state(server: VoteServer) -> dict[str, Any]:
    """A server's snapshot without what may depend on how often, and in which order, the same votes came."""
    snapshot = server.snapshot()
    return {
        "eliminated": snapshot["eliminated"],
        "votes": {player: votes for player, votes in snapshot["votes"]},
        "streams": {(player, life): (expected, sorted(held)) for player, life, expected, held in snapshot["streams"]},
        "finished": server.finished,
    }
