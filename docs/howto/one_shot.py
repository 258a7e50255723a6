"""`one-shot`, the protocol of write-a-protocol.md: each site tries every variant often enough, then votes once.

The pieces below are shown in the guide; `tests/docs/test_write_a_protocol.py` runs them.
"""

# ---- player
from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from outvote.core import snapshots
from outvote.core.announced import Announced
from outvote.core.batches import ENDLESS, Batch, BatchBook
from outvote.core.codes import fixed_width
from outvote.core.errors import MalformedMessage, UnknownArm, UnknownPlayer
from outvote.core.events import check_arm, check_reward, find_batch, nothing_waits, take_closable
from outvote.core.messages import Elimination, PlayerId, Vote
from outvote.core.task import Task
from outvote.simulation import register_protocol


def pulls_needed(task: Task) -> int:
    """What was asked for, or Hoeffding: all means of all players are within ε/2, with probability 1 − δ."""
    return int(task.parameters["pulls"]) or math.ceil(
        2 / task.epsilon**2 * math.log(2 * len(task.arms) * task.players / task.delta)
    )


class OneShotPlayer:
    """Plays arm after arm, one batch each. When all batches are counted it votes, and then only serves."""

    key = "one-shot 1"  # another text whenever the code changes: stored results are known by it

    def __init__(self, task: Task, player: PlayerId, rng: random.Random | None = None) -> None:
        self.task = task
        self.player = player
        self.late_rewards = 0
        self.dropped_rewards = 0
        self._windowed = task.reward_window is not None
        self._book = BatchBook()
        self._means: dict[int, float] = {}
        self._gone: set[int] = set()
        self._voted: set[int] = set()
        self._full: list[int] = []
        self._batches = [self._book.open(arm, pulls_needed(task)) for arm in range(len(task.arms))]
        self._served: Batch | None = None

    # what an application does

    def decide(self) -> tuple[int, int]:
        """The first arm that still lacks decisions; once none does, the best of those that remain."""
        for batch in self._batches:
            if batch.left and batch.arm not in self._gone:
                return self._play(batch)
        best = max(self.remaining, key=lambda arm: self._means.get(arm, 0.0))
        if self._served is None or self._served.arm != best:
            self._served = self._book.open(best, ENDLESS)
        return self._play(self._served)

    def expose(self, arm: int) -> int | None:
        """A decision for this very arm, made elsewhere; None if nothing is left to learn of it."""
        check_arm(arm, len(self.task.arms))
        batch = self._batches[arm]
        return self._play(batch)[1] if batch.left and arm not in self._gone else None

    def reward(self, arm: int, reward: float, *, ticket: int | None = None) -> Sequence[Vote]:
        """Without a reward window a batch is counted when its last answer comes."""
        check_arm(arm, len(self.task.arms))
        check_reward(reward)
        if arm in self._gone:
            self.late_rewards += 1
            return ()
        batch = self._book.by_ticket.get(ticket)
        if batch is None or batch.arm != arm:
            batch = find_batch(self._book, arm, ticket, windowed=self._windowed)
            if batch is None:  # it has closed
                self.dropped_rewards += 1
                return ()
        if not batch.waiting:
            raise nothing_waits(arm, ticket)
        batch.waiting -= 1
        batch.total += reward
        if self._windowed or batch.left or batch.waiting:
            return ()
        del self._book.by_ticket[batch.ticket]
        return self._count(batch)

    def take_full(self) -> list[int]:
        """Batches that had their last decision since the last call: whoever runs us closes them a window later."""
        full, self._full = self._full, []
        return full

    def close(self, ticket: int) -> Sequence[Vote]:
        """The window has passed: what was not answered counts 0."""
        batch = take_closable(self._book, ticket, windowed=self._windowed)
        return () if batch is None else self._count(batch)

    # what the network brings

    def receive(self, message: Elimination) -> None:
        """Only this takes an arm away, and never the last one. Again, or late, it changes nothing."""
        for arm in message.arms:
            check_arm(arm, len(self.task.arms))
            if len(self.remaining) > 1:
                self._gone.add(arm)
        self._book.discard(self._gone)
        if self._served is not None and self._served.arm in self._gone:
            self._served = None

    # what people ask

    @property
    def remaining(self) -> tuple[int, ...]:
        return tuple(arm for arm in range(len(self.task.arms)) if arm not in self._gone)

    def candidates(self, instance: int = 0) -> tuple[int, ...]:
        return tuple(arm for arm in self.remaining if arm not in self._voted)

    @property
    def finished(self) -> bool:
        return len(self.candidates()) == 1

    @property
    def status(self) -> str:
        return "finished" if self.finished else "exploring"

    # snapshots: a few numbers per arm, no event

    def snapshot(self) -> dict[str, Any]:
        state = {
            "player": self.player,
            "means": [[arm, mean] for arm, mean in self._means.items()],
            "gone": sorted(self._gone),
            "voted": sorted(self._voted),
            "served": None if self._served is None else self._served.ticket,
            "batches": self._book.snapshot(),
            "next_ticket": self._book.next_ticket,
            "late_rewards": self.late_rewards,
            "dropped_rewards": self.dropped_rewards,
        }
        return snapshots.seal("player", self.task, state)

    @classmethod
    def restore(cls, task: Task, data: Mapping[str, Any], rng: random.Random | None = None) -> OneShotPlayer:
        record = snapshots.unseal(data, "player", task)
        player = cls(task, record["player"])
        player._means = {arm: mean for arm, mean in record["means"]}
        player._gone, player._voted = set(record["gone"]), set(record["voted"])
        player.late_rewards, player.dropped_rewards = record["late_rewards"], record["dropped_rewards"]
        player._book.restore(record["batches"], record["next_ticket"])
        open_batches = player._book.by_ticket
        player._batches = [open_batches.get(arm, _done(arm)) for arm in range(len(task.arms))]
        player._served = open_batches.get(record["served"])
        if player._windowed:  # named again, until they are closed
            player._full = [batch.ticket for batch in open_batches.values() if not batch.left]
        return player

    # how it works

    def _play(self, batch: Batch) -> tuple[int, int]:
        batch.waiting += 1
        batch.left -= 1
        if not batch.left and self._windowed:
            self._full.append(batch.ticket)
        return batch.answer

    def _count(self, batch: Batch) -> Sequence[Vote]:
        """With the last mean come the votes: against every arm that is more than ε below the best, worst first."""
        self._means[batch.arm] = batch.total / batch.size
        means = {arm: mean for arm, mean in self._means.items() if arm not in self._gone}
        if self._voted or set(means) != set(self.remaining):
            return ()
        worse = [arm for arm in means if means[arm] < max(means.values()) - self.task.epsilon]
        self._voted = set(worse)
        worse.sort(key=lambda arm: means[arm])
        return [Vote(arm, sequence=number) for number, arm in enumerate(worse)]


def _done(arm: int) -> Batch:
    """The batch of an arm that was counted, or is gone: the first ticket of an arm is its index."""
    batch = Batch(arm, arm, 1)
    batch.left = 0
    return batch


# ---- server
class OneShotServer(Announced):
    """One vote is enough: if all means are within ε/2, nobody votes against a best arm."""

    key = "one-shot 1"

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.refused = 0
        self._players: set[PlayerId] = set()

    def receive(self, player: PlayerId, message: Vote, *, incarnation: str = "") -> list[Elimination]:
        """Lost, repeated and overtaking votes do no harm: an arm falls once, and never the last one."""
        try:
            self._check(player, message)
        except (MalformedMessage, UnknownArm, UnknownPlayer):
            self.refused += 1
            raise
        self._players.add(player)
        if message.arm in self._eliminated or len(self.remaining) == 1:
            return []
        self._eliminated.append(message.arm)
        return [Elimination((message.arm,))]

    @property
    def finished(self) -> bool:
        return len(self.remaining) == 1

    def snapshot(self) -> dict[str, Any]:
        players = sorted(self._players, key=str)
        state = {"eliminated": self._eliminated, "players": players, "refused": self.refused}
        return snapshots.seal("server", self.task, state)

    @classmethod
    def restore(cls, task: Task, data: Mapping[str, Any]) -> OneShotServer:
        record = snapshots.unseal(data, "server", task)
        server = cls(task)
        server._eliminated, server._players = list(record["eliminated"]), set(record["players"])
        server.refused = record["refused"]
        return server

    def _check(self, player: PlayerId, message: Vote) -> None:
        if not isinstance(message, Vote):
            raise MalformedMessage(f"this server counts votes, got {message!r}")
        check_arm(message.arm, len(self.task.arms))
        named = self.task.player_names
        if (named and player not in named) or len(self._players | {player}) > self.task.players:
            raise UnknownPlayer(f"player {player!r} is none of the {self.task.players} that the task declared")


# ---- entry
def bits_bound(task: Task, draws: int | None) -> int:
    """Each of N players votes against K − 1 arms at most; each of those falls once, and N players are told."""
    arms = len(task.arms)
    return 2 * task.players * (arms - 1) * fixed_width(arms)


def register() -> None:
    """From here on `Task` and `simulate` know it."""
    register_protocol(
        "one-shot",
        summary="one-shot: try everything, then vote once",
        player=OneShotPlayer,
        server=OneShotServer,
        restore_player=OneShotPlayer.restore,
        restore_server=OneShotServer.restore,
        parameters={"pulls": 0},
        bits_bound=bits_bound,
    )
