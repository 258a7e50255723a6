"""A whole fleet in memory: N players, one server with its log, and a link that loses, repeats and reorders.

Participants are as durable as the network makes them. A player's snapshot and its outbox are saved in one piece
before a message leaves, and else whenever the test says: a crash loses rewards and eliminations, never a message. The
server owns nothing but its log and, somewhere behind its end, a snapshot.

What must hold at every moment is in `check`, what must hold once everything has arrived in `check_settled`.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from outvote.core import protocols
from outvote.core.codes import Codebook, pack, unpack
from outvote.core.errors import InvalidEvent
from outvote.core.ledger import Ledger
from outvote.core.messages import Elimination, PlayerId, Vote
from outvote.core.task import Task
from outvote.core.votes.player import ARM_TRANSITIONS, MedianPlayer
from outvote.core.votes.server import VoteServer

from .tasks import Rewards

EPOCH_ENDS = "epoch ends, mean below the median"
ELIMINATED = "elimination received"

States = dict[tuple[int, int], str]


class Site:
    """One player, its disk, and what its application has not done yet."""

    def __init__(self, task: Task, name: PlayerId) -> None:
        self.task = task
        self.name = name
        self.player = new_player(task, name)
        self.outbox: list[Vote] = []
        """Every message ever produced: a site keeps them until the task ends."""
        self.unanswered: list[tuple[int, int]] = []
        """Decisions (arm, ticket) without a reward; after a crash also those that the player has forgotten."""
        self.due: list[int] = []
        """Tickets to close, where the task has a reward window."""
        self.crashed = False
        self.states = self.arm_states()
        self.save()

    def arm_states(self) -> States:
        instances = range(len(self.task.instances))
        return {(arm, i): self.player.arm_state(arm, i) for arm in range(len(self.task.arms)) for i in instances}

    def save(self) -> None:
        outbox = [[vote.arm, vote.instance, vote.sequence] for vote in self.outbox]
        self.disk = json.dumps({"snapshot": self.player.snapshot(), "outbox": outbox})
        self.states_on_disk = self.arm_states()

    def crash(self) -> None:
        record = json.loads(self.disk)
        self.player = restored_player(self.task, record["snapshot"])
        self.outbox = [Vote(*vote) for vote in record["outbox"]]
        self.due = self.player.take_full()
        self.crashed = True
        self.states = self.arm_states()


class Fleet:
    """The participants of one task and the messages between them."""

    def __init__(self, task: Task, rewards: Rewards) -> None:
        self.task = task
        self.rewards = rewards
        self.codebook = Codebook(task)
        self.ledger = Ledger(task)
        self.sites = [Site(task, name) for name in task.player_names or range(task.players)]
        self.produced: dict[PlayerId, list[Vote]] = {site.name: [] for site in self.sites}
        """Every message of every player, over all its lives, in the order of production."""
        self.up: list[tuple[PlayerId, int, bytes]] = []
        """In flight: who, its sequence, the payload."""
        self.down: list[tuple[Site, bytes]] = []
        self.server = new_server(task)
        self.log: list[tuple[PlayerId, Vote]] = []
        """In the order in which the server first took them, each once."""
        self.announced: list[Elimination] = []
        """In the order in which the server first announced them, each once."""
        self.was_finished = False
        self.transitions: set[tuple[str, str]] = set()
        """The rows of `ARM_TRANSITIONS` that were seen to happen."""
        self.happened: Counter[str] = Counter()
        """How deep the run went: what happened, and how often."""
        self.save_server()

    # ---- at a site

    def play(self, site: Site, draws: int, rng: random.Random, *, prompt: bool = True) -> None:
        """Decisions with their rewards at once; `prompt` closes batches as soon as they are full."""
        index = self.sites.index(site)
        for _ in range(draws):
            arm, ticket = site.player.decide()
            votes = site.player.reward(arm, self.rewards.draw(index, arm, rng), ticket=ticket)
            if votes:
                self._produce(site, votes)
            if prompt and self.task.reward_window is not None:
                self.close_due(site)
        self._observe(site, EPOCH_ENDS, ())

    def decide_ahead(self, site: Site, draws: int) -> None:
        site.unanswered += [site.player.decide() for _ in range(draws)]

    def answer(self, site: Site, rng: random.Random, *, share: float) -> None:
        """Rewards for a share of the unanswered decisions, in any order; the rest never gets one."""
        index = self.sites.index(site)
        rng.shuffle(site.unanswered)
        for arm, ticket in site.unanswered[: math.ceil(share * len(site.unanswered))]:
            before = site.player.snapshot() if site.crashed else None
            try:
                votes = site.player.reward(arm, self.rewards.draw(index, arm, rng), ticket=ticket)
            except InvalidEvent:  # of a decision that a crash made the player forget
                assert before == site.player.snapshot(), "a refused reward changed the player"
                self.happened["stale rewards"] += 1
                continue
            self._produce(site, votes)
        site.unanswered = []

    def close_due(self, site: Site) -> None:
        """The reward window of every full batch passes."""
        site.due += site.player.take_full()
        for ticket in site.due:
            self._produce(site, site.player.close(ticket))
        site.due = []

    def crash_site(self, site: Site) -> None:
        before = site.player.snapshot()
        site.crash()
        assert site.states == site.states_on_disk, "a restored player has other arms than the saved one"
        after = site.player.snapshot()
        assert after == json.loads(site.disk)["snapshot"], "a restored player differs from the saved one"
        self.happened["player crashes that lost something"] += after != before

    def _produce(self, site: Site, votes: Sequence[Vote]) -> None:
        """Messages, if any: saved with the player before they are sent."""
        self._observe(site, EPOCH_ENDS, votes)
        if votes:
            site.outbox += votes
            self.produced[site.name] += votes
            for vote in votes:
                self.ledger.send_up(site.name, vote)
            site.save()
            self._send(site, votes)

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

    # ---- on the link

    def _send(self, site: Site, votes: Sequence[Vote]) -> None:
        self.up += [(site.name, vote.sequence, pack(self.codebook.encode(vote))) for vote in votes]

    def resend(self, site: Site) -> None:
        """The site sends its outbox again: some of it may never have arrived."""
        self._send(site, site.outbox)

    def catch_up(self, site: Site, *, together: bool) -> None:
        """The server tells a site all eliminations again, in one message or one by one."""
        arms = self.server.eliminated
        messages = [arms] if together else [(arm,) for arm in arms]
        for message in filter(None, messages):
            self.down.append((site, pack(self.codebook.encode_down((), Elimination(tuple(sorted(message)))))))

    def deliver_up(self, index: int, *, again: bool) -> None:
        """One message arrives at the server; `again` leaves a copy of it in flight."""
        name, sequence, payload = self.up[index] if again else self.up.pop(index)
        vote = self.codebook.decode_up(unpack(payload), player=name, sequence=sequence)
        known = (name, vote) in self.log
        announced = self.server.receive(name, vote)
        if known:
            assert announced == [], "a vote that came again announced an arm"
            self.happened["duplicate votes"] += 1
        else:
            self.log.append((name, vote))
        self._announce(announced)
        self.happened["votes held out of order"] += len(self.applied()) < len(self.log)

    def deliver_down(self, index: int, *, again: bool) -> None:
        """One message arrives at a site; `again` leaves a copy of it in flight."""
        site, payload = self.down[index] if again else self.down.pop(index)
        message = self.codebook.decode_down(range(len(self.task.arms)), unpack(payload))
        site.player.receive(message)
        self._observe(site, ELIMINATED, ())
        assert not set(message.arms) & set(site.player.remaining), "an announced arm is still played"

    def deliver(self, count: int, rng: random.Random, *, again: float = 0.0) -> None:
        """So many messages arrive, in any order, some of them to arrive again."""
        for _ in range(count):
            flights = [flight for flight in (self.up, self.down) if flight]
            if flights:
                flight = rng.choice(flights)
                deliver = self.deliver_up if flight is self.up else self.deliver_down
                deliver(rng.randrange(len(flight)), again=rng.random() < again)

    def lose(self, rng: random.Random, *, share: float) -> None:
        """Messages in flight vanish."""
        kept_up = [message for message in self.up if rng.random() >= share]
        kept_down = [message for message in self.down if rng.random() >= share]
        self.happened["lost messages"] += len(self.up) + len(self.down) - len(kept_up) - len(kept_down)
        self.up, self.down = kept_up, kept_down

    # ---- at the server

    def save_server(self) -> None:
        self.server_disk = json.dumps(self.server.snapshot()), len(self.log)

    def crash_server(self, *, back: int) -> None:
        """The server restarts from its snapshot and reads the log from there, or from `back` records before."""
        before = server_state(self.server)
        snapshot, position = self.server_disk
        self.server = restored_server(self.task, json.loads(snapshot))
        for name, vote in self.log[max(0, position - back) :]:
            self._announce(self.server.receive(name, vote))
        assert server_state(self.server) == before, "the log led elsewhere when it was read again"
        self.happened["server crashes that read votes again"] += len(self.log) > position

    def _announce(self, eliminations: Sequence[Elimination]) -> None:
        for elimination in eliminations:
            if elimination not in self.announced:
                self.announced.append(elimination)
                self.ledger.send_down(elimination)
                self.happened["eliminations"] += 1
            self.down += [(site, pack(self.codebook.encode_down((), elimination))) for site in self.sites]

    # ---- what must hold

    def check(self) -> None:
        """At every moment."""
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

    def settle(self, rng: random.Random) -> None:
        """Everything arrives at last, in any order, and some of it twice."""
        for site in self.sites:
            self.resend(site)
        self.up += rng.sample(self.up, len(self.up) // 2)
        while self.up:
            self.deliver_up(rng.randrange(len(self.up)), again=False)
        for site in self.sites:
            self.catch_up(site, together=rng.random() < 0.5)
        self.down += rng.sample(self.down, len(self.down) // 2)
        while self.down:
            self.deliver_down(rng.randrange(len(self.down)), again=False)
        self.check()
        self.check_settled()

    def check_settled(self) -> None:
        """Once everything has arrived: all agree, and nobody can tell the run from a clean one."""
        clean = new_server(self.task)
        players = [new_player(self.task, site.name) for site in self.sites]
        for name, vote in self.log:
            for elimination in clean.receive(name, vote):
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


def new_player(task: Task, name: PlayerId) -> MedianPlayer:
    player = protocols.player(task, name)
    assert isinstance(player, MedianPlayer)
    return player


def new_server(task: Task) -> VoteServer:
    server = protocols.server(task)
    assert isinstance(server, VoteServer)
    return server


def restored_player(task: Task, snapshot: Mapping[str, Any]) -> MedianPlayer:
    player = protocols.restore(task, snapshot)
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
