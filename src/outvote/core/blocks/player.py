"""The player of `blocks`: it draws arms at random within blocks, and reports how many decisions of each succeeded.

A block holds so many decisions of each remaining arm, in a uniformly random order. How large blocks are, and when they
close, depends on numbers, times and totals, never on outcomes or on one arm's count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from outvote.core import snapshots
from outvote.core.blocks.sizes import LARGEST, above, below, planned
from outvote.core.decisions import Decisions, Group, Ticket
from outvote.core.events import check_arm
from outvote.core.messages import Block, Elimination, PlayerId
from outvote.core.task import Task

if TYPE_CHECKING:
    import random

_NO_BLOCKS: tuple[Block, ...] = ()
KEPT_TO = 16
"""A snapshot keeps when the open block began to this part of the age at which quiet blocks close."""


class BlockPlayer:
    """One player of `blocks`. See `outvote.core.decisions` for tickets, windows and times: a group is a block."""

    def __init__(self, task: Task, player: PlayerId, rng: random.Random | None = None) -> None:
        """A new player; `rng` draws arms, and when messages leave (default: the system's generator)."""
        self.task = task
        self.player = player
        self.decisions = Decisions(len(task.arms), task.reward_window, rng, binary=True)
        self.heard = 0
        """Eliminations that were applied."""
        assert task.floor is not None
        self._floor = task.floor
        self._age = round(float(task.parameters["block_age"]) * 1000)
        self._cap = LARGEST
        self._remaining = set(range(len(task.arms)))
        self._rng = rng
        self._group: Group | None = None
        """The block that takes the next decisions; None before the first, while there is no memory, and at the end."""
        self._order: list[int] = []
        """The arms of its decisions to come, the next one last."""
        self._began: int | None = None
        """When its first decision was made."""

    # ---- what an application does

    def decide(self, now: int) -> Ticket:
        """The arm to play now, in the ticket that its reward must name."""
        group = self._group
        if group is None:
            group = self._open()
            if group is None:
                return Ticket.uncounted(min(self._remaining))
        if self._began is None:
            self._began = now
        ticket = self.decisions.place(group, self._order.pop(), now)
        if not group.left:
            if now - self._began < self._age // 2:
                self._cap = above(self._size(group))
            self._leave()
        return ticket

    def reward(self, ticket: Ticket, reward: float, now: int) -> None:
        """The outcome of one decision; see `Decisions.reward`. One between 0 and 1 is a success with that
        probability."""
        self.decisions.reward(ticket, reward, now)

    def tick(self, now: int) -> Sequence[Block]:
        """Close what is due; returns the blocks to send."""
        group = self._group
        if group is not None and self._began is not None and now - self._began >= self._age:
            made = sum(count.decided for count in group.counts.values())
            if made >= 2 * self._floor * len(self._remaining):
                self._cap = below(self._size(group))
                self.decisions.cut(group)
                self._leave()
        closed = self.decisions.close_due(now)
        if not closed:
            return _NO_BLOCKS
        return [block for block in map(self._block, closed) if sum(decided > 0 for decided, _ in block.counts) > 1]

    # ---- what the network brings

    def receive(self, message: Elimination) -> None:
        """Arms that the fleet has eliminated; they leave all blocks, and the others go on. Again it changes nothing."""
        for arm in message.arms:
            check_arm(arm, len(self.task.arms))
        gone = self._remaining.intersection(message.arms)
        if not gone or gone == self._remaining:
            return
        self.heard += 1
        self._remaining -= gone
        finished = len(self._remaining) == 1
        self.decisions.drop(range(len(self.task.arms)) if finished else gone)
        self._order = [arm for arm in self._order if arm not in gone]
        if self._group is not None and (finished or not self._group.left):
            self._leave()

    def resume(self, now: int, *, crashed: bool) -> None:
        """Go on after a restart; see `Decisions.resume`."""
        self.decisions.resume(now, crashed=crashed)
        if self._group is not None and not self._group.left:
            self._leave()

    # ---- what people ask

    @property
    def remaining(self) -> tuple[int, ...]:
        """The arms that this player may play."""
        return tuple(sorted(self._remaining))

    def candidates(self, instance: int = 0) -> tuple[int, ...]:
        """All that remain: a player of blocks has no opinion of its own."""
        return self.remaining

    @property
    def finished(self) -> bool:
        """One arm remains."""
        return len(self._remaining) == 1

    @property
    def status(self) -> str:
        """`finished`, else `exploring`."""
        return "finished" if self.finished else "exploring"

    # ---- snapshots

    def snapshot(self) -> dict[str, Any]:
        """The whole state in plain JSON types: a few numbers per arm, no event, no order of decisions."""
        grain = max(self._age // KEPT_TO, 1)
        state = {
            "player": self.player,
            "remaining": list(self.remaining),
            "heard": self.heard,
            "cap": self._cap,
            "open": None if self._group is None else self._group.number,
            "began": None if self._began is None else self._began // grain * grain,
            "decisions": self.decisions.snapshot(),
        }
        return snapshots.seal("player", self.task, state)

    @classmethod
    def restore(cls, task: Task, data: Mapping[str, Any], rng: random.Random | None = None) -> BlockPlayer:
        """The player that `snapshot` was taken of; a snapshot that is not whole is refused."""
        record = snapshots.unseal(data, "player", task)
        player = cls(task, record["player"], rng)
        player._remaining = set(record["remaining"])
        player.heard, player._cap, player._began = record["heard"], record["cap"], record["began"]
        out = range(len(task.arms)) if player.finished else set(range(len(task.arms))) - player._remaining
        player.decisions.restore(record["decisions"], out=out)
        player._group = next((each for each in player.decisions.groups if each.number == record["open"]), None)
        if player._group is not None:
            player._shuffle(player._group)
        return player

    # ---- how it works

    def _open(self) -> Group | None:
        """The next block; None if nothing is left to learn, or there is no memory."""
        if len(self._remaining) == 1:
            return None
        size = planned(self.decisions.next_number, self._floor, self._cap)
        group = self._group = self.decisions.open(dict.fromkeys(self.remaining, size))
        if group is None:
            self.decisions.uncounted += 1
        else:
            self._shuffle(group)
        return group

    def _shuffle(self, group: Group) -> None:
        """Draw the order of a block's decisions to come: each is as likely as any other."""
        if self._rng is None:
            import random  # slow to import, and needed by some players alone

            self._rng = random.SystemRandom()
        self._order = [arm for arm, count in group.counts.items() for _ in range(count.left)]
        left = len(self._order)
        bits = self._rng.randbytes(8 * left)  # all at once: the system's generator is slow to ask
        for place in range(left - 1, 0, -1):
            # 64 bits for one of a few thousand places: each place is within 2⁻⁵⁰ of equally likely.
            other = int.from_bytes(bits[8 * place : 8 * place + 8], "little") * (place + 1) >> 64
            self._order[place], self._order[other] = self._order[other], self._order[place]

    def _leave(self) -> None:
        """The open block takes no more decisions."""
        self._group, self._began, self._order = None, None, []

    def _size(self, group: Group) -> int:
        """The size that a block was opened with."""
        return max(count.left + count.decided for count in group.counts.values())

    def _block(self, group: Group) -> Block:
        """The message: an arm with fewer decisions than the floor is left out."""
        counts = []
        for arm in self.remaining:
            count = group.counts.get(arm)
            told = count is not None and count.decided >= self._floor
            counts.append((count.decided, int(count.total)) if told and count is not None else (0, 0))
        return Block(group.number, self.heard, tuple(counts))
