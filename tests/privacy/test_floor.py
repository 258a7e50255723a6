"""No message speaks of fewer events than the floor, whatever happens to a player."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outvote.core import protocols
from outvote.core.errors import NoOutstandingDecision, UnknownTicket
from outvote.core.messages import Elimination, Tally
from outvote.core.task import Task

STEPS = ("decide", "decide", "expose", "answer", "answer", "answer", "forget", "close", "eliminate", "restart")


@pytest.mark.parametrize("window", [None, 5.0])
@given(
    floor=st.integers(2, 9),
    budget=st.sampled_from([None, 1.0]),
    steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 1000)), max_size=250),
)
def test_every_tally_speaks_of_as_many_events_as_it_says_and_no_fewer_than_the_floor(
    window: float | None, floor: int, budget: float | None, steps: list[tuple[str, int]]
) -> None:
    """Windows, rewards that never come, late ones, exposures out of turn, eliminations, crashes."""
    task = Task(
        arms=3, players=2, epsilon=0.0, delta=0.1, protocol="tally", floor=floor, reward_window=window,
        privacy_budget=budget,
    )  # fmt: skip
    rng = random.Random(0)
    player = protocols.player(task, 0, rng=rng)
    shown: Counter[int] = Counter()
    answered: Counter[int] = Counter()
    waiting: list[tuple[int, int]] = []
    saved = player.snapshot(), shown.copy(), answered.copy()
    sent: dict[int, Tally] = {}

    def send(messages: object) -> None:
        for message in messages:  # type: ignore[attr-defined]
            assert message.sequence not in sent
            sent[message.sequence] = message
            events = (shown if window else answered)[message.sequence]
            assert message.trials >= floor
            assert events >= message.trials, "it speaks of events that there were not"

    for step, number in steps:
        if step == "decide":
            waiting.append(player.decide())
            shown[waiting[-1][1]] += 1
        elif step == "expose" and (ticket := player.expose(number % 3)) is not None:
            waiting.append((number % 3, ticket))
            shown[ticket] += 1
        elif step == "answer" and waiting:
            arm, ticket = waiting.pop(number % len(waiting))
            with suppress(NoOutstandingDecision, UnknownTicket):  # of a decision that a crash took, or was given up
                messages = player.reward(arm, number % 2, ticket=ticket)
                answered[ticket] += 1
                send(messages)
                saved = player.snapshot(), shown.copy(), answered.copy()  # as an edge does with a message
        elif step == "forget" and waiting:
            waiting.pop(number % len(waiting))
        elif step == "close":
            for ticket in player.take_full():
                send(player.close(ticket))
                saved = player.snapshot(), shown.copy(), answered.copy()
        elif step == "eliminate" and number % 10 == 0:
            player.receive(Elimination((number // 10 % 3,)))
        elif step == "restart":
            player = protocols.restore(task, saved[0], rng=rng)  # type: ignore[assignment]
            shown, answered = saved[1].copy(), saved[2].copy()


@pytest.mark.parametrize("protocol", ["dme", "edme"])
def test_a_vote_comes_after_an_epoch_of_every_arm(protocol: str) -> None:
    options = {"instances": 2} if protocol == "edme" else {}
    task = Task(arms=3, players=4, epsilon=0.99, delta=0.9, protocol=protocol, **options)  # type: ignore[arg-type]
    epoch = min(schedule.pulls(1) for schedule in task.schedules())
    player = protocols.player(task, 0)
    events = 0
    while True:
        arm, ticket = player.decide()
        events += 1
        if player.reward(arm, arm / 2, ticket=ticket):
            break
    assert events == 3 * epoch >= 300
