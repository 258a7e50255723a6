"""One task at one site: its player, the state of its messages (new, stored, sent), and its snapshot.

No clock, no disk. Data from a server or from a disk is validated here before use.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from outvote.core import protocols
from outvote.core.errors import MalformedSnapshot
from outvote.core.messages import UpMessage
from outvote.core.task import Task
from outvote.log.catch_up import Count
from outvote.log.records import Coder
from outvote.log.site_report import LEAST, Notice, SiteReport, report_of

if TYPE_CHECKING:
    import random


class HostedTask:
    """One task at this site."""

    def __init__(self, task_id: str, task: Task, player: protocols.Player) -> None:
        self.task_id = task_id
        self.task = task
        self.player = player
        self.coder = Coder(task)
        self.indices = {name: index for index, name in enumerate(task.arms)}
        self.eliminations = 0
        """Eliminations applied so far: they are numbered, and applied in order."""
        self.announced: tuple[int, ...] = tuple(range(len(task.arms)))
        self.stopped = False
        self.killed = False
        """The kill switch is on: serve the fallback and learn nothing from it."""
        self.switches = 0
        """Known uses of the kill switch."""
        self.new: list[UpMessage] = []
        """Messages since the last save: not to be sent yet."""
        self.unsent: dict[int, bytes] = {}
        """Stored messages that the log has not acknowledged, by sequence. There may be gaps: a tally takes its sequence
        when it begins, and may be complete after a later one was sent."""
        self.kept = 0
        """Messages in the store."""
        self.highest = -1
        """The highest sequence in the store."""
        self.hundred_at: int | None = None
        """When this process first saw 100 decisions, in milliseconds: the time from which a reward is expected."""
        self.noticed: tuple[int, tuple[Notice, ...]] = (0, ())
        """What was last logged about its rewards."""
        self.dirty = False

    def report(self, now: int) -> SiteReport | None:
        """What this site has seen so far, for people; None while that is too little."""
        decisions = self.player.decisions
        if self.hundred_at is None and sum(decisions.seen.decisions) >= LEAST:
            self.hundred_at = now
        passed = self.hundred_at is not None and now > self.hundred_at + decisions.window
        return report_of(decisions, window_passed=passed)

    @property
    def waiting(self) -> int:
        """Messages still to be sent: a stopped task sends none."""
        return 0 if self.stopped else len(self.unsent) + len(self.new)

    def note_kept(self, messages: list[tuple[int, bytes]]) -> None:
        """Record that these messages are stored and can be sent."""
        self.unsent.update(messages)
        self.kept += len(messages)
        self.highest = max(self.highest, *(sequence for sequence, _ in messages), -1)

    @property
    def served(self) -> int:
        """The arm that a stopped or killed task serves: the declared fallback, else the first remaining arm. A stopped
        task with a winner serves the winner."""
        fallback = self.task.fallback
        if fallback is None or (self.stopped and len(self.announced) == 1):
            return self.announced[0]
        return self.task.arms.index(fallback)

    def switch(self, killed: bool, switches: int) -> bool:
        """Set the kill switch after its use number `switches`, and ignore older uses. Return whether it changed."""
        if switches < self.switches or (switches, killed) == (self.switches, self.killed):
            return False
        changed = killed != self.killed
        self.killed, self.switches, self.dirty = killed, switches, True
        return changed

    def eliminate(self, payload: bytes) -> None:
        message = self.coder.read_down(self.announced, payload)
        self.player.receive(message)
        self.announced = tuple(arm for arm in self.announced if arm not in message.arms)
        self.eliminations += 1
        self.dirty = True


# ---- the snapshot of a task


class Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The snapshot of a task."""

    player: dict[str, Any]
    eliminations: Count
    announced: tuple[int, ...]
    stopped: bool
    killed: bool
    switches: Count


_KEPT = tuple(name for name in Saved.__struct_fields__ if name != "player")
"""Attributes of a task that its snapshot has under the same names."""


def saved(hosted: HostedTask) -> str:
    """Return the snapshot of a task as JSON."""
    return json.dumps({"player": hosted.player.snapshot()} | {name: getattr(hosted, name) for name in _KEPT})


def restored(task_id: str, task: Task, text: str, rng: random.Random | None) -> HostedTask:
    """Restore a task from its snapshot. Raises `MalformedSnapshot` if it was cut or altered."""
    try:
        state = msgspec.convert(json.loads(text), Saved)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise MalformedSnapshot(f"the saved state of {task_id} was cut or altered: {error}") from None
    player = protocols.restore(task, state.player, rng=rng)
    if not hasattr(player, "decide"):
        raise MalformedSnapshot(f"the saved state of {task_id} is that of a server")
    if player.remaining != state.announced:
        left = f"variants {list(player.remaining)} are left, announced are {list(state.announced)}"
        raise MalformedSnapshot(f"the saved state of {task_id} was cut or altered: {left}")
    hosted = HostedTask(task_id, task, player)  # type: ignore[arg-type]  # it decides, so it is a player
    for name in _KEPT:
        setattr(hosted, name, getattr(state, name))
    return hosted
