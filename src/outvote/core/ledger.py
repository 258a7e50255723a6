"""The bit ledger: what the messages of a task cost under its code, beside the bound of Lemma 2 or Theorem 4.

It counts payload bits only. Bytes on a real wire are another quantity and are never added to these.
"""

from __future__ import annotations

from outvote.core.codes import Codebook, fixed_width
from outvote.core.messages import Elimination, PlayerId, Vote
from outvote.core.task import Task


def bits_bound(task: Task) -> int:
    """2NM(K−1)⌈log₂K⌉: Theorem 4, and Lemma 2 for one instance."""
    arms = len(task.arms)
    return 2 * task.players * len(task.instances) * (arms - 1) * fixed_width(arms)


class Ledger:
    """Counts every message once when it is sent; a downward message is sent to each of the N players."""

    def __init__(self, task: Task) -> None:
        self.bound = bits_bound(task)
        self.up_messages = 0
        self.down_messages = 0
        self.up_bits = 0
        self.down_bits = 0
        self.instance_bits = 0
        """The part of `up_bits` that says the instance of a vote. Theorem 4 leaves it out, so the bound does too."""
        self.up_bits_by_player: dict[PlayerId, int] = {}
        self.down_bits_per_player = 0
        self._players = task.players
        self._codebook = Codebook(task)

    @property
    def total_bits(self) -> int:
        return self.up_bits + self.down_bits

    def send_up(self, player: PlayerId, message: Vote) -> None:
        """`player` sends a message to the server."""
        bits = self._codebook.bits(message)
        self.up_messages += 1
        self.up_bits += bits
        self.instance_bits += self._codebook.instance_bits
        self.up_bits_by_player[player] = self.up_bits_by_player.get(player, 0) + bits

    def send_down(self, message: Elimination) -> None:
        """The server sends a message to every player."""
        bits = self._codebook.bits(message)
        self.down_messages += self._players
        self.down_bits += bits * self._players
        self.down_bits_per_player += bits
