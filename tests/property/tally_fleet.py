"""A fleet of Tally in memory: N players, one server with its log, and the link of `in_flight`.

The n-th announcement is a mask of the arms that the one before has left, so a site applies announcements in their
order, however they arrive. What must hold at every moment is in `check`, what must hold once everything has arrived in
`check_settled`.
"""

from __future__ import annotations

import json
import random
from dataclasses import astuple

from outvote.core import protocols
from outvote.core.codes import TallyCodebook, fixed_width, pack, unpack
from outvote.core.ledger import tally_bits_bound
from outvote.core.messages import Elimination, PlayerId, Tally
from outvote.core.tally.player import TallyPlayer
from outvote.core.tally.server import TallyServer
from outvote.core.task import Task

from .in_flight import AnyFleet, AnySite
from .tasks import Rewards


class Site(AnySite):
    """A player, and the announcements that it has heard."""

    player: TallyPlayer

    def __init__(self, task: Task, name: PlayerId, codebook: TallyCodebook) -> None:
        super().__init__(task, name)
        self.codebook = codebook
        self.rng = random.Random(str(name))  # rounds and makes noise: of the site, not of the player's memory
        self.player = TallyPlayer(task, name, self.rng)
        self.heard: list[list[int]] = [list(range(len(task.arms)))]
        """The arms that were left at first, and after each announcement that was applied."""
        self.early: dict[int, bytes] = {}
        """Announcements whose turn has not come."""
        self.save()

    def save(self) -> None:
        outbox = [astuple(tally) for tally in self.outbox]
        self.disk = json.dumps({"snapshot": self.player.snapshot(), "outbox": outbox, "heard": self.heard})

    def restart(self, *, crashed: bool) -> None:
        record = json.loads(self.disk)
        self.player = TallyPlayer.restore(self.task, record["snapshot"], self.rng)
        assert self.player.snapshot() == record["snapshot"], "a restored player differs from the saved one"
        self.player.resume(self.now, crashed=crashed)
        self.outbox = [Tally(*tally) for tally in record["outbox"]]
        self.heard, self.early = record["heard"], {}

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


class TallyFleet(AnyFleet[Site]):
    """The participants of one task and the messages between them."""

    server: TallyServer

    def __init__(self, task: Task, rewards: Rewards) -> None:
        names, codebook = task.player_names or range(task.players), TallyCodebook(task)
        super().__init__(task, rewards, [Site(task, name, codebook) for name in names])
        self.server = TallyServer(task)
        self.logged = [[0, 0] for _ in task.arms]
        """Events and successes of each arm in the log."""
        self.save_server()

    def tell(self, site: Site, rng: random.Random | None = None) -> None:
        left = list(range(len(self.task.arms)))
        for number, message in enumerate(self.announced):
            self.down.append((site, number, pack(self.codebook.encode_down(left, message))))
            left = [arm for arm in left if arm not in message.arms]

    def deliver_up(self, index: int, *, again: bool) -> None:
        name, sequence, payload = self.up[index] if again else self.up.pop(index)
        tally = self.codebook.decode_up(unpack(payload), player=name, sequence=sequence)
        assert isinstance(tally, Tally)
        assert tally in self.produced[name], "a message was changed on its way"
        if (name, tally) in self.log:
            dear = self.happened["duplicate tallies"] % 5 == 0  # the whole state is dear to compare
            before = self.server_state(self.server) if dear else ""
            assert self.server.receive(name, tally, self.draws) == []
            assert not dear or self.server_state(self.server) == before, "a tally that came again changed the server"
            self.happened["duplicate tallies"] += 1
            return
        self.log[name, tally] = self.draws
        self.logged[tally.arm][0] += tally.trials
        self.logged[tally.arm][1] += tally.successes
        self.announce(self.server.receive(name, tally, self.draws))

    def deliver_down(self, index: int, *, again: bool) -> None:
        site, number, payload = self.down[index] if again else self.down.pop(index)
        site.hear(number, payload)
        self.happened["announcements out of order"] += bool(site.early)

    def server_state(self, server: TallyServer) -> str:
        """As text, which does not change with the server."""
        state = server.snapshot()
        return json.dumps({key: value for key, value in state.items() if key not in ("duplicates", "time", "checksum")})

    def send_down(self, elimination: Elimination) -> None:
        for site in self.sites:
            self.tell(site)

    # ---- what must hold

    def check(self) -> None:
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
        groups = list(site.player.decisions.groups)
        assert all(group.counts.keys() <= remaining for group in groups)
        assert sum(group.left > 0 for group in groups) == (not site.player.finished), "not one tally is open"

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

    def check_settled(self) -> None:
        clean = protocols.server(self.task)
        assert isinstance(clean, TallyServer)
        for (name, tally), at in self.log.items():
            clean.receive(name, tally, at)
        assert self.server_state(clean) == self.server_state(self.server)
        assert {(name, tally.sequence) for name, tally in self.log} == {
            (name, tally.sequence) for name, tallies in self.produced.items() for tally in tallies
        }
        assert {site.player.remaining for site in self.sites} == {self.server.remaining}
        snapshot = self.server.snapshot()
        assert protocols.restore(self.task, json.loads(json.dumps(snapshot))).snapshot() == snapshot
