"""Any order of delivery, loss, repetition and restart ends in the same state as the clean run.

The invariants are the fleet's own (`Fleet.check`): here Hypothesis looks for a history that breaks them.
"""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from amounts import examples
from outvote.core.task import Task
from outvote.core.votes.player import ARM_TRANSITIONS

from .fleet import Fleet, Site
from .tasks import SEEDS, Rewards, ShortTask, pace, rewards, tasks

SITES = st.integers(0, 59)  # a multiple of every number of players: all sites are drawn equally often
SHARES = st.sampled_from([0.3, 0.7, 1.0])


class AnyDelivery(RuleBasedStateMachine):
    """One fleet, to which everything happens that a network and its machines can do.

    Hypothesis leaves out some rules in each run, so the rules are few and broad: most runs have what they need to
    get to votes and beyond.
    """

    protocol = "dme"
    fleet: Fleet

    @initialize(data=st.data(), laps=st.integers(0, 30), steps=st.integers(0, 8), seed=SEEDS)
    def start(self, data: st.DataObject, laps: int, steps: int, seed: int) -> None:
        task = data.draw(tasks(self.protocol, window=data.draw(st.sampled_from([False, False, True]))))
        self.fleet = Fleet(task, data.draw(rewards(task)))
        self.play_much(index=0, everybody=True, laps=laps, seed=seed)
        self.storm(steps=steps, seed=seed)

    def site(self, index: int) -> Site:
        return self.fleet.sites[index % len(self.fleet.sites)]

    # ---- at the sites

    @rule(index=SITES, draws=st.integers(1, 12), seed=SEEDS, prompt=st.booleans())
    def play_a_little(self, index: int, draws: int, seed: int, prompt: bool) -> None:
        self.fleet.play(self.site(index), draws, random.Random(seed), prompt=prompt)

    @rule(index=SITES, everybody=st.booleans(), laps=st.integers(1, 24), seed=SEEDS)
    def play_much(self, index: int, everybody: bool, laps: int, seed: int) -> None:
        rng = random.Random(seed)
        for site in self.fleet.sites if everybody else [self.site(index)]:
            self.fleet.play(site, laps * pace(self.fleet.task) * len(self.fleet.task.arms), rng)

    @rule(index=SITES, draws=st.integers(0, 30), share=st.none() | SHARES, seed=SEEDS)
    def be_late(self, index: int, draws: int, share: float | None, seed: int) -> None:
        """Decisions without rewards, and perhaps rewards for earlier ones."""
        if share is not None:
            self.fleet.answer(self.site(index), random.Random(seed), share=share)
            self.fleet.close_due(self.site(index))
        self.fleet.decide_ahead(self.site(index), draws)

    @rule(index=SITES, crash=st.booleans())
    def save_or_crash_a_site(self, index: int, crash: bool) -> None:
        if crash:
            self.fleet.crash_site(self.site(index))
        else:
            self.site(index).save()

    # ---- on the link

    @rule(pick=st.integers(0, 999), up=st.booleans(), again=st.booleans())
    def a_message_arrives(self, pick: int, up: bool, again: bool) -> None:
        flight = self.fleet.up if up else self.fleet.down
        if flight:
            deliver = self.fleet.deliver_up if up else self.fleet.deliver_down
            deliver(pick % len(flight), again=again)

    @rule(count=st.integers(2, 20), seed=SEEDS)
    def messages_arrive(self, count: int, seed: int) -> None:
        self.fleet.deliver(count, random.Random(seed), again=0.2)

    @rule(seed=SEEDS, share=SHARES)
    def messages_are_lost(self, seed: int, share: float) -> None:
        self.fleet.lose(random.Random(seed), share=share)

    @rule(index=SITES, up=st.booleans(), together=st.booleans())
    def messages_are_sent_again(self, index: int, up: bool, together: bool) -> None:
        if up:
            self.fleet.resend(self.site(index))
        else:
            self.fleet.catch_up(self.site(index), together=together)

    @rule(steps=st.integers(2, 12), seed=SEEDS)
    def storm(self, steps: int, seed: int) -> None:
        """A bit of everything, so that runs without the other rules get deep too."""
        storm(self.fleet, random.Random(seed), steps=steps)

    @rule(seed=SEEDS)
    def settle(self, seed: int) -> None:
        self.fleet.settle(random.Random(seed))

    # ---- at the server

    @rule(back=st.sampled_from([None, 0, 1, 1000]))
    def save_or_crash_the_server(self, back: int | None) -> None:
        if back is None:
            self.fleet.save_server()
        else:
            self.fleet.crash_server(back=back)

    # ---- always

    @invariant()
    def holds(self) -> None:
        self.fleet.check()

    def teardown(self) -> None:
        if hasattr(self, "fleet"):  # else the machine did not even start
            self.fleet.settle(random.Random(0))


class AnyDeliveryToInstances(AnyDelivery):
    """The same for M instances that share their events and eliminations."""

    protocol = "edme"


# A hundred runs each: five times as many as show every transition and every mishap below.


def test_dme_ends_as_its_clean_run_whatever_happens_to_messages_and_machines() -> None:
    run_state_machine_as_test(AnyDelivery, settings=settings(examples(100), stateful_step_count=40))


def test_edme_ends_as_its_clean_run_whatever_happens_to_messages_and_machines() -> None:
    run_state_machine_as_test(AnyDeliveryToInstances, settings=settings(examples(100), stateful_step_count=40))


def test_seeded_runs_see_every_transition_and_every_mishap() -> None:
    """Without this the machines above could pass because nothing ever happens in them."""
    transitions: set[tuple[str, str]] = set()
    happened: Counter[str] = Counter()
    for seed in range(20):
        fleet = seeded_run(seed)
        transitions |= fleet.transitions
        happened.update({what: 1 for what, times in fleet.happened.items() if times})
    assert transitions == set(ARM_TRANSITIONS)
    assert {what for what, runs in happened.items() if runs >= 5} >= {
        *("votes", "eliminations", "finished", "ties", "empty candidate sets", "votes held out of order"),
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
        task = ShortTask([(2, 1)], active_players=rng.randint(1, players), **shape)
    levels = [[rng.randint(0, 8) for _ in range(arms)] for _ in range(players)]
    fleet = Fleet(task, Rewards(levels, steady=seed % 3 == 0))
    storm(fleet, rng, steps=200)
    fleet.settle(rng)
    return fleet


def storm(fleet: Fleet, rng: random.Random, *, steps: int) -> None:
    """Random steps of every kind, one after the other."""
    for _ in range(steps):
        site = rng.choice(fleet.sites)
        match rng.randrange(12):
            case 0:
                site.save()
            case 1:
                fleet.crash_site(site)
            case 2:
                fleet.save_server()
            case 3:
                fleet.crash_server(back=rng.randrange(5))
            case 4:
                fleet.lose(rng, share=0.3)
            case 5:
                fleet.resend(site)
            case 6:
                fleet.catch_up(site, together=rng.random() < 0.5)
            case 7 | 8:
                fleet.deliver(rng.randint(1, 6), rng, again=0.2)
            case 9:
                fleet.decide_ahead(site, rng.randint(1, 10))
            case 10:
                fleet.answer(site, rng, share=0.7)
            case _:
                fleet.play(site, rng.randint(1, 40) * pace(fleet.task), rng, prompt=rng.random() < 0.7)
        fleet.check()
