"""The bit ledger: what every message costs under its code, beside the bound of Lemma 2 or Theorem 4.

It counts payload bits only. Bytes on a real wire are another quantity and are never added to these.
"""

from __future__ import annotations

from outvote.core.codes import Codebook, fixed_width
from outvote.core.messages import Elimination, PlayerId, Tally, UpMessage
from outvote.core.task import Task


def bits_bound(task: Task) -> int:
    """2NM(K−1)⌈log₂K⌉ for votes: Theorem 4, and Lemma 2 for one instance."""
    arms = len(task.arms)
    return 2 * task.players * len(task.instances) * (arms - 1) * fixed_width(arms)


def tally_bits_bound(task: Task, draws: int) -> int:
    """The most bits that Tally sends in so many draws; how many it needs depends on how close the arms are."""
    arms = len(task.arms)
    arm = 0 if task.code == "implied" else max(len(word) for word in Codebook(task).arm_words)
    dearest = max(draws * (arm + fixed_width(size + 1)) // size for size in task.tally_sizes)
    return dearest + task.players * most_announced_bits(arms)


def most_announced_bits(arms: int) -> int:
    """The most bits that one player of Tally can be told: masks, each of at most half of those before, and the last."""
    bits = 0
    while arms > 3:
        bits += arms
        arms //= 2
    return bits + (fixed_width(arms) if arms > 1 else 0)


class Ledger:
    """Counts every message once when it is sent; a downward message is sent to each of the N players."""

    def __init__(self, task: Task) -> None:
        self.bound = task.entry.bits_bound(task, None)
        """None where nothing bounds the bits before the task ends."""
        self.up_messages = 0
        self.down_messages = 0
        self.up_bits = 0
        self.down_bits = 0
        self.instance_bits = 0
        """The part of `up_bits` that says the instance of a vote. Theorem 4 leaves it out, so the bound does too."""
        self.implied_bits = 0
        """Not in `up_bits`: what it would have cost to name the arm in every tally whose place implies it."""
        self.up_bits_by_player: dict[PlayerId, int] = {}
        self._players = task.players
        self._codebook = task.entry.codebook(task)
        self._arm_bits = fixed_width(len(task.arms)) if task.code == "implied" else 0
        self._announced = list(range(len(task.arms)))

    @property
    def total_bits(self) -> int:
        return self.up_bits + self.down_bits

    def send_up(self, player: PlayerId, message: UpMessage, bits: int | None = None) -> None:
        """`player` sends a message to the server; `bits` is its price where it is known."""
        if bits is None:
            bits = len(self._codebook.encode(message))
        self.up_messages += 1
        self.up_bits += bits
        if isinstance(message, Tally):
            self.implied_bits += self._arm_bits
        else:
            self.instance_bits += self._codebook.instance_bits
        self.up_bits_by_player[player] = self.up_bits_by_player.get(player, 0) + bits

    def send_down(self, message: Elimination) -> None:
        """The server sends a message to every player."""
        bits = len(self._codebook.encode_down(self._announced, message))
        self._announced = [arm for arm in self._announced if arm not in message.arms]
        self.down_messages += self._players
        self.down_bits += bits * self._players
