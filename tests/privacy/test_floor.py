"""No message speaks of fewer events than the floor, whatever happens to a player."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outvote.core import protocols
from outvote.core.decisions import Ticket
from outvote.core.errors import UnknownDecision
from outvote.core.messages import Elimination, Tally
from outvote.core.task import Task

STEPS = ("decide", "decide", "decide", "answer", "answer", "forget", "wait", "save", "eliminate", "restart", "crash")


@pytest.mark.parametrize("window", [0.0, 5.0])
@given(
    floor=st.integers(2, 9),
    budget=st.sampled_from([None, 1.0]),
    steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 1000)), max_size=250),
)
def test_every_tally_speaks_of_as_many_events_as_it_says_and_no_fewer_than_the_floor(
    window: float, floor: int, budget: float | None, steps: list[tuple[str, int]]
) -> None:
    """Windows, rewards that never come, late ones, eliminations, restarts, crashes."""
    task = Task(
        arms=3, players=2, epsilon=0.0, delta=0.1, protocol="tally", floor=floor, reward_window=window,
        privacy_budget=budget,
    )  # fmt: skip
    rng = random.Random(0)
    player = protocols.player(task, 0, rng=rng)
    now = 0
    decided: Counter[int] = Counter()
    waiting: list[Ticket] = []
    saved = player.snapshot(), decided.copy()
    sent: set[int] = set()
    for step, number in steps:
        if step == "decide":
            ticket = player.decide(now)
            if ticket.group >= 0:
                waiting.append(ticket)
                decided[ticket.group] += 1
        elif step == "answer" and waiting:
            with suppress(UnknownDecision):  # a crash took the decision
                player.reward(waiting.pop(number % len(waiting)), number % 2, now)
        elif step == "forget" and waiting:
            waiting.pop(number % len(waiting))
        elif step == "wait":
            now += 10 * number
        elif step == "save":
            saved = player.snapshot(), decided.copy()
        elif step == "eliminate" and number % 10 == 0:
            player.receive(Elimination((number // 10 % 3,)))
        elif step in ("restart", "crash"):
            if step == "restart":
                saved = player.snapshot(), decided.copy()
            player = protocols.restore(task, saved[0], rng=rng)  # type: ignore[assignment]
            player.resume(now, crashed=step == "crash")
            decided = saved[1].copy()
        messages = player.tick(now)
        for message in messages:
            assert isinstance(message, Tally)
            assert message.sequence not in sent
            sent.add(message.sequence)
            assert decided[message.sequence] == message.trials >= floor
        if messages:
            saved = player.snapshot(), decided.copy()  # as an edge does with a message


@pytest.mark.parametrize("protocol", ["dme", "edme"])
def test_a_vote_comes_after_an_epoch_of_every_arm(protocol: str) -> None:
    options = {"instances": 2} if protocol == "edme" else {}
    task = Task(arms=3, players=4, epsilon=0.99, delta=0.9, protocol=protocol, **options)  # type: ignore[arg-type]
    epoch = min(schedule.pulls(1) for schedule in task.schedules())
    player = protocols.player(task, 0)
    events = 0
    while True:
        ticket = player.decide(events)
        player.reward(ticket, ticket.arm / 2, events)
        events += 1
        if player.tick(events - 1):
            break
    assert events == 3 * epoch >= 300
