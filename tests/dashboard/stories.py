"""Tasks as they happen: real players learn from made-up users, and what they say is read by the real fold."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from outvote.core import protocols
from outvote.core.task import Task
from outvote.log.expectation import Expectation
from outvote.log.log import Record
from outvote.log.log_state import LogState, TaskState
from outvote.log.records import Coder, DownSubject, UpSubject, task_record
from outvote.server.admin.views import TaskDescription, description, with_reports

CREATED = 1_700_000_000.0
MOST_TURNS = 20_000
SITES = ("ams", "bog", "che")
TALLY: dict[str, Any] = {
    "name": "shop",
    "protocol": "tally",
    "arms": ["classic", "bold", "green"],
    "players": SITES,
    "reward_window": 60,
    "epsilon": 0,
    "delta": 0.05,
}
SOON: dict[str, Any] = {"protocol": "dme", "epsilon": 0.99, "delta": 0.9}
"""With which a site votes after a few hundred events."""
GOOD = (0.95, 0.05, 0.05)
CLOSE = (0.6, 0.5, 0.55)

Means: TypeAlias = Sequence[float]


class Story:
    """One task: `records` is its log, each stored a second after the one before, from `CREATED` on."""

    def __init__(self, *, task_id: str = "shop-1", **task: Any) -> None:
        self.task = Task(**{**TALLY, **task})
        self.task_id = task_id
        self.state = LogState()
        self.now = CREATED - 1
        self.records: list[tuple[str, bytes]] = []
        self._played = round(CREATED * 1000)
        """The time at the sites, in milliseconds: every event has its window to itself."""
        self._coder = Coder(self.task)
        self._rng = random.Random(1)
        names = self.task.player_names or tuple(f"site-{number}" for number in range(self.task.players))
        self._players = {name: protocols.player(self.task, name, rng=random.Random(name)) for name in names}
        self._down("task", task_record(self.task))

    @property
    def found(self) -> TaskState:
        return self.state.tasks[self.task_id]

    @property
    def shown(self) -> TaskDescription:
        return with_reports(description(self.found), {})

    @property
    def messages(self) -> int:
        return self.found.ledger.up_messages

    def stop(self) -> Story:
        self._down("stop", b"{}")
        return self

    def expect(self, **what: float) -> Story:
        self._down("expect", Expectation(**what).record(), self.found.next_number["expect"])
        return self

    def play(self, means: Means | Mapping[str, Means], until: Callable[[Story], bool], *sites: str) -> Story:
        """An event at each of these sites, or of all, in turn, until something is so. `means` are those of all sites,
        or of each."""
        for _ in range(MOST_TURNS):
            for name in sites or self._players:
                if until(self):
                    return self
                self._event(name, means[name] if isinstance(means, Mapping) else means)
        raise AssertionError(f"not in {MOST_TURNS} events of each site")

    def finish(self, means: Means = GOOD) -> Story:
        return self.play(means, lambda story: story.found.winner is not None)

    def _event(self, name: str, means: Means) -> None:
        player = self._players[name]
        ticket = player.decide(self._played)
        player.reward(ticket, float(self._rng.random() < means[ticket.arm]), self._played)
        self._played += 2 * round(self.task.reward_window * 1000)  # a tally that is full has closed by then
        for message in player.tick(self._played):
            self._store(str(UpSubject(name, self.task_id, "life", message.sequence)), self._coder.up(message))
        while (proposal := self.found.proposal()) is not None:
            self._store(proposal.subject, proposal.payload)
            for each in self._players.values():
                each.receive(self.found.eliminations[-1])

    def _down(self, kind: str, payload: bytes, number: int | None = None) -> None:
        self._store(str(DownSubject(self.task_id, kind, number)), payload)

    def _store(self, subject: str, payload: bytes) -> None:
        self.now += 1
        self.records.append((subject, payload))
        assert self.state.apply(Record(subject, payload, self.state.read + 1, self.now))


def held(**task: Any) -> Story:
    """Two sites see the opposite of each other."""
    turned = {"ams": (0.9, 0.75), "bog": (0.2, 0.05)}
    story = Story(arms=["red", "green"], players=("ams", "bog"), **task)
    return story.play(turned, lambda story: story.found.server.held)
