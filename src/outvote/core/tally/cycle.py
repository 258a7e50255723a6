"""The cycle in which Tally players go through the arms: one shuffle for the task, a place of its own for each player.

Players that start at different places fill all arms at once. The shuffle comes from the task's fingerprint, so every
participant knows it, and a tally's place in its player's cycle tells its arm.
"""

from __future__ import annotations

from outvote.core.messages import PlayerId
from outvote.core.task import Task


class Cycle:
    """Who tries which arm when."""

    def __init__(self, task: Task) -> None:
        self.order = sorted(range(len(task.arms)), key=lambda arm: _digest(f"{task.fingerprint()}/{arm}"))
        """The arms as shuffled."""
        self._names = {name: index for index, name in enumerate(task.player_names)}
        self._starts: dict[PlayerId, int] = {}

    def start(self, player: PlayerId) -> int:
        """Where a player begins: declared players one after another, others by their name."""
        if isinstance(player, int):
            return player % len(self.order)
        index = self._names.get(player)
        return (_digest(player) if index is None else index) % len(self.order)

    def arm(self, player: PlayerId, sequence: int) -> int:
        """The arm at a place of a player's cycle; places go on counting round after round."""
        start = self._starts.get(player)
        if start is None:
            start = self._starts[player] = self.start(player)
        return self.order[(start + sequence) % len(self.order)]


def _digest(text: str) -> int:
    import hashlib  # slow to import, and needed by Tally alone

    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
