"""Any order of delivery, loss, repetition and restart ends in the same state as the clean run.

The invariants are the fleet's own (`Fleet.check`): here Hypothesis looks for a history that breaks them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amounts import examples
from outvote.core.task import Task
from outvote.core.votes.player import ARM_TRANSITIONS

from .fleet import Fleet
from .tasks import SEEDS, Rewards, ShortTask, pace, rewards, tasks

Step = tuple[str, int]
"""What happens, and a seed for its details."""
KINDS = (
    *("all play", "one plays", "one plays", "decide ahead", "answer"),
    *("deliver", "deliver", "lose", "resend", "catch up", "settle"),
    *("save a site", "crash a site", "save the server", "crash the server"),
)
PLANS = st.lists(st.tuples(st.sampled_from(KINDS), SEEDS), min_size=10, max_size=60)


def happen(fleet: Fleet, kind: str, rng: random.Random) -> None:
    site = rng.choice(fleet.sites)
    match kind:
        case "all play":
            for each in fleet.sites:
                fleet.play(each, rng.randint(1, 24) * pace(fleet.task) * len(fleet.task.arms), rng)
        case "one plays":
            fleet.play(site, rng.randint(1, 40) * pace(fleet.task), rng, prompt=rng.random() < 0.7)
        case "decide ahead":
            fleet.decide_ahead(site, rng.randint(1, 30))
        case "answer":
            fleet.answer(site, rng, share=rng.choice([0.3, 0.7, 1.0]))
            fleet.close_due(site)
        case "deliver":
            fleet.deliver(rng.randint(1, 20), rng, again=0.2)
        case "lose":
            fleet.lose(rng, share=rng.choice([0.3, 0.7, 1.0]))
        case "resend":
            fleet.resend(site)
        case "catch up":
            fleet.catch_up(site, together=rng.random() < 0.5)
        case "settle":
            fleet.settle(rng)
        case "save a site":
            site.save()
        case "crash a site":
            fleet.crash_site(site)
        case "save the server":
            fleet.save_server()
        case "crash the server":
            fleet.crash_server(back=rng.choice([0, 1, 5, 1000]))


def run(fleet: Fleet, plan: Sequence[Step]) -> None:
    for kind, seed in plan:
        happen(fleet, kind, random.Random(seed))
        fleet.check()
    fleet.settle(random.Random(0))


@pytest.mark.parametrize("protocol", ["dme", "edme"])
@examples(150)
@given(data=st.data(), plan=PLANS)
def test_whatever_happens_to_messages_and_machines_it_ends_as_its_clean_run(
    protocol: str, data: st.DataObject, plan: list[Step]
) -> None:
    task = data.draw(tasks(protocol, window=data.draw(st.sampled_from([False, False, True]))))
    run(Fleet(task, data.draw(rewards(task))), plan)


def test_seeded_runs_see_every_transition_and_every_mishap() -> None:
    """Without this the test above could pass because nothing ever happens in it."""
    transitions: set[tuple[str, str]] = set()
    happened: Counter[str] = Counter()
    for seed in range(20):
        fleet = seeded_run(seed)
        transitions |= fleet.transitions
        happened.update({what: 1 for what, times in fleet.happened.items() if times})
    assert transitions == set(ARM_TRANSITIONS)
    assert {what for what, runs in happened.items() if runs >= 5} >= {
        *("eliminations", "finished", "ties", "empty candidate sets", "votes held out of order"),
        *("duplicate votes", "lost messages", "player crashes that lost something", "stale rewards"),
        "server crashes that read votes again",
    }


def seeded_run(seed: int) -> Fleet:
    """A run of two hundred random steps, the same for the same seed."""
    rng = random.Random(seed)
    arms, players = rng.randint(3, 6), rng.randint(2, 5)
    shape = {"arms": arms, "players": players, "epsilon": 0.9, "delta": 0.9}
    task: Task
    if seed % 2:
        task = ShortTask([(2, 1), (3, 1)], protocol="edme", instances=2, **shape)
    else:
        task = ShortTask([(2, 1)], protocol="dme", active_players=rng.randint(1, players), **shape)
    levels = [[rng.randint(0, 8) for _ in range(arms)] for _ in range(players)]
    fleet = Fleet(task, Rewards(levels, steady=seed % 3 == 0))
    run(fleet, [(rng.choice(KINDS), rng.randrange(2**16)) for _ in range(200)])
    return fleet
