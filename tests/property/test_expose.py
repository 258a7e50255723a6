"""Exposures: assignments that were made ahead count when they are shown, in whatever order, mixed with all the rest.

A player is told anything that an edge can tell it, and beside it runs a player restored from a snapshot taken on the
way, which is told the same. What must hold at every moment is in `check`.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amounts import examples
from outvote.core import protocols
from outvote.core.errors import InvalidEvent, UnknownArm
from outvote.core.messages import Elimination, Tally, UpMessage
from outvote.core.tally.cycle import Cycle
from outvote.core.tally.player import MOST_WAITING, TallyPlayer
from outvote.core.tally.server import TallyServer
from outvote.core.task import Task

from .tasks import SEEDS, tasks
from .test_any_delivery import tally_tasks

Step = tuple[str, int, int]
"""What to do, how often, and a seed for its details."""
KINDS = (
    *("expose",) * 5,
    *("decide",) * 3,
    *("answer",) * 4,
    "close",
    "close",
    "forget",
    "eliminate",
    "fork",
    "restart",
)
PLANS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 30), SEEDS), min_size=8, max_size=40)
NAME = "site-0"


class Told:
    """One player, its twin, and what an application knows of its events."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.rng = random.Random(1)
        self.player = protocols.player(task, NAME, rng=self.rng)
        self.twin: protocols.Player | None = None
        self.waiting: list[tuple[int, int]] = []
        """Arm and ticket of each event without a reward."""
        self.events: Counter[int] = Counter()
        """Decided or exposed, by ticket."""
        self.successes: Counter[int] = Counter()
        """Rewards of 1 that were taken, by ticket."""
        self.answered: Counter[int] = Counter()
        """Rewards that were taken, by ticket."""
        self.arm_of: dict[int, int] = {}
        self.sent: list[UpMessage] = []
        self.due: list[int] = []

    @property
    def windowed(self) -> bool:
        return self.task.reward_window is not None

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(json.dumps(self.player.snapshot()))
        return found

    def restored(self, rng: random.Random) -> protocols.Player:
        found = protocols.restore(self.task, self.state(), rng=rng)
        assert isinstance(found, type(self.player))
        assert found.snapshot() == self.player.snapshot()
        return found

    # ---- what an edge does

    def decide(self) -> None:
        arm, ticket = self.player.decide()
        assert self.twin is None or self.twin.decide() == (arm, ticket)
        self._note(arm, ticket)

    def expose(self, arm: int) -> None:
        out = arm not in self.player.remaining
        before = self.player.snapshot() if out else None
        ticket = self.player.expose(arm)
        assert self.twin is None or self.twin.expose(arm) == ticket
        assert (ticket is None) == out
        if ticket is None:
            assert self.player.snapshot() == before, "an arm that is out changed the player"
        else:
            self._note(arm, ticket)

    def _note(self, arm: int, ticket: int) -> None:
        assert self.arm_of.setdefault(ticket, arm) == arm, "a ticket stands for two arms"
        if isinstance(self.player, TallyPlayer):
            assert all(ticket != each.sequence for each in self.sent), "an event goes to a tally that was sent"
        self.events[ticket] += 1
        self.waiting.append((arm, ticket))
        self._take_full()

    def answer(self, rng: random.Random) -> None:
        arm, ticket = self.waiting.pop(rng.randrange(len(self.waiting)))
        reward = float(rng.randint(0, 1))
        before = self.player.snapshot()
        try:
            messages = list(self.player.reward(arm, reward, ticket=ticket))
        except InvalidEvent:  # it was asked again and answered meanwhile
            assert self.player.snapshot() == before
            assert self.twin is None or self.twin.snapshot() == before
            assert not self.windowed
            return
        assert self.twin is None or list(self.twin.reward(arm, reward, ticket=ticket)) == messages
        after = self.player.snapshot()
        counted = (before["late_rewards"], before["dropped_rewards"]) == (
            after["late_rewards"], after["dropped_rewards"],
        )  # fmt: skip
        if counted:
            self.successes[ticket] += int(reward)
            self.answered[ticket] += 1
        self.sent += messages

    def close(self) -> None:
        for ticket in self.due:
            messages = list(self.player.close(ticket))
            assert self.twin is None or list(self.twin.close(ticket)) == messages
            self.sent += messages
        self.due = []

    def eliminate(self, rng: random.Random) -> None:
        message = Elimination((rng.randrange(len(self.task.arms)),))
        self.player.receive(message)
        if self.twin is not None:
            self.twin.receive(message)
        self._take_full()

    def _take_full(self) -> None:
        full = self.player.take_full()
        assert self.twin is None or self.twin.take_full() == full
        self.due += full

    def fork(self) -> None:
        """From now on a restored player is told the same; what it has to close the original has named already."""
        luck = random.Random()
        luck.setstate(self.rng.getstate())
        self.twin = self.restored(luck)
        assert set(self.twin.take_full()) <= set(self.due)

    def restart(self) -> None:
        self.player = self.restored(self.rng)
        self.twin = None
        due = self.player.take_full()
        assert set(due) <= set(self.due)
        self.due = due

    # ---- what must hold

    def check(self) -> None:
        assert self.twin is None or self.twin.snapshot() == self.player.snapshot()
        if isinstance(self.player, TallyPlayer):
            self._check_tallies(self.player)

    def _check_tallies(self, player: TallyPlayer) -> None:
        tallies = [each for each in self.sent if isinstance(each, Tally)]
        assert len(tallies) == len(self.sent)
        assert len({each.sequence for each in tallies}) == len(tallies), "a tally was sent twice"
        cycle = Cycle(self.task)
        for each in tallies:
            assert cycle.arm(NAME, each.sequence) == each.arm == self.arm_of[each.sequence], "a place implies its arm"
            if self.windowed:
                assert each.trials == self.events[each.sequence], "an event is missing in its tally, or there twice"
            else:
                assert each.trials == self.answered[each.sequence] <= self.events[each.sequence]
            if self.task.privacy_budget is None:
                assert each.successes == self.successes[each.sequence]
        rows = {row[0]: row for row in self.state()["batches"]}
        assert not rows.keys() & {each.sequence for each in tallies}, "a tally was sent, and is still open"
        for ticket, arm, size, left, waiting, total in rows.values():
            assert arm in player.remaining
            assert total == self.successes[ticket] or player.finished
            if self.windowed and size > 0:
                assert size - left == self.events[ticket]
            elif size > 0:
                assert size - left - waiting == self.answered[ticket]
        if not self.windowed:
            arms = [row[1] for row in rows.values()]
            assert len(set(arms)) == len(arms), "an arm has two open tallies"


def run(told: Told, plan: list[Step]) -> None:
    for kind, count, seed in plan:
        rng = random.Random(seed)
        for _ in range(count):
            if kind == "expose":
                told.expose(rng.randrange(len(told.task.arms)))
            elif kind == "decide":
                told.decide()
            elif kind == "answer" and told.waiting:
                told.answer(rng)
        if kind == "close":
            told.close()
        elif kind == "forget":
            told.waiting = told.waiting[count:]
        elif kind == "eliminate":
            told.eliminate(rng)
        elif kind == "fork":
            told.fork()
        elif kind == "restart":
            told.restart()
        told.check()


@examples(250)
@given(task=tally_tasks(), plan=PLANS)
def test_exposures_among_decisions_make_tallies_that_every_server_takes_and_none_twice(
    task: Task, plan: list[Step]
) -> None:
    told, server = Told(task), TallyServer(task)
    run(told, plan)
    for tally in told.sent:
        server.receive(NAME, tally)  # type: ignore[arg-type]  # these players count
    assert (server.refused, server.duplicates) == (0, 0)


@examples(160)
@given(task=tasks(window=None, short=True), plan=PLANS)
def test_exposures_among_decisions_leave_a_player_of_votes_that_can_be_restored(task: Task, plan: list[Step]) -> None:
    told = Told(task)
    run(told, plan)
    votes = [(vote.arm, vote.instance) for vote in told.sent]  # type: ignore[union-attr]  # these players vote
    assert len(set(votes)) == len(votes), "an arm was voted out twice"
    assert [vote.sequence for vote in told.sent] == list(range(len(votes)))


@examples(100)
@given(task=tasks(window=None, short=True), exposures=st.lists(st.integers(0, 5), max_size=200), seed=SEEDS)
def test_an_exposure_counts_for_its_arm_as_a_decision_does(task: Task, exposures: list[int], seed: int) -> None:
    told, rng = Told(task), random.Random(seed)
    for exposure in exposures:
        told.expose(exposure % len(task.arms))
        if rng.random() < 0.8:
            told.answer(rng)
    state = told.state()
    open_events = Counter({row[1]: 0 for row in state["batches"]})
    for _, arm, _, _, waiting, _ in state["batches"]:
        open_events[arm] += waiting
    shown = Counter(told.arm_of[ticket] for ticket in told.events.elements())
    if told.windowed:
        assert state["pulls"] == [0] * len(task.arms)  # nothing was closed
    else:
        assert [state["pulls"][arm] + open_events[arm] for arm in range(len(task.arms))] == [
            shown[arm] for arm in range(len(task.arms))
        ]


def test_answers_that_come_late_complete_a_tally_whose_turn_is_again() -> None:
    """With two arms, an exposure of the other one brings the turn back to the arm that is being asked again."""
    player = TallyPlayer(Task(protocol="tally", arms=2, players=1, epsilon=0, delta=0.5, floor=2), 0)
    arm, ticket = player.decide()
    player.decide()  # full, and nothing is answered
    other = player.decide()[0]
    player.decide()
    assert player.decide() == (arm, ticket), "it is asked again"
    player.expose(other)
    assert player.reward(arm, 1.0, ticket=ticket) == ()
    [tally] = player.reward(arm, 1.0, ticket=ticket)  # one of the two that were given up
    assert (tally.trials, tally.sequence) == (2, ticket)
    following = [player.decide() for _ in range(20)]
    assert (arm, ticket) not in following, "decisions went to a tally that was sent"


def test_too_many_full_tallies_make_exposures_uncounted_also_after_a_restart() -> None:
    task = Task(protocol="tally", arms=2, players=1, epsilon=0, delta=0.5, floor=2, reward_window=60.0)
    player = TallyPlayer(task, 0)
    while len(player.snapshot()["batches"]) < 2 * MOST_WAITING:
        player.expose(0)
        player.expose(1)
    for _ in range(9):
        player.expose(0)
        player.expose(1)
        twin = TallyPlayer.restore(task, json.loads(json.dumps(player.snapshot())))
        assert twin.snapshot() == player.snapshot()
        for arm in (0, 1, 1, 0):
            assert twin.expose(arm) == player.expose(arm)
            assert twin.decide() == player.decide()
    ticket = player.expose(0)
    before = player.dropped_rewards
    assert player.reward(0, 1.0, ticket=ticket) == ()
    assert player.dropped_rewards == before + 1


@pytest.mark.parametrize("protocol", ["tally", "dme", "edme"])
def test_an_arm_that_does_not_exist_cannot_be_exposed(protocol: str) -> None:
    task = Task(protocol=protocol, arms=2, players=1, epsilon=0 if protocol == "tally" else 0.5, delta=0.5)
    player = protocols.player(task, 0, rng=random.Random(1))
    before = player.snapshot()
    for arm in (-1, 2, True, 0.0, None, "0"):
        with pytest.raises(UnknownArm):
            player.expose(arm)  # type: ignore[arg-type]
    assert player.snapshot() == before
