"""What fleets in memory share: sites that play, are late and crash, and a link that loses, repeats and reorders.

A player's snapshot and its outbox are saved in one piece before a message leaves: a crash loses decisions, rewards and
eliminations, never a message. The server owns nothing but its log and, somewhere behind its end, a snapshot.
"""

from __future__ import annotations

import json
import math
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from outvote.core.codes import Codebook, pack
from outvote.core.decisions import Ticket
from outvote.core.errors import UnknownDecision
from outvote.core.ledger import Ledger
from outvote.core.messages import Elimination, PlayerId
from outvote.core.task import Task

from .tasks import Rewards


class AnySite(ABC):
    """One player, its disk, and what its application has not done yet."""

    player: Any

    def __init__(self, task: Task, name: PlayerId) -> None:
        self.task = task
        self.name = name
        self.now = 10**12
        """Its clock."""
        self.outbox: list[Any] = []
        """Every message ever produced: a site keeps them until the task ends."""
        self.unanswered: list[Ticket] = []
        """Decisions without a reward; after a crash also those that the player has forgotten."""

    @abstractmethod
    def save(self) -> None: ...

    @abstractmethod
    def restart(self, *, crashed: bool) -> None: ...


S = TypeVar("S", bound=AnySite)


class AnyFleet(ABC, Generic[S]):
    """The participants of one task and the messages between them."""

    server: Any

    def __init__(self, task: Task, rewards: Rewards, sites: list[S]) -> None:
        self.task = task
        self.rewards = rewards
        self.codebook: Codebook = task.entry.codebook(task)
        self.ledger = Ledger(task)
        self.sites = sites
        self.produced: dict[PlayerId, list[Any]] = {site.name: [] for site in sites}
        """Every message of every player, over all its lives, in the order of production."""
        self.up: list[tuple[PlayerId, int, bytes]] = []
        """In flight: who, its sequence, the payload."""
        self.down: list[Any] = []
        self.log: dict[tuple[PlayerId, Any], int] = {}
        """In the order in which the server first took them, each once, with the time: how many draws there were."""
        self.announced: list[Elimination] = []
        """In the order in which the server first announced them, each once."""
        self.draws = 0
        self.happened: Counter[str] = Counter()
        """How deep the run went: what happened, and how often."""

    # ---- at a site

    def play(self, site: S, draws: int, rng: random.Random, *, prompt: bool = True) -> None:
        """Decisions with their rewards at once. With `prompt` the clock moves on, so that groups close meanwhile."""
        index = self.sites.index(site)
        pause = round(1000 * self.task.reward_window / 20) + 2
        for _ in range(draws):
            ticket = site.player.decide(site.now)
            site.player.reward(ticket, self.rewards.draw(index, ticket.arm, rng), site.now)
            site.now += rng.randrange(pause) if prompt else 0
            self.tick(site)
        self.draws += draws

    def decide_ahead(self, site: S, draws: int) -> None:
        site.unanswered += [site.player.decide(site.now) for _ in range(draws)]
        self.draws += draws

    def answer(self, site: S, rng: random.Random, *, share: float) -> None:
        """Rewards for a share of the unanswered decisions, in any order; the rest never gets one."""
        index, seen = self.sites.index(site), site.player.decisions.seen
        late = sum(seen.late)
        rng.shuffle(site.unanswered)
        for ticket in site.unanswered[: math.ceil(share * len(site.unanswered))]:
            try:
                site.player.reward(ticket, self.rewards.draw(index, ticket.arm, rng), site.now)
            except UnknownDecision:  # a crash made the player forget it, or its group has closed
                self.happened["refused rewards"] += 1
        self.happened["late rewards"] += sum(seen.late) - late
        site.unanswered = []
        self.tick(site)

    def tick(self, site: S) -> None:
        messages = site.player.tick(site.now)
        if messages:
            self.produce(site, messages)

    def wait(self, windows: float) -> None:
        """So many reward windows pass, and a moment, at all sites."""
        for site in self.sites:
            site.now += round(1000 * windows * self.task.reward_window) + 1
            self.tick(site)

    def restart_site(self, site: S, *, crashed: bool) -> None:
        """After a crash the player is the one that was saved last."""
        before = site.player.snapshot()
        if not crashed:
            site.save()
        site.restart(crashed=crashed)
        self.happened["player crashes that lost something"] += crashed and site.player.snapshot() != before
        self.tick(site)

    def produce(self, site: S, messages: Sequence[Any]) -> None:
        """Messages: saved with the player before they are sent."""
        site.outbox += messages
        self.produced[site.name] += messages
        for message in messages:
            self.ledger.send_up(site.name, message)
        site.save()
        self._send(site, messages)
        self.happened["messages"] += len(messages)

    # ---- on the link

    def _send(self, site: S, messages: Sequence[Any]) -> None:
        self.up += [(site.name, message.sequence, pack(self.codebook.encode(message))) for message in messages]

    def resend(self, site: S) -> None:
        """The site sends its outbox again: some of it may never have arrived."""
        self._send(site, site.outbox)

    @abstractmethod
    def tell(self, site: S, rng: random.Random) -> None:
        """The server tells a site all eliminations again."""

    @abstractmethod
    def deliver_up(self, index: int, *, again: bool) -> None:
        """One message arrives at the server; `again` leaves a copy of it in flight."""

    @abstractmethod
    def deliver_down(self, index: int, *, again: bool) -> None:
        """One message arrives at a site; `again` leaves a copy of it in flight."""

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
        before = len(self.up) + len(self.down)
        self.up = [message for message in self.up if rng.random() >= share]
        self.down = [message for message in self.down if rng.random() >= share]
        self.happened["lost messages"] += before - len(self.up) - len(self.down)

    # ---- at the server

    def save_server(self) -> None:
        self.server_disk = json.dumps(self.server.snapshot()), len(self.log)

    def crash_server(self, *, back: int) -> None:
        """The server restarts from its snapshot and reads the log from there, or from `back` records before."""
        before = self.server_state(self.server)
        snapshot, position = self.server_disk
        self.server = self.task.entry.restore_server(self.task, json.loads(snapshot))
        for (name, message), at in list(self.log.items())[max(0, position - back) :]:
            self.announce(self.server.receive(name, message, at))
        assert self.server_state(self.server) == before, "the log led elsewhere when it was read again"
        self.happened["server crashes that read messages again"] += len(self.log) > position

    @abstractmethod
    def server_state(self, server: Any) -> Any:
        """A server's snapshot without what may depend on how often, and in which order, the same messages came."""

    @abstractmethod
    def send_down(self, elimination: Elimination) -> None:
        """The server tells all sites."""

    def announce(self, eliminations: Sequence[Elimination]) -> None:
        for elimination in eliminations:
            if elimination not in self.announced:
                self.announced.append(elimination)
                self.ledger.send_down(elimination)
                self.happened["announcements"] += 1
            self.send_down(elimination)

    # ---- what must hold

    @abstractmethod
    def check(self) -> None:
        """At every moment."""

    @abstractmethod
    def check_settled(self) -> None:
        """Once everything has arrived: all agree, and nobody can tell the run from a clean one."""

    def settle(self, rng: random.Random) -> None:
        """Everything arrives at last, in any order, and some of it twice."""
        for site in self.sites:
            self.resend(site)
        self.up += rng.sample(self.up, len(self.up) // 2)
        while self.up:
            self.deliver_up(rng.randrange(len(self.up)), again=False)
        for site in self.sites:
            self.tell(site, rng)
        self.down += rng.sample(self.down, len(self.down) // 2)
        while self.down:
            self.deliver_down(rng.randrange(len(self.down)), again=False)
        self.check()
        self.check_settled()
