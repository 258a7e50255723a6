"""When a trial reaches its three ends, which are different moments: `finished`, `all_finished` and `solved`.

Each is the number of the draw after which its condition first holds, or None.
"""

from __future__ import annotations

from collections.abc import Sequence

from outvote.simulation.fleets import Fleet


class Moments:
    """Watches a fleet; told of every draw that changed a member, it looks at that member only."""

    def __init__(self, fleet: Fleet, good: Sequence[frozenset[int]]) -> None:
        """`good` are the ε-approximations of each member's best arm."""
        self._fleet = fleet
        self._good = good
        members = range(len(fleet.members))
        self._unfinished = [set(members) for _ in range(fleet.instances)]
        self._unsolved = {member for member in members if not self._is_good(member)}
        self.finished: int | None = None
        self.all_finished: int | None = None
        # Algorithm 1 tests its end after a draw, so the first draw is the earliest.
        self.solved: int | None = None if self._unsolved else 1

    def member_changed(self, member: int, draw: int) -> None:
        """A member took over eliminations, or voted."""
        participant = self._fleet.members[member]
        for instance, unfinished in enumerate(self._unfinished):
            if member in unfinished and len(participant.candidates(instance)) <= 1:
                unfinished.discard(member)
                if not unfinished and self.all_finished is None:
                    self.all_finished = draw
        if member in self._unsolved and self._is_good(member):
            self._unsolved.discard(member)
            if not self._unsolved:
                self.solved = draw

    def messages_counted(self, draw: int) -> None:
        """The server has counted what was sent, or a member has obeyed itself."""
        if self.finished is None and self._fleet.finished():
            self.finished = draw

    def _is_good(self, member: int) -> bool:
        return self._good[member].issuperset(self._fleet.members[member].remaining)
