"""One task at one site: its player, what of its messages is saved, sent and in the log, what is told and kept of it.

No clock, no disk. What comes from a server or from a disk is checked here before anything is done with it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from outvote.core import protocols
from outvote.core.errors import MalformedSnapshot
from outvote.core.messages import UpMessage
from outvote.core.task import Task
from outvote.log.records import Coder

if TYPE_CHECKING:
    import random

Number = Annotated[int, msgspec.Meta(ge=0, le=10**16)]


class HostedTask:
    """One task at this site."""

    def __init__(self, task_id: str, task: Task, player: protocols.Player) -> None:
        self.task_id = task_id
        self.task = task
        self.player = player
        self.coder = Coder(task)
        self.indices = {name: index for index, name in enumerate(task.arms)}
        self.eliminations = 0
        """How many of the task's eliminations were applied: they come numbered, and in order."""
        self.announced: tuple[int, ...] = tuple(range(len(task.arms)))
        self.stopped = False
        self.killed = False
        """Its kill switch is on: the fallback is served, and nothing is learnt from what is."""
        self.switches = 0
        """How often the switch was used, as far as this edge knows."""
        self.new: list[UpMessage] = []
        """Produced since the last save: not yet to be sent."""
        self.unsent: dict[int, bytes] = {}
        """Messages in the store that the log is not known to hold. Not all after some number: a tally has the place at
        which it began, and may be complete after a later one was sent."""
        self.kept = 0
        """Messages in the store."""
        self.highest = -1
        """The highest sequence among them."""
        self.windows: list[tuple[float, int]] = []
        """When which ticket's reward window passes."""
        self.dirty = False
        self.texts: list[bytes] = []
        """What the API answers to a decision, by arm, but for the ticket: made once."""

    @property
    def waiting(self) -> int:
        """Messages that the log is not known to hold, and that are to be sent: a stopped task sends nothing more."""
        return 0 if self.stopped else len(self.unsent) + len(self.new)

    def note_kept(self, messages: list[tuple[int, bytes]]) -> None:
        """These messages are in the store now, and are to be sent."""
        self.unsent.update(messages)
        self.kept += len(messages)
        self.highest = max(self.highest, *(sequence for sequence, _ in messages), -1)

    @property
    def served(self) -> int:
        """What a stopped or killed task serves: the declared fallback, or else the first arm that remains. A stopped
        task that has a winner serves it."""
        fallback = self.task.fallback
        if fallback is None or (self.stopped and len(self.announced) == 1):
            return self.announced[0]
        return self.task.arms.index(fallback)

    def switch(self, killed: bool, switches: int) -> bool:
        """The kill switch was used, so often in all; returns whether that changes something. What is older does not."""
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


# ---- what a store keeps of a task


class Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task as it was when it was last saved."""

    player: dict[str, Any]
    eliminations: Number
    announced: tuple[int, ...]
    stopped: bool
    killed: bool
    switches: Number


def saved(hosted: HostedTask) -> str:
    """The task as it is now, to be restored later."""
    return json.dumps(
        {
            "player": hosted.player.snapshot(),
            "eliminations": hosted.eliminations,
            "announced": hosted.announced,
            "stopped": hosted.stopped,
            "killed": hosted.killed,
            "switches": hosted.switches,
        }
    )


def restored(task_id: str, task: Task, text: str, rng: random.Random | None) -> HostedTask:
    """The task as it was saved; what was cut or altered is refused."""
    try:
        state = msgspec.convert(json.loads(text), Saved)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise MalformedSnapshot(f"the saved state of {task_id} was cut or altered: {error}") from None
    player = protocols.restore(task, state.player, rng=rng)
    if not hasattr(player, "decide"):
        raise MalformedSnapshot(f"the saved state of {task_id} is that of a server")
    if player.remaining != state.announced:
        told = f"{list(player.remaining)} remain, and {list(state.announced)} are announced to"
        raise MalformedSnapshot(f"the saved state of {task_id} was cut or altered: of its arms {told}")
    hosted = HostedTask(task_id, task, player)  # type: ignore[arg-type]  # it decides, so it is a player
    hosted.eliminations, hosted.announced, hosted.stopped = state.eliminations, state.announced, state.stopped
    hosted.killed, hosted.switches = state.killed, state.switches
    return hosted
