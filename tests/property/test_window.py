"""The player of the paper with a reward window, beside what `test_decisions` has of both players."""

from __future__ import annotations

import copy
import json
import random

from hypothesis import given
from hypothesis import strategies as st

from amounts import examples
from outvote.core.decisions import Ticket
from outvote.core.messages import Elimination
from outvote.core.task import Task

from .fleet import new_player, restored_player
from .tasks import SEEDS, pace, tasks

START = 10**12


@examples(150)
@given(task=tasks(window=True), draws=st.integers(20, 200), fork=st.integers(0, 100), seed=SEEDS)
def test_a_restored_player_goes_on_as_the_original(task: Task, draws: int, fork: int, seed: int) -> None:
    rng, draw = random.Random(seed), random.Random(1)
    player = new_player(task, "site-0", draw)
    players = [player]
    waiting: list[Ticket] = []
    now = START
    for turn in range(draws * pace(task)):
        if turn == fork:
            same_draws = random.Random()
            same_draws.setstate(draw.getstate())
            twin = restored_player(task, json.loads(json.dumps(player.snapshot())), same_draws)
            for left_out in ("_run", "_runs", "_latest"):  # the names of new decisions, and of groups that were dropped
                setattr(twin.decisions, left_out, copy.copy(getattr(player.decisions, left_out)))
            twin.resume(now, crashed=False)
            players.append(twin)
        tickets = {each.decide(now) for each in players}
        waiting += tickets
        if waiting and rng.random() < 0.7:
            ticket, reward = waiting.pop(rng.randrange(len(waiting))), rng.randint(0, 8) / 8
            for each in players:
                each.reward(ticket, reward, now)
        if rng.random() < 0.02:
            gone = Elimination((rng.randrange(len(task.arms)),))
            for each in players:
                each.receive(gone)
        now += rng.choice([0, 1_000, 20_000])
        messages = {tuple(each.tick(now)) for each in players}
        assert (len(tickets), len(messages)) == (1, 1)
        assert all(each.snapshot() == player.snapshot() for each in players)


@examples(100)
@given(task=tasks("dme", window=True), epochs=st.integers(1, 3), pause=st.sampled_from([0, 1_000, 70_000]), seed=SEEDS)
def test_each_candidate_is_judged_on_exactly_the_pulls_of_its_epoch(
    task: Task, epochs: int, pause: int, seed: int
) -> None:
    """However many decisions of the next epochs wait by then: groups close in the order of their last decisions."""
    player, rng, now = new_player(task, "site-0", random.Random(seed)), random.Random(seed), START
    [schedule], arms = task.schedules(), len(task.arms)
    for _ in range(arms * sum(schedule.pulls(epoch) for epoch in range(1, epochs + 1))):
        ticket = player.decide(now)
        player.reward(ticket, rng.randint(0, 8) / 8, now)
        now += rng.randrange(pause + 1)
        player.tick(now)
        assert all(player.pulls(arm) <= schedule.pulls(player.epoch()) for arm in player.candidates())
    player.tick(now + 70_000)
    assert player.finished or player.epoch() == epochs + 1
