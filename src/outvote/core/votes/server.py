"""The vote-counting server of Algorithms 3 and 4. It knows votes and nothing else: no reward, no mean, no time.

A player's votes are applied in the order in which it sent them, worst arm first. Were they applied as they arrive, a
player's vote against a good arm could count before its vote against a bad one.

Where f players may lie, an arm falls with f votes more, and not before the arms that all but f of its voters dropped
before it (docs/liars.md): f votes are enough to make a quorum of those who dropped worse arms first, and would leave
these behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from outvote.core import snapshots
from outvote.core.announced import Announced
from outvote.core.errors import MalformedMessage, UnknownArm, UnknownPlayer
from outvote.core.events import is_index
from outvote.core.messages import Elimination, PlayerId, Vote
from outvote.core.task import Task


class Stream:
    """The votes of one life of one player: those before `expected` are applied, later ones are held until it comes."""

    __slots__ = ("expected", "held")

    def __init__(self) -> None:
        self.expected = 0
        self.held: dict[int, Vote] = {}


class VoteServer(Announced):
    """Counts distinct (player, arm) in each instance and announces an arm once, at quorum; never the last one."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.duplicates = 0
        """Votes received again: harmless, counted for the operator."""
        self.refused = 0
        """Messages refused with an error: each is a fault or an attack."""
        self._quorums = task.quorums
        self._counts = [[0] * len(task.arms) for _ in task.instances]
        self._votes: dict[PlayerId, list[dict[int, None]]] = {}
        """By player and instance: the arms that it voted against, in order."""
        self._finished: list[set[PlayerId]] = [set() for _ in task.instances]
        self._streams: dict[tuple[PlayerId, str], Stream] = {}

    def receive(self, player: PlayerId, message: Vote, at: int, *, incarnation: str = "") -> list[Elimination]:
        """A vote arrives; returns the eliminations to broadcast (Algorithm 3, lines 13 to 18).

        `incarnation` tells apart the lives of a player that lost its memory: each numbers its votes from 0 again.
        """
        try:
            self._check(player, message)
        except (MalformedMessage, UnknownArm, UnknownPlayer):
            self.refused += 1
            raise
        self.time = at
        self._votes.setdefault(player, [{} for _ in self.task.instances])
        stream = self._streams.setdefault((player, incarnation), Stream())
        if message.sequence < stream.expected or message.sequence in stream.held:
            self.duplicates += 1
            return []
        stream.held[message.sequence] = message
        announced: list[Elimination] = []
        while stream.expected in stream.held:
            vote = stream.held.pop(stream.expected)
            stream.expected += 1
            announced += [Elimination((arm,)) for arm in self._count(player, vote)]
        self._note_finished(self._votes if announced else (player,))
        return announced

    # ---- what the fleet knows

    def adopt(self, eliminated: Sequence[int]) -> list[Elimination]:
        """What it has eliminated besides stays so, as long as an arm is left."""
        before = self._eliminated
        announced = super().adopt(eliminated)
        for arm in before:
            if arm not in self._eliminated and len(self._eliminated) < len(self.task.arms) - 1:
                self._eliminated.append(arm)
        if self.task.tolerate:
            announced += [Elimination((arm,)) for arm in self._fall()]  # they waited for what others have eliminated
        self._finished = [set() for _ in self.task.instances]
        self._note_finished(self._votes)
        return announced

    @property
    def finished(self) -> bool:
        """One arm remains, or in some instance N_γ players have at most one candidate (Remark 1), and those that may
        only pretend so."""
        return len(self.remaining) == 1 or any(
            self.finished_players(index) >= active + self.task.tolerate
            for index, active in enumerate(self.task.instances)
        )

    def votes(self, arm: int, instance: int = 0) -> int:
        """Σ_n λ^n_k."""
        return self._counts[instance][arm]

    def candidates(self, player: PlayerId, instance: int = 0) -> tuple[int, ...]:
        """What a player has left: its votes and the eliminations tell, no message is needed."""
        voted = self._votes[player][instance] if player in self._votes else ()
        return tuple(arm for arm in self.remaining if arm not in voted)

    def finished_players(self, instance: int = 0) -> int:
        """Players whose votes leave them at most one candidate."""
        return len(self._finished[instance])

    # ---- snapshots

    def snapshot(self) -> dict[str, Any]:
        """The whole state in plain JSON types."""
        state = {
            "eliminated": list(self._eliminated),
            "time": self.time,
            "votes": [[player, [self._kept(arms) for arms in voted]] for player, voted in self._votes.items()],
            "streams": [
                [player, incarnation, stream.expected, [[v.sequence, v.arm, v.instance] for v in stream.held.values()]]
                for (player, incarnation), stream in self._streams.items()
            ],
            "duplicates": self.duplicates,
            "refused": self.refused,
        }
        return snapshots.seal("server", self.task, state)

    @classmethod
    def restore(cls, task: Task, data: Mapping[str, Any]) -> VoteServer:
        """The server that `snapshot` was taken of; a snapshot that is not whole is refused."""
        record = snapshots.unseal(data, "server", task)
        server = cls(task)
        server._eliminated = list(record["eliminated"])
        server.time = record["time"]
        server.duplicates, server.refused = record["duplicates"], record["refused"]
        for player, voted in record["votes"]:
            server._votes[player] = [dict.fromkeys(arms) for arms in voted]
            for counts, arms in zip(server._counts, voted, strict=True):
                for arm in arms:
                    counts[arm] += 1
        for player, incarnation, expected, held in record["streams"]:
            stream = server._streams[player, incarnation] = Stream()
            stream.expected = expected
            stream.held = {sequence: Vote(arm, instance, sequence) for sequence, arm, instance in held}
        server._note_finished(server._votes)
        return server

    # ---- how it works

    def _count(self, player: PlayerId, vote: Vote) -> list[int]:
        """Count a vote once, and say which arms it eliminates: its own, or none; more where arms have waited for it."""
        voted = self._votes[player][vote.instance]
        if vote.arm in voted:
            return []
        voted[vote.arm] = None
        counts = self._counts[vote.instance]
        counts[vote.arm] += 1
        if self.task.tolerate:
            return list(self._fall())
        if (
            vote.arm in self._eliminated
            or len(self._eliminated) == len(self.task.arms) - 1
            or counts[vote.arm] < self._quorums[vote.instance]
        ):
            return []
        self._eliminated.append(vote.arm)
        return [vote.arm]

    def _fall(self) -> Iterator[int]:
        """Eliminate what has the votes and waits for nothing, as long as there is such an arm."""
        while len(self._eliminated) < len(self.task.arms) - 1:
            fallen = next((arm for arm in self.remaining if self._may_fall(arm)), None)
            if fallen is None:
                return
            self._eliminated.append(fallen)
            yield fallen

    def _may_fall(self, arm: int) -> bool:
        return any(
            counts[arm] >= quorum and not self._waits(arm, instance)
            for instance, (counts, quorum) in enumerate(zip(self._counts, self._quorums, strict=True))
        )

    def _waits(self, arm: int, instance: int) -> bool:
        """Whether there is an arm still that all but f of this one's voters dropped before it."""
        before = [0] * len(self.task.arms)
        for voted in self._votes.values():
            if arm in voted[instance]:
                for other in voted[instance]:
                    if other == arm:
                        break
                    before[other] += 1
        enough = self._counts[instance][arm] - self.task.tolerate
        return any(before[other] >= enough for other in self.remaining if other != arm)

    def _kept(self, voted: Mapping[int, None]) -> list[int]:
        """In a snapshot: in order where the order matters."""
        return list(voted) if self.task.tolerate else sorted(voted)

    def _note_finished(self, players: Iterable[PlayerId]) -> None:
        """These players may have finished: their votes, or an elimination, took candidates from them."""
        for index, finished in enumerate(self._finished):
            finished.update(player for player in players if len(self.candidates(player, index)) <= 1)

    def _check(self, player: PlayerId, vote: Vote) -> None:
        if not isinstance(vote, Vote):
            raise MalformedMessage(f"this server counts votes, got {vote!r}")
        if not is_index(vote.arm, len(self.task.arms)):
            raise UnknownArm.of(vote.arm, len(self.task.arms))
        if not is_index(vote.instance, len(self.task.instances)):
            raise MalformedMessage(
                f"unknown instance: got {vote.instance!r}, allowed is 0 to {len(self.task.instances) - 1}"
            )
        most = len(self.task.instances) * (len(self.task.arms) - 1)  # a player keeps at least one arm in each instance
        if not is_index(vote.sequence, most):
            raise MalformedMessage(f"a player votes at most {most} times, got a vote with sequence {vote.sequence!r}")
        if self.task.player_names:
            if player not in self.task.player_names:
                raise UnknownPlayer(f"unknown player: got {player!r}, declared are {list(self.task.player_names)}")
        elif player not in self._votes and len(self._votes) >= self.task.players:
            raise UnknownPlayer(
                f"player {player!r} is one more than the {self.task.players} that the task declared: "
                "more voters would break its guarantee"
            )
