"""The server of `blocks`: each block is one bet of every arm against every other, and an arm falls when the mean of the
bets against it has grown 1/δ fold.

Sites may differ, drift and come in any order: arms are compared only within a block. docs/blocks.md has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from outvote.core import snapshots
from outvote.core.announced import Announced
from outvote.core.blocks.bets import STAKES, log_factors, log_mean
from outvote.core.blocks.code import check_counts
from outvote.core.errors import MalformedMessage, UnknownPlayer
from outvote.core.events import is_index
from outvote.core.messages import Block, Elimination, PlayerId
from outvote.core.task import MAX_COUNT, Task

FEW: Final = 4
"""With so many arms or fewer every refuted arm is announced at once."""


class BlockServer(Announced):
    """Counts every block once and announces survivors; never the last arm's end."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        arms = range(len(task.arms))
        self.duplicates = 0
        """Blocks received again: harmless, counted for the operator."""
        self.refused = 0
        """Messages refused with an error: each is a fault or an attack."""
        self.blocks = 0
        """Blocks that count."""
        assert task.floor is not None
        self._floor = task.floor
        self._names = frozenset(task.player_names)
        self._seen: dict[tuple[PlayerId, str], set[int]] = {}
        self._logs = [[[0.0] * len(STAKES) for _ in arms] for _ in arms]
        """By suspect and rival: the logarithm of what each stake has grown to."""
        self._contenders = set(arms)
        """The arms that are not refuted; some others are not announced yet."""
        self._history = [tuple(arms)]
        """The arms that remained, by the number of eliminations."""
        self._waiting = 0
        """Blocks since the last announcement."""
        self._sums = [0.0 for _ in arms]
        self._weight = 0
        """For the leader: Σ m·s/n of each arm and Σ m, m the smallest count of a block."""

    def receive(self, player: PlayerId, message: Block, at: int, *, incarnation: str = "") -> list[Elimination]:
        """A block arrives; returns the eliminations to broadcast.

        `incarnation` tells apart the lives of a player that lost its memory: each numbers its blocks anew.
        """
        try:
            self._check(player, message)
        except (MalformedMessage, UnknownPlayer):
            self.refused += 1
            raise
        self.time = at
        seen = self._seen.setdefault((player, incarnation), set())
        if message.number in seen:
            self.duplicates += 1
            return []
        seen.add(message.number)
        self.blocks += 1
        self._waiting += 1
        remaining = set(self._history[-1])
        told = zip(self._history[message.heard], message.counts, strict=True)
        counts = {arm: count for arm, count in told if count[0] and arm in remaining}
        self._bet(counts)
        self._note_leader(counts)
        self._refute(counts)
        return self._announce()

    # ---- what the fleet knows

    @property
    def contenders(self) -> tuple[int, ...]:
        """The arms that may still be best: some may be refuted and not announced yet."""
        return tuple(sorted(self._contenders))

    @property
    def finished(self) -> bool:
        """One arm remains."""
        return len(self.remaining) == 1

    @property
    def status(self) -> str:
        """`finished` or `exploring`."""
        return "finished" if self.finished else "exploring"

    @property
    def leader(self) -> int | None:
        """The remaining arm with the largest mean over blocks that had all remaining arms; None before the first."""
        if not self._weight:
            return None
        return max(self.remaining, key=lambda arm: (self._sums[arm], -arm))

    def log_wealth(self, arm: int) -> float:
        """The logarithm of the evidence against an arm: it is refuted at ln(1/δ)."""
        rivals = [self._log_mean(arm, rival) for rival in range(len(self.task.arms)) if rival != arm]
        return log_mean(rivals, [1 / len(rivals)] * len(rivals))

    def adopt(self, eliminated: Sequence[int]) -> list[Elimination]:
        """Take over what was really announced; see `Announced.adopt`."""
        due = super().adopt(eliminated)
        left = self.remaining
        self._history = [before for before in self._history if set(before) >= set(left)]
        if self._history[-1] != left:
            self._note_announced()
        self._contenders &= set(left)
        if not self._contenders:  # all that are left had been refuted
            self._contenders = {min(left, key=self.log_wealth)}
        return due

    # ---- snapshots

    def snapshot(self) -> dict[str, Any]:
        """The whole state in plain JSON types."""
        state = {
            "eliminated": list(self._eliminated),
            "time": self.time,
            "blocks": self.blocks,
            "logs": self._logs,
            "contenders": list(self.contenders),
            "history": [list(remaining) for remaining in self._history],
            "waiting": self._waiting,
            "sums": self._sums,
            "weight": self._weight,
            "seen": [[*life, sorted(numbers)] for life, numbers in self._seen.items()],
            "duplicates": self.duplicates,
            "refused": self.refused,
        }
        return snapshots.seal("server", self.task, state)

    @classmethod
    def restore(cls, task: Task, data: Mapping[str, Any]) -> BlockServer:
        """The server that `snapshot` was taken of; a snapshot that is not whole is refused."""
        record = snapshots.unseal(data, "server", task)
        server = cls(task)
        server._eliminated = list(record["eliminated"])
        server.time, server.blocks, server._waiting = record["time"], record["blocks"], record["waiting"]
        server._logs = [[list(stakes) for stakes in rivals] for rivals in record["logs"]]
        server._contenders = set(record["contenders"])
        server._history = [tuple(remaining) for remaining in record["history"]]
        server._sums, server._weight = list(record["sums"]), record["weight"]
        server._seen = {(player, life): set(numbers) for player, life, numbers in record["seen"]}
        server.duplicates, server.refused = record["duplicates"], record["refused"]
        return server

    # ---- how it works

    def _check(self, player: PlayerId, message: Block) -> None:
        if not isinstance(message, Block) or not is_index(message.number, MAX_COUNT):
            raise MalformedMessage(f"this server counts blocks, got {message!r}")
        if self._names and player not in self._names:
            raise UnknownPlayer(f"unknown player: got {player!r}")
        if not self._names and not is_index(player, self.task.players):
            raise UnknownPlayer(f"unknown player: got {player!r}, allowed is 0 to {self.task.players - 1}")
        if not is_index(message.heard, len(self._history)):
            known = len(self._history) - 1
            raise MalformedMessage(f"a block has heard of {message.heard!r} eliminations, there were {known}")
        arms = self._history[message.heard]
        if len(message.counts) != len(arms):
            raise MalformedMessage(f"a block has a count for each of {len(arms)} arms, got {len(message.counts)}")
        check_counts(message, self._floor)

    def _bet(self, counts: Mapping[int, tuple[int, int]]) -> None:
        """Every arm of the block against every other one that was still a suspect or a rival."""
        arms = list(counts)
        for place, arm in enumerate(arms):
            for rival in arms[place + 1 :]:
                against_arm, against_rival = log_factors(*counts[arm], *counts[rival])
                for logs, paid in (
                    (self._logs[arm][rival], against_arm),
                    (self._logs[rival][arm], against_rival),
                ):
                    for stake, value in enumerate(paid):
                        logs[stake] += value

    def _note_leader(self, counts: Mapping[int, tuple[int, int]]) -> None:
        remaining = self._history[-1]
        if not all(arm in counts for arm in remaining):
            return
        smallest = min(decided for decided, _ in counts.values())
        self._weight += smallest
        for arm, (decided, successes) in counts.items():
            self._sums[arm] += smallest * successes / decided

    def _refute(self, counts: Mapping[int, tuple[int, int]]) -> None:
        """Those that cross with this block, the wealthiest first; the last arm stays."""
        needed = -math.log(self.task.delta)
        wealth = {arm: self.log_wealth(arm) for arm in counts if arm in self._contenders}
        for arm in sorted(wealth, key=lambda arm: (-wealth[arm], arm)):
            if wealth[arm] >= needed and len(self._contenders) > 1:
                self._contenders.discard(arm)

    def _announce(self) -> list[Elimination]:
        remaining = self._history[-1]
        gone = tuple(arm for arm in remaining if arm not in self._contenders)
        if not gone:
            return []
        left = len(remaining) - len(gone)
        half = 2 * left <= len(remaining)
        heard_of_all = self._waiting >= len({player for player, _ in self._seen})
        if not (len(remaining) <= FEW or left == 1 or half or heard_of_all):
            return []
        self._eliminated += gone
        self._note_announced()
        return [Elimination(gone)]

    def _note_announced(self) -> None:
        self._history.append(self.remaining)
        self._waiting = 0

    def _log_mean(self, suspect: int, rival: int) -> float:
        return log_mean(self._logs[suspect][rival])
