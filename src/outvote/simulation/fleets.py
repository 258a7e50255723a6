"""Who plays together: a protocol's players with their server, players on their own, or one player fed by all.

A fleet carries messages between core objects and keeps the bit ledger; it decides nothing itself.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Protocol

from outvote.core import protocols
from outvote.core.decisions import Ticket
from outvote.core.errors import InvalidSettings
from outvote.core.ledger import Ledger
from outvote.core.messages import Elimination, UpMessage, Vote
from outvote.simulation.liars import Liar
from outvote.simulation.registry import BASELINES, Learner
from outvote.simulation.settings import Settings
from outvote.simulation.trials import Costs


class Participant(Protocol):
    """The part of a player's face that a simulation needs."""

    def decide(self, now: int) -> Ticket: ...
    def reward(self, ticket: Ticket, reward: float, now: int) -> None: ...
    def tick(self, now: int) -> Sequence[UpMessage]: ...
    def receive(self, message: Elimination) -> None: ...
    def candidates(self, instance: int = 0) -> tuple[int, ...]: ...
    @property
    def remaining(self) -> tuple[int, ...]: ...


class Alone:
    """A baseline's player with the face of a protocol's. It keeps the arms that are left."""

    def __init__(self, learner: Learner, arms: int) -> None:
        self._decide, self._reward = learner.decide, learner.reward
        self._tickets = [Ticket.uncounted(arm) for arm in range(arms)]
        self._fallen: Sequence[int] | None = None
        self.remaining = tuple(range(arms))

    def decide(self, now: int) -> Ticket:
        arm = self._decide()
        if not 0 <= arm < len(self._tickets):
            allowed = f"0 to {len(self._tickets) - 1}"
            raise InvalidSettings(f"decided for an arm that is none of {allowed}: {arm!r}", field="player")
        return self._tickets[arm]

    def reward(self, ticket: Ticket, reward: float, now: int) -> None:
        self._fallen = self._reward(ticket.arm, reward)

    def tick(self, now: int) -> Sequence[Vote]:
        """The arms that it has given up, as votes that it has obeyed; they are not for sending."""
        fallen = self._fallen
        if not fallen:
            return ()
        self._fallen = None
        if not set(fallen) < set(self.remaining):
            problem = f"gave up the arms {list(fallen)} of {list(self.remaining)}: one must be left"
            raise InvalidSettings(problem, field="player")
        self.remaining = tuple(each for each in self.remaining if each not in fallen)
        return [Vote(each) for each in fallen]

    def receive(self, message: Elimination) -> None:
        """Nobody sends it any."""

    def candidates(self, instance: int = 0) -> tuple[int, ...]:
        return self.remaining


class Fleet:
    """A baseline: a fleet is finished when enough members are. One member acts for all players, or one for each."""

    instances = 1

    def __init__(self, settings: Settings, members: Sequence[Participant], enough: float) -> None:
        self.settings = settings
        self.members = list(members)
        self.announced: list[Elimination] = []
        """What the server has sent so far; each player takes it over at its next draw (Algorithm 1)."""
        self.eliminations: list[tuple[int, int]] = []
        """(arm, draw), in order; of players on their own the first to eliminate an arm."""
        self._enough = enough

    @property
    def held(self) -> bool:
        """Only a server can hold a decision back."""
        return False

    def handle(self, player: int, messages: Sequence[UpMessage], draw: int, now: int | None = None) -> None:
        """A member has voted; alone, it has already obeyed itself."""
        fallen = {arm for arm, _ in self.eliminations}
        votes = (message for message in messages if isinstance(message, Vote))
        self.eliminations += [(vote.arm, draw) for vote in votes if vote.arm not in fallen]

    def finished(self) -> bool:
        return sum(len(member.candidates()) <= 1 for member in self.members) >= self._enough

    def remaining_sets(self) -> list[tuple[int, ...]]:
        """The arms that remain to each member."""
        return [member.remaining for member in self.members]

    def costs(self) -> Costs:
        return self.settings.baseline_costs()


class ServedFleet(Fleet):
    """The protocols: N players and the synchronization server."""

    def __init__(self, settings: Settings, rng: random.Random | None) -> None:
        task, aim = settings.task, settings.aim
        honest = [protocols.player(task, player, rng=rng) for player in range(task.players)]
        liars = [] if aim is None else [Liar(task, each, aim) for each in honest[: settings.liars]]
        super().__init__(settings, [*liars, *honest[len(liars) :]], math.inf)
        self._honest = honest
        self._rng = rng
        self.instances = max(1, len(task.instances))
        self.server = protocols.server(task)
        self.ledger = Ledger(task)

    def handle(self, player: int, messages: Sequence[UpMessage], draw: int, now: int | None = None) -> None:
        """The server counts messages; the time is the number of the draw where no other is told."""
        for message in messages:
            self.ledger.send_up(player, message)
            for elimination in self.server.receive(player, message, draw if now is None else now):
                self.ledger.send_down(elimination)
                self.announced.append(elimination)
                self.eliminations += [(arm, draw) for arm in elimination.arms]

    def restart(self, player: int, ticket: Ticket, now: int) -> None:
        """A site dies before the reward of its decision. It had saved its open groups when they were empty."""
        dying = self._honest[player]
        for group in dying.decisions.groups:
            if group.due is None or group.number == ticket.group:
                group.due = None
                for count in group.counts.values():
                    count.left, count.decided, count.total = count.left + count.decided, 0, 0.0
        revived = self.settings.task.entry.restore_player(self.settings.task, dying.snapshot(), self._rng)
        revived.resume(now, crashed=True)
        self._honest[player] = self.members[player] = revived

    @property
    def held(self) -> bool:
        return self.server.held

    def finished(self) -> bool:
        return self.server.finished

    def remaining_sets(self) -> list[tuple[int, ...]]:
        """What the server knows: players that have not been active since may not have heard of it yet."""
        return [self.server.remaining] * len(self.members)

    def costs(self) -> Costs:
        book = self.ledger
        return Costs(
            book.up_bits, book.down_bits, book.instance_bits, book.up_messages, book.down_messages, book.implied_bits
        )


def make_fleet(settings: Settings, rng: random.Random | None = None) -> Fleet:
    """A fresh fleet. Baselines take arms, players, ε and δ from the task and ignore the rest of it.

    `rng` is for what players draw themselves: the rounding of rewards and the noise of Tally.
    """
    baseline = BASELINES.get(settings.protocol)
    if baseline is None:
        return ServedFleet(settings, rng)
    task, options = settings.task, dict(baseline.parameters) | dict(settings.baseline_parameters)
    numbers = range(1 if baseline.shared else task.players)
    members = [Alone(baseline.player(task, number, rng, **options), len(task.arms)) for number in numbers]
    return Fleet(settings, members, 1 if baseline.shared else settings.active_players)
