"""Any order of delivery, loss, repetition and restart ends in the same state as the clean run.

The invariants are the fleet's own (`check`): here Hypothesis looks for a history that breaks them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amounts import examples
from outvote.core.task import Task
from outvote.core.votes.player import ARM_TRANSITIONS

from .fleet import Fleet
from .in_flight import AnyFleet
from .tally_fleet import TallyFleet
from .tasks import SEEDS, Rewards, ShortTask, pace, rewards, tasks

Step = tuple[str, int]
"""What happens, and a seed for its details."""
KINDS = (
    *("all play", "one plays", "one plays", "decide ahead", "answer", "wait"),
    *("deliver", "deliver", "lose", "resend", "catch up", "settle"),
    *("save a site", "crash a site", "crash and answer", "restart a site", "save the server", "crash the server"),
)
PLANS = st.lists(st.tuples(st.sampled_from(KINDS), SEEDS), min_size=10, max_size=60)


def happen(fleet: AnyFleet[Any], kind: str, rng: random.Random) -> None:
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
        case "wait":
            fleet.wait(rng.choice([0.1, 0.5, 1.0, 2.0]))
        case "deliver":
            fleet.deliver(rng.randint(1, 20), rng, again=0.2)
        case "lose":
            fleet.lose(rng, share=rng.choice([0.3, 0.7, 1.0]))
        case "resend":
            fleet.resend(site)
        case "catch up":
            fleet.tell(site, rng)
        case "settle":
            fleet.settle(rng)
        case "save a site":
            site.save()
        case "crash a site":
            fleet.restart_site(site, crashed=True)
        case "crash and answer":
            fleet.decide_ahead(site, rng.randint(1, 30))
            fleet.restart_site(site, crashed=True)
            fleet.answer(site, rng, share=0.7)
        case "restart a site":
            fleet.restart_site(site, crashed=False)
        case "save the server":
            fleet.save_server()
        case "crash the server":
            fleet.crash_server(back=rng.choice([0, 1, 5, 1000]))


def run(fleet: AnyFleet[Any], plan: Sequence[Step]) -> None:
    for kind, seed in plan:
        happen(fleet, kind, random.Random(seed))
        fleet.check()
    fleet.settle(random.Random(0))


@st.composite
def tally_tasks(draw: st.DrawFn) -> Task:
    """Small tasks of small tallies, and a δ that lets arms be refuted soon."""
    players = draw(st.sampled_from([2, 3, 4, 1]))
    fields: dict[str, Any] = {
        "arms": draw(st.sampled_from([3, 4, 5, 6, 2])),
        "players": [f"site-{player}" for player in range(players)] if draw(st.booleans()) else players,
        "epsilon": draw(st.sampled_from([0.0, 0.0, 0.3])),
        "delta": draw(st.sampled_from([0.5, 0.9])),
        "code": draw(st.sampled_from([None, "binary", "truncated"])),
        "floor": draw(st.sampled_from([2, 3])),
        "privacy_budget": draw(st.sampled_from([None, None, 1.0])),
        "reward_window": draw(st.sampled_from([0.0, 60.0])),
    }
    return Task(protocol="tally", **fields)


@pytest.mark.parametrize("protocol", ["dme", "edme", "tally"])
@examples(150)
@given(data=st.data(), plan=PLANS)
def test_whatever_happens_to_messages_and_machines_it_ends_as_its_clean_run(
    protocol: str, data: st.DataObject, plan: list[Step]
) -> None:
    if protocol == "tally":
        task = data.draw(tally_tasks())
        run(TallyFleet(task, data.draw(rewards(task))), plan)
    else:
        task = data.draw(tasks(protocol, window=data.draw(st.sampled_from([False, False, True]))))
        run(Fleet(task, data.draw(rewards(task))), plan)


MISHAPS = {
    *("announcements", "finished", "lost messages", "player crashes that lost something", "late rewards"),
    "refused rewards",
    "server crashes that read messages again",
}


def test_seeded_runs_see_every_transition_and_every_mishap() -> None:
    """Without this the test above could pass because nothing ever happens in it."""
    transitions: set[tuple[str, str]] = set()
    happened: Counter[str] = Counter()
    for seed in range(20):
        fleet = seeded_votes(seed)
        transitions |= fleet.transitions
        happened.update({what: 1 for what, times in fleet.happened.items() if times})
    assert transitions == set(ARM_TRANSITIONS)
    expected = MISHAPS | {"ties", "empty candidate sets", "votes held out of order", "duplicate votes"}
    assert {what for what, runs in happened.items() if runs >= 5} >= expected
    happened.clear()
    for seed in range(16):
        happened.update({what: 1 for what, times in seeded_tallies(seed).happened.items() if times})
    expected = MISHAPS | {"messages", "held", "duplicate tallies", "late tallies", "announcements out of order"}
    assert {what for what, runs in happened.items() if runs >= 3} >= expected


def seeded_plan(rng: random.Random, steps: int = 200) -> list[Step]:
    return [(rng.choice(KINDS), rng.randrange(2**16)) for _ in range(steps)]


def seeded_votes(seed: int) -> Fleet:
    """A run that is the same for the same seed."""
    rng = random.Random(seed)
    arms, players = rng.randint(3, 6), rng.randint(2, 5)
    shape = {"arms": arms, "players": players, "epsilon": 0.9, "delta": 0.9, "reward_window": rng.choice([0.0, 60.0])}
    task: Task
    if seed % 2:
        task = ShortTask([(2, 1), (3, 1)], protocol="edme", instances=2, **shape)
    else:
        task = ShortTask([(2, 1)], protocol="dme", active_players=rng.randint(1, players), **shape)
    levels = [[rng.randint(0, 8) for _ in range(arms)] for _ in range(players)]
    fleet = Fleet(task, Rewards(levels, steady=seed % 3 == 0))
    run(fleet, seeded_plan(rng))
    return fleet


def seeded_tallies(seed: int) -> TallyFleet:
    rng = random.Random(seed)
    arms, players, window = rng.randint(4, 8), rng.randint(2, 4), rng.choice([0.0, 60.0])
    code, floor = rng.choice(["implied", "binary"]), rng.choice([2, 3])
    task = Task(arms=arms, players=players, epsilon=0, delta=0.5, floor=floor, reward_window=window, code=code)
    shared = [8, 7, *(rng.randint(0, 4) for _ in range(arms - 2))]
    levels = [shared if seed % 2 else [rng.choice([1, 7]) for _ in range(arms)] for _ in range(players)]
    fleet = TallyFleet(task, Rewards(levels, steady=False))
    run(fleet, seeded_plan(rng, 100))
    return fleet
