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
from outvote.core.codes import fixed_width
from outvote.core.decisions import Decisions, Group, Ticket
from outvote.core.errors import MalformedMessage, UnknownArm, UnknownPlayer
from outvote.core.events import check_arm
from outvote.core.messages import Elimination, PlayerId, Vote
from outvote.core.task import Task
from outvote.simulation import register_protocol


def pulls_needed(task: Task) -> int:
    """What was asked for, or Hoeffding: all means of all players are within ε/2, with probability 1 − δ."""
    return int(task.parameters["pulls"]) or math.ceil(
        2 / task.epsilon**2 * math.log(2 * len(task.arms) * task.players / task.delta)
    )


class OneShotPlayer:
    """Plays arm after arm, a group of decisions each. When all are counted it votes, and then only serves."""

    key = "one-shot 1"  # another text whenever the code changes: stored results are known by it

    def __init__(self, task: Task, player: PlayerId, rng: random.Random | None = None) -> None:
        self.task = task
        self.player = player
        self.decisions = Decisions(len(task.arms), task.reward_window, rng)
        self._pulls = [0] * len(task.arms)
        self._totals = [0.0] * len(task.arms)
        self._gone: set[int] = set()
        self._voted: list[int] | None = None

    # what an application does

    def decide(self, now: int) -> Ticket:
        """The first arm that still lacks decisions; once none does, the best of those that remain."""
        group = next((group for group in self.decisions.groups if group.left), None) or self._open()
        if group is None:
            return Ticket.uncounted(max(self.remaining, key=self._mean))
        [arm] = group.counts
        return self.decisions.place(group, arm, now)

    def reward(self, ticket: Ticket, reward: float, now: int) -> None:
        self.decisions.reward(ticket, reward, now)

    def tick(self, now: int) -> Sequence[Vote]:
        """With the last decision counted come the votes: against every arm more than ε below the best, worst first."""
        for group in self.decisions.close_due(now):
            for arm, count in group.counts.items():
                self._pulls[arm] += count.decided
                self._totals[arm] += count.total
        if self._voted is not None or any(self._pulls[arm] < pulls_needed(self.task) for arm in self.remaining):
            return ()
        least = max(map(self._mean, self.remaining)) - self.task.epsilon
        self._voted = sorted((arm for arm in self.remaining if self._mean(arm) < least), key=self._mean)
        return [Vote(arm, sequence=number) for number, arm in enumerate(self._voted)]

    # what the network brings

    def receive(self, message: Elimination) -> None:
        """Only this takes an arm away, and never the last one. Again, or late, it changes nothing."""
        for arm in message.arms:
            check_arm(arm, len(self.task.arms))
        for arm in message.arms:
            if len(self.remaining) > 1:
                self._gone.add(arm)
        self.decisions.drop(self._gone)

    def resume(self, now: int, *, crashed: bool) -> None:
        self.decisions.resume(now, crashed=crashed)

    # what people ask

    @property
    def remaining(self) -> tuple[int, ...]:
        return tuple(arm for arm in range(len(self.task.arms)) if arm not in self._gone)

    def candidates(self, instance: int = 0) -> tuple[int, ...]:
        return tuple(arm for arm in self.remaining if arm not in (self._voted or ()))

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
            "pulls": list(self._pulls),
            "totals": [float(total) for total in self._totals],
            "gone": sorted(self._gone),
            "voted": self._voted,
            "decisions": self.decisions.snapshot(),
        }
        return snapshots.seal("player", self.task, state)

    @classmethod
    def restore(cls, task: Task, data: Mapping[str, Any], rng: random.Random | None = None) -> OneShotPlayer:
        record = snapshots.unseal(data, "player", task)
        player = cls(task, record["player"], rng)
        player._pulls, player._totals = list(record["pulls"]), list(record["totals"])
        player._gone, player._voted = set(record["gone"]), record["voted"]
        player.decisions.restore(record["decisions"], out=player._gone)
        return player

    # how it works

    def _open(self) -> Group | None:
        """A group of what an arm lacks; None if nothing does, or memory is full. A crash may have cut a group."""
        for arm in () if self.finished else self.remaining:
            counts = [group.counts[arm] for group in self.decisions.groups if arm in group.counts]
            lacks = pulls_needed(self.task) - self._pulls[arm] - sum(count.decided for count in counts)
            if lacks > 0:
                group = self.decisions.open({arm: lacks})
                self.decisions.uncounted += group is None
                return group
        return None

    def _mean(self, arm: int) -> float:
        return self._totals[arm] / self._pulls[arm] if self._pulls[arm] else 0.0


# ---- server
class OneShotServer(Announced):
    """One vote is enough: if all means are within ε/2, nobody votes against a best arm."""

    key = "one-shot 1"

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.refused = 0
        self._players: set[PlayerId] = set()

    def receive(self, player: PlayerId, message: Vote, at: int, *, incarnation: str = "") -> list[Elimination]:
        """Lost, repeated and overtaking votes do no harm: an arm falls once, and never the last one."""
        try:
            self._check(player, message)
        except (MalformedMessage, UnknownArm, UnknownPlayer):
            self.refused += 1
            raise
        self.time = at
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
        state = {"eliminated": self._eliminated, "players": players, "refused": self.refused, "time": self.time}
        return snapshots.seal("server", self.task, state)

    @classmethod
    def restore(cls, task: Task, data: Mapping[str, Any]) -> OneShotServer:
        record = snapshots.unseal(data, "server", task)
        server = cls(task)
        server._eliminated, server._players = list(record["eliminated"]), set(record["players"])
        server.refused, server.time = record["refused"], record["time"]
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
