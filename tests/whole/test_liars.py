"""A log in which sites lie: every server reads the same out of it, and a discount counts again without the liar."""

from __future__ import annotations

import random

from outvote.core.messages import Tally, Vote
from outvote.core.tally.cycle import Cycle
from outvote.core.task import Task
from outvote.log.log_state import TaskState
from outvote.log.records import UpSubject, read_task, task_record

HONEST = ("a", "b", "c", "d")
SITES = ("liar", *HONEST)


def folded(task: Task) -> TaskState:
    return TaskState("task-1", task)


def send(found: TaskState, edge: str, message: Tally | Vote) -> None:
    subject = UpSubject(edge, "task-1", "life", message.sequence)
    found.receive(subject, found.coder.up(message), 0)


def tally_task(tolerate: int = 1) -> Task:
    return Task(
        arms=3, players=list(SITES), epsilon=0, delta=0.05, protocol="tally", tolerate=tolerate, reward_window=60
    )


def lie(found: TaskState) -> None:
    """Before anybody else: nothing but success of the worst arm, in the largest tallies."""
    for place in range(9):
        arm = Cycle(found.task).arm("liar", place)
        send(found, "liar", Tally(arm, (0, 0, 127)[arm], 127, place))


def play(found: TaskState, laps: int) -> None:
    """Sites that see .9, .3 and .2."""
    rng = random.Random(1)
    for lap in range(laps):
        for edge in HONEST:
            for place in range(3 * lap, 3 * lap + 3):
                arm = Cycle(found.task).arm(edge, place)
                seen = sum(rng.random() < (0.9, 0.3, 0.2)[arm] for _ in range(7))
                send(found, edge, Tally(arm, seen, 7, place))


def test_a_record_of_a_task_says_what_it_tolerates() -> None:
    assert read_task(task_record(tally_task())) == tally_task()
    assert read_task(task_record(tally_task(0))) == tally_task(0) != tally_task()


def test_a_liar_decides_a_task_that_believes_it_and_not_one_that_tolerates_it() -> None:
    believing, guarded = folded(tally_task(0)), folded(tally_task(1))
    for found in (believing, guarded):
        lie(found)
        play(found, 20)
        assert found.refused == 0
    assert believing.server.remaining == (2,)
    assert guarded.server.remaining == (0,)
