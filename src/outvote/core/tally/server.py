"""The Tally server: it pools what sites report of each arm, weighs the evidence, and announces who is left.

It announces when at most half of the arms it last announced are left, or one: an announcement goes to every player.
Before it does, it asks whether all sites see the same means. Where they do not, pooling can mislead, and the decision
is held back until they agree, or a person decides. Where sites may lie it does not pool, and does not ask.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from outvote.core import snapshots
from outvote.core.announced import Announced
from outvote.core.errors import MalformedMessage, UnknownArm, UnknownPlayer
from outvote.core.events import is_index
from outvote.core.messages import Elimination, PlayerId, Tally
from outvote.core.tally.confidence import Outbid, interval, outbid
from outvote.core.tally.cycle import Cycle
from outvote.core.tally.evidence import Evidence, log_thresholds
from outvote.core.tally.guarded import GuardedEvidence
from outvote.core.tally.homogeneity import Cell, Homogeneity
from outvote.core.tally.lift import Lift, lift
from outvote.core.task import MAX_COUNT, Task


class TallyServer(Announced):
    """Counts every tally once and announces survivors; never the last arm's end."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.duplicates = 0
        """Tallies received again: harmless, counted for the operator."""
        self.refused = 0
        """Messages refused with an error: each is a fault or an attack."""
        self.late = 0
        """Tallies that came when their arm was refuted already, or all others were: nothing depends on them."""
        self._cycle = Cycle(task)
        self._sizes = task.tally_sizes
        self._names = frozenset(task.player_names)
        self._evidence: Evidence | GuardedEvidence = GuardedEvidence(task) if task.tolerate else Evidence(task)
        self._homogeneity = Homogeneity(task)
        self._seen: dict[tuple[PlayerId, str], set[int]] = {}
        self._counts = [{size: [0] * (size + 1) for size in task.tally_sizes} for _ in task.arms]
        self._outbids: dict[int, Outbid] = {}
        """What people asked for since an arm's last tally: one arm is in many lifts."""

    def receive(self, player: PlayerId, message: Tally, at: int, *, incarnation: str = "") -> list[Elimination]:
        """A tally arrives; returns the elimination to broadcast, if there is one.

        `incarnation` tells apart the lives of a player that lost its memory: each starts its cycle again.
        """
        try:
            self._check(player, message)
        except (MalformedMessage, UnknownArm, UnknownPlayer):
            self.refused += 1
            raise
        self.time = at
        seen = self._seen.setdefault((player, incarnation), set())
        if message.sequence in seen:
            self.duplicates += 1
            return []
        seen.add(message.sequence)
        self._counts[message.arm][message.trials][message.successes] += 1
        self._outbids.pop(message.arm, None)
        contenders = self._evidence.contenders
        if message.arm not in contenders or len(contenders) == 1:
            self.late += 1
            self._homogeneity.add(player, message.arm, message.trials, message.successes)
            return self._announce()
        for used in self._evidence.add(player, message.arm, message.trials, message.successes):
            self._homogeneity.add(*used)
        return self._announce()

    # ---- what the fleet knows

    def adopt(self, eliminated: Sequence[int]) -> list[Elimination]:
        self._evidence.withdraw(eliminated)
        return super().adopt(eliminated)

    @property
    def contenders(self) -> tuple[int, ...]:
        """The arms that may still be best: some may be refuted and not announced yet."""
        return tuple(self._evidence.contenders)

    @property
    def finished(self) -> bool:
        """One arm remains."""
        return len(self.remaining) == 1

    @property
    def held(self) -> bool:
        """The sites differ: nothing is announced until they agree. See `hold_reason`."""
        return self._homogeneity.held

    @property
    def hold_reason(self) -> str | None:
        """Why nothing more is announced, for the operator."""
        if not self.held:
            return None
        return (
            f"the sites' results differ by {self._homogeneity.score():.1f} standard deviations more than chance "
            f"allows (held at a false-alarm rate of {self._homogeneity.level:.2g} a look): an arm may not be worth "
            "the same at every site. If more events do not bring the sites together, decide by hand, or start a task "
            "for each group of sites that agree"
        )

    @property
    def disagreement(self) -> float:
        """By how many standard deviations more than chance allows the sites' results differed, at the last glance.

        For people, before a decision is due: large where one would be held back.
        """
        return self._homogeneity.glance()

    @property
    def status(self) -> str:
        """`finished`, `held` or `exploring`."""
        return "finished" if self.finished else "held" if self.held else "exploring"

    def trials(self, arm: int) -> int:
        """Events of an arm that were reported."""
        return sum(size * sum(often) for size, often in self._counts[arm].items())

    def successes(self, arm: int) -> int:
        """Successes of an arm that were reported: noisy, with a privacy budget."""
        return sum(z * count for often in self._counts[arm].values() for z, count in enumerate(often))

    @property
    def unanimous(self) -> int:
        """Tallies in which none or all succeeded: without noise they tell what each of their events earned."""
        return sum(often[0] + often[-1] for counts in self._counts for often in counts.values())

    @property
    def reported(self) -> tuple[int, int]:
        return sum(self.trials(arm) for arm in range(len(self.task.arms))), self.unanimous

    def evidence_share(self, arm: int) -> float:
        """How much of the evidence is in that refutes an arm: from 0, and 1 when it is refuted."""
        needed, _ = log_thresholds(self.task)
        return min(max(self.log_evidence(arm) / needed, 0.0), 1.0)

    def log_evidence(self, arm: int) -> float:
        """The logarithm of the evidence against an arm: at ln(1/δ) it is refuted (ln(2/δ) where ε > 0)."""
        return self._evidence.accounts[arm].log_wealth

    def mean(self, arm: int) -> float | None:
        """The arm's likeliest mean, None before the first report: the share of successes, but for noise."""
        found = self._outbid(arm)
        return found.best if found.known else None

    def interval(self, arm: int) -> tuple[float, float]:
        """The arm's mean lies in here, for all arms and at all times together, with probability 1 − δ at least.

        It believes every site, whatever the task tolerates: for people, who know whom to ask. So does `lift`.
        """
        return interval(self._outbid(arm), math.log(2 * len(self.task.arms) / self.task.delta))

    def lift(self, arm: int, rival: int) -> Lift:
        """By how much an arm is better than its rival: for all pairs and at all times together with 1 − δ at least."""
        if arm == rival:
            raise UnknownArm(f"a lift is of one arm over another, got arm {arm!r} twice")
        arms = len(self.task.arms)
        return lift(self._outbid(arm), self._outbid(rival), math.log(arms * (arms - 1) / 2 / self.task.delta))

    # ---- snapshots

    def snapshot(self) -> dict[str, Any]:
        """The whole state in plain JSON types."""
        state = {
            "eliminated": list(self._eliminated),
            "time": self.time,
            "hold": [self._homogeneity.held, self._homogeneity.tallies, self._homogeneity.next_look],
            "evidence": self._evidence.snapshot(),
            "cells": [
                [[player, cell.successes, list(cell.tallies)] for player, cell in cells.items()]
                for cells in self._homogeneity.cells
            ],
            "seen": [[player, incarnation, sorted(seen)] for (player, incarnation), seen in self._seen.items()],
            "counts": [[[size, list(often)] for size, often in counts.items()] for counts in self._counts],
            "duplicates": self.duplicates,
            "refused": self.refused,
            "late": self.late,
        }
        return snapshots.seal("server", self.task, state)

    @classmethod
    def restore(cls, task: Task, data: Mapping[str, Any]) -> TallyServer:
        """The server that `snapshot` was taken of; a snapshot that is not whole is refused."""
        record = snapshots.unseal(data, "server", task)
        server = cls(task)
        server._eliminated = list(record["eliminated"])
        server.time = record["time"]
        sites = server._homogeneity
        sites.held, sites.tallies, sites.next_look = record["hold"]
        server._evidence.restore(record["evidence"])
        for cells, rows in zip(sites.cells, record["cells"], strict=True):
            for player, successes, tallies in rows:
                cells[player] = Cell(successes, list(tallies))
        server._seen = {(player, incarnation): set(seen) for player, incarnation, seen in record["seen"]}
        server._counts = [{size: list(often) for size, often in counts} for counts in record["counts"]]
        server.duplicates, server.refused, server.late = record["duplicates"], record["refused"], record["late"]
        return server

    # ---- how it works

    def _outbid(self, arm: int) -> Outbid:
        if arm not in self._outbids:
            self._outbids[arm] = outbid(list(self._counts[arm].items()), self.task.privacy_budget)
        return self._outbids[arm]

    def _announce(self) -> list[Elimination]:
        """The survivors, once they are worth a message, if the sites agree."""
        left = self._evidence.contenders
        if 2 * len(left) > len(self.task.arms) - len(self._eliminated):
            return []
        # Where sites may lie, each is compared with itself alone: they need not agree, and none can hold a decision.
        if not self.task.tolerate and not self._homogeneity.agree():
            return []
        fallen = tuple(arm for arm in self.remaining if arm not in left)
        self._eliminated += fallen
        return [Elimination(fallen)]

    def _check(self, player: PlayerId, tally: Tally) -> None:
        if (
            type(tally) is Tally
            and type(tally.arm) is type(tally.trials) is type(tally.successes) is type(tally.sequence) is int
            and 0 <= tally.successes <= tally.trials
            and tally.trials in self._sizes
            and 0 <= tally.sequence < MAX_COUNT
            and (not self._names or player in self._names)
            and tally.arm == self._cycle.arm(player, tally.sequence)
        ):
            return  # nearly all are sound, and a server reads millions; what follows says why one is not
        if not isinstance(tally, Tally):
            raise MalformedMessage(f"this server counts tallies, got {tally!r}")
        if not is_index(tally.arm, len(self.task.arms)):
            raise UnknownArm.of(tally.arm, len(self.task.arms))
        sizes = self._sizes
        whole = is_index(tally.trials, sizes[-1] + 1) and tally.trials in sizes
        if not whole or not is_index(tally.successes, tally.trials + 1):
            raise MalformedMessage(
                f"a tally has {', '.join(map(str, sizes))} trials and at most as many successes, "
                f"got {tally.successes!r} of {tally.trials!r}"
            )
        if not is_index(tally.sequence, MAX_COUNT):
            raise MalformedMessage(f"a sequence number is a whole number of at least 0, got {tally.sequence!r}")
        if self._names and player not in self._names:
            raise UnknownPlayer(f"unknown player: got {player!r}, declared are {list(self.task.player_names)}")
        expected = self._cycle.arm(player, tally.sequence)
        if tally.arm != expected:
            raise MalformedMessage(
                f"place {tally.sequence} in the cycle of player {player!r} is arm {expected}, got arm {tally.arm}"
            )
