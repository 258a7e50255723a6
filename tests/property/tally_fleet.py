"""A fleet of Tally in memory: N players, one server with its log, and a link that loses, repeats and reorders.

Participants are as durable as in `fleet`: a player's snapshot and its outbox are saved in one piece before a message
leaves; the server owns nothing but its log and, somewhere behind its end, a snapshot. The n-th announcement is a mask
of the arms that the one before has left, so a site applies announcements in their order, however they arrive.

What must hold at every moment is in `check`, what must hold once everything has arrived in `check_settled`.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple

from outvote.core import protocols
from outvote.core.codes import TallyCodebook, fixed_width, pack, unpack
from outvote.core.errors import InvalidEvent
from outvote.core.ledger import Ledger, tally_bits_bound
from outvote.core.messages import Elimination, PlayerId, Tally
from outvote.core.tally.player import TallyPlayer
from outvote.core.tally.server import TallyServer
from outvote.core.task import Task

from .tasks import Rewards


class Site:
    """One player, its disk, and what its application has not done yet."""

    def __init__(self, task: Task, name: PlayerId, codebook: TallyCodebook) -> None:
        self.task = task
        self.name = name
        self.codebook = codebook
        self.rng = random.Random(str(name))  # rounds and makes noise: of the site, not of the player's memory
        self.player = TallyPlayer(task, name, self.rng)
        self.outbox: list[Tally] = []
        """Every message ever produced: a site keeps them until the task ends."""
        self.heard: list[list[int]] = [list(range(len(task.arms)))]
        """The arms that were left at first, and after each announcement that was applied."""
        self.early: dict[int, bytes] = {}
        """Announcements whose turn has not come."""
        self.unanswered: list[tuple[int, int]] = []
        self.due: list[int] = []
        self.crashed = False
        self.save()

    def save(self) -> None:
        outbox = [astuple(tally) for tally in self.outbox]
        self.disk = json.dumps({"snapshot": self.player.snapshot(), "outbox": outbox, "heard": self.heard})

    def crash(self) -> None:
        record = json.loads(self.disk)
        self.player = TallyPlayer.restore(self.task, record["snapshot"], self.rng)
        assert self.player.snapshot() == record["snapshot"], "a restored player differs from the saved one"
        self.outbox = [Tally(*tally) for tally in record["outbox"]]
        self.heard, self.early = record["heard"], {}
        self.due = self.player.take_full()
        self.crashed = True

    def hear(self, number: int, payload: bytes) -> None:
        """An announcement arrives; whatever can be applied now is."""
        self.early[number] = payload
        while (payload_now := self.early.pop(len(self.heard) - 1, None)) is not None:
            left = self.heard[-1]
            message = self.codebook.decode_down(left, unpack(payload_now))
            self.player.receive(message)
            self.heard.append([arm for arm in left if arm not in message.arms])
            assert list(self.player.remaining) == self.heard[-1]
        if number < len(self.heard) - 1:  # known: told again, it changes nothing
            self.early.pop(number, None)
            before = self.player.snapshot()
            self.player.receive(self.codebook.decode_down(self.heard[number], unpack(payload)))
            assert self.player.snapshot() == before, "an announcement that came again changed the player"


class TallyFleet:
    """The participants of one task and the messages between them."""

    def __init__(self, task: Task, rewards: Rewards) -> None:
        self.task = task
        self.rewards = rewards
        self.codebook = TallyCodebook(task)
        self.ledger = Ledger(task)
        self.sites = [Site(task, name, self.codebook) for name in task.player_names or range(task.players)]
        self.produced: dict[PlayerId, list[Tally]] = {site.name: [] for site in self.sites}
        self.up: list[tuple[PlayerId, int, bytes]] = []
        """In flight: who, its sequence, the payload."""
        self.down: list[tuple[Site, int, bytes]] = []
        self.server = TallyServer(task)
        self.log: dict[tuple[PlayerId, Tally], None] = {}
        """In the order in which the server first took them, each once."""
        self.logged = [[0, 0] for _ in task.arms]
        """Events and successes of each arm in the log."""
        self.announced: list[Elimination] = []
        self.draws = 0
        self.happened: Counter[str] = Counter()
        """How deep the run went: what happened, and how often."""
        self.save_server()

    # ---- at a site

    def play(self, site: Site, draws: int, rng: random.Random, *, prompt: bool = True) -> None:
        """Decisions with their rewards at once; `prompt` closes tallies as soon as they are full."""
        index = self.sites.index(site)
        for _ in range(draws):
            arm, ticket = site.player.decide()
            self._produce(site, site.player.reward(arm, self.rewards.draw(index, arm, rng), ticket=ticket))
            if prompt and self.task.reward_window is not None:
                self.close_due(site)
        self.draws += draws

    def decide_ahead(self, site: Site, draws: int) -> None:
        site.unanswered += [site.player.decide() for _ in range(draws)]
        self.draws += draws

    def answer(self, site: Site, rng: random.Random, *, share: float) -> None:
        """Rewards for a share of the unanswered decisions, in any order; the rest never gets one."""
        index = self.sites.index(site)
        rng.shuffle(site.unanswered)
        for arm, ticket in site.unanswered[: math.ceil(share * len(site.unanswered))]:
            before = site.player.snapshot()
            try:
                tallies = site.player.reward(arm, self.rewards.draw(index, arm, rng), ticket=ticket)
            except InvalidEvent:  # of a tally that was asked again, or of a decision that a crash made it forget
                assert before == site.player.snapshot(), "a refused reward changed the player"
                self.happened["stale rewards"] += 1
                continue
            self._produce(site, tallies)
        site.unanswered = []

    def close_due(self, site: Site) -> None:
        """The reward window of every full tally passes."""
        site.due += site.player.take_full()
        due, site.due = site.due, []
        for ticket in due:
            self._produce(site, site.player.close(ticket))

    def crash_site(self, site: Site) -> None:
        before = site.player.snapshot()
        site.crash()
        self.happened["player crashes that lost something"] += site.player.snapshot() != before

    def _produce(self, site: Site, tallies: Sequence[Tally]) -> None:
        """Messages, if any: saved with the player before they are sent."""
        if tallies:
            site.outbox += tallies
            self.produced[site.name] += tallies
            for tally in tallies:
                self.ledger.send_up(site.name, tally)
            site.save()
            self._send(site, tallies)
            self.happened["tallies"] += len(tallies)

    # ---- on the link

    def _send(self, site: Site, tallies: Sequence[Tally]) -> None:
        self.up += [(site.name, tally.sequence, pack(self.codebook.encode(tally))) for tally in tallies]

    def resend(self, site: Site) -> None:
        self._send(site, site.outbox)

    def tell(self, site: Site) -> None:
        """The server tells a site all announcements again."""
        left = list(range(len(self.task.arms)))
        for number, message in enumerate(self.announced):
            self.down.append((site, number, pack(self.codebook.encode_down(left, message))))
            left = [arm for arm in left if arm not in message.arms]

    def deliver_up(self, index: int, *, again: bool) -> None:
        """One message arrives at the server; `again` leaves a copy of it in flight."""
        name, sequence, payload = self.up[index] if again else self.up.pop(index)
        tally = self.codebook.decode_up(unpack(payload), player=name, sequence=sequence)
        assert tally in self.produced[name], "a message was changed on its way"
        if (name, tally) in self.log:
            dear = self.happened["duplicate tallies"] % 5 == 0  # the whole state is dear to compare
            before = server_state(self.server) if dear else ""
            assert self.server.receive(name, tally) == []
            assert not dear or server_state(self.server) == before, "a tally that came again changed the server"
            self.happened["duplicate tallies"] += 1
            return
        self.log[name, tally] = None
        self.logged[tally.arm][0] += tally.trials
        self.logged[tally.arm][1] += tally.successes
        self._announce(self.server.receive(name, tally))

    def deliver_down(self, index: int, *, again: bool) -> None:
        site, number, payload = self.down[index] if again else self.down.pop(index)
        site.hear(number, payload)
        self.happened["announcements out of order"] += bool(site.early)

    def deliver(self, count: int, rng: random.Random, *, again: float = 0.0) -> None:
        """So many messages arrive, in any order, some of them to arrive again."""
        for _ in range(count):
            flights = [flight for flight in (self.up, self.down) if flight]
            if flights:
                flight = rng.choice(flights)
                deliver = self.deliver_up if flight is self.up else self.deliver_down
                deliver(rng.randrange(len(flight)), again=rng.random() < again)

    def lose(self, rng: random.Random, *, share: float) -> None:
        before = len(self.up) + len(self.down)
        self.up = [message for message in self.up if rng.random() >= share]
        self.down = [message for message in self.down if rng.random() >= share]
        self.happened["lost messages"] += before - len(self.up) - len(self.down)

    # ---- at the server

    def save_server(self) -> None:
        self.server_disk = json.dumps(self.server.snapshot()), len(self.log)

    def crash_server(self, *, back: int) -> None:
        """The server restarts from its snapshot and reads the log from there, or from `back` records before."""
        before = server_state(self.server)
        snapshot, position = self.server_disk
        self.server = TallyServer.restore(self.task, json.loads(snapshot))
        for name, tally in list(self.log)[max(0, position - back) :]:
            self._announce(self.server.receive(name, tally))
        assert server_state(self.server) == before, "the log led elsewhere when it was read again"
        self.happened["server crashes that read tallies again"] += len(self.log) > position

    def _announce(self, eliminations: Sequence[Elimination]) -> None:
        for elimination in eliminations:
            if elimination not in self.announced:
                self.announced.append(elimination)
                self.ledger.send_down(elimination)
                self.happened["announcements"] += 1
                for site in self.sites:
                    self.tell(site)

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
        assert len({tally.sequence for tally in produced}) == len(produced), "a place in the cycle was sent twice"
        assert all(0 <= tally.successes <= tally.trials for tally in produced)
        assert {tally.trials for tally in produced} <= set(self.task.tally_sizes)
        remaining = set(site.player.remaining)
        assert remaining, "the last arm was eliminated"
        assert remaining >= set(self.server.remaining)
        assert site.player.finished == (len(remaining) == 1)
        batches = site.player.snapshot()["batches"]
        assert {batch[1] for batch in batches} <= remaining
        if self.task.reward_window is None:
            assert len({batch[1] for batch in batches}) == len(batches), "an arm has two open tallies"

    def _check_server(self) -> None:
        server, arms = self.server, range(len(self.task.arms))
        assert server.remaining, "the last arm was eliminated"
        assert server.contenders, "the last arm was refuted"
        assert set(server.contenders) <= set(server.remaining)
        assert server.eliminated == tuple(arm for message in self.announced for arm in message.arms)
        assert sorted(server.eliminated + server.remaining) == list(arms)
        left = len(self.task.arms)
        for message in self.announced:
            after = left - len(message.arms)
            assert 2 * after <= left or after == 1, "an announcement was not worth its bits"
            left = after
        assert [[server.trials(arm), server.successes(arm)] for arm in arms] == self.logged
        assert server.refused == 0
        self.happened["finished"] += server.finished
        self.happened["held"] += server.held
        self.happened["late tallies"] += server.late > 0

    def _check_ledger(self) -> None:
        arm_bits = fixed_width(len(self.task.arms))
        tallies = [tally for produced in self.produced.values() for tally in produced]
        counts = sum(tally.trials.bit_length() for tally in tallies)  # from 0 to `trials`
        implied = self.task.code == "implied"
        words = self.codebook.arm_words
        assert self.ledger.up_bits == counts + (0 if implied else sum(len(words[tally.arm]) for tally in tallies))
        assert self.ledger.implied_bits == (arm_bits * len(tallies) if implied else 0)
        assert self.ledger.total_bits <= tally_bits_bound(self.task, self.draws)

    def settle(self, rng: random.Random) -> None:
        """Everything arrives at last, in any order, and some of it twice."""
        for site in self.sites:
            self.resend(site)
        self.up += rng.sample(self.up, len(self.up) // 2)
        while self.up:
            self.deliver_up(rng.randrange(len(self.up)), again=False)
        for site in self.sites:
            self.tell(site)
        self.down += rng.sample(self.down, len(self.down) // 2)
        while self.down:
            self.deliver_down(rng.randrange(len(self.down)), again=False)
        self.check()
        self.check_settled()

    def check_settled(self) -> None:
        """Once everything has arrived: all agree, and nobody can tell the run from a clean one."""
        clean = protocols.server(self.task)
        assert isinstance(clean, TallyServer)
        for name, tally in self.log:
            clean.receive(name, tally)
        assert server_state(clean) == server_state(self.server)
        assert {(name, tally.sequence) for name, tally in self.log} == {
            (name, tally.sequence) for name, tallies in self.produced.items() for tally in tallies
        }
        assert {site.player.remaining for site in self.sites} == {self.server.remaining}
        snapshot = self.server.snapshot()
        assert protocols.restore(self.task, json.loads(json.dumps(snapshot))).snapshot() == snapshot


def server_state(server: TallyServer) -> str:
    """A server's snapshot without how often the same tallies came: text, which does not change with the server."""
    state = server.snapshot()
    return json.dumps({key: value for key, value in state.items() if key not in ("duplicates", "checksum")})
