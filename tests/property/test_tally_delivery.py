"""Tally: any order of delivery, loss, repetition and restart ends in the state of a server that reads the log once.

The invariants are the fleet's own (`TallyFleet.check`): here Hypothesis looks for a history that breaks them.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from amounts import examples
from outvote.core.task import Task

from .tally_fleet import Site, TallyFleet
from .tasks import SEEDS, Rewards, rewards

SITES = st.integers(0, 59)
SHARES = st.sampled_from([0.3, 0.7, 1.0])


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
        "reward_window": draw(st.sampled_from([None, 60.0])),
    }
    return Task(protocol="tally", **fields)


class AnyTallyDelivery(RuleBasedStateMachine):
    """One fleet, to which everything happens that a network and its machines can do."""

    fleet: TallyFleet

    @initialize(data=st.data(), laps=st.integers(0, 20), steps=st.integers(0, 8), seed=SEEDS)
    def start(self, data: st.DataObject, laps: int, steps: int, seed: int) -> None:
        task = data.draw(tally_tasks())
        self.fleet = TallyFleet(task, data.draw(rewards(task)))
        self.play_much(index=0, everybody=True, laps=laps, seed=seed)
        self.storm(steps=steps, seed=seed)

    def site(self, index: int) -> Site:
        return self.fleet.sites[index % len(self.fleet.sites)]

    # ---- at the sites

    @rule(index=SITES, draws=st.integers(1, 12), seed=SEEDS, prompt=st.booleans())
    def play_a_little(self, index: int, draws: int, seed: int, prompt: bool) -> None:
        self.fleet.play(self.site(index), draws, random.Random(seed), prompt=prompt)

    @rule(index=SITES, everybody=st.booleans(), laps=st.integers(1, 20), seed=SEEDS)
    def play_much(self, index: int, everybody: bool, laps: int, seed: int) -> None:
        rng = random.Random(seed)
        for site in self.fleet.sites if everybody else [self.site(index)]:
            self.fleet.play(site, laps * 3 * len(self.fleet.task.arms), rng)

    @rule(index=SITES, draws=st.integers(0, 30), share=st.none() | SHARES, seed=SEEDS)
    def be_late(self, index: int, draws: int, share: float | None, seed: int) -> None:
        """Decisions without rewards, and perhaps rewards for earlier ones."""
        if share is not None:
            self.fleet.answer(self.site(index), random.Random(seed), share=share)
            if self.fleet.task.reward_window is not None:
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

    @rule(index=SITES, up=st.booleans())
    def messages_are_sent_again(self, index: int, up: bool) -> None:
        if up:
            self.fleet.resend(self.site(index))
        else:
            self.fleet.tell(self.site(index))

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


def test_tally_ends_as_its_log_read_once_whatever_happens_to_messages_and_machines() -> None:
    run_state_machine_as_test(AnyTallyDelivery, settings=settings(examples(70), stateful_step_count=20))


def test_seeded_runs_see_every_mishap() -> None:
    """Without this the machine above could pass because nothing ever happens in it."""
    happened: Counter[str] = Counter()
    for seed in range(20):
        happened.update({what: 1 for what, times in seeded_run(seed).happened.items() if times})
    assert {what for what, runs in happened.items() if runs >= 3} >= {
        *("tallies", "announcements", "finished", "held", "duplicate tallies", "late tallies", "lost messages"),
        *("player crashes that lost something", "stale rewards", "server crashes that read tallies again"),
        "announcements out of order",
    }


def seeded_run(seed: int) -> TallyFleet:
    """A run of a hundred and fifty random steps, the same for the same seed."""
    rng = random.Random(seed)
    arms, players = rng.randint(4, 8), rng.randint(2, 4)
    task = Task(
        arms=arms,
        players=players,
        epsilon=0,
        delta=0.5,
        protocol="tally",
        floor=rng.choice([2, 3]),
        reward_window=rng.choice([None, 60.0]),
        code=rng.choice(["implied", "binary"]),
    )
    shared = [8, 7, *(rng.randint(0, 4) for _ in range(arms - 2))]
    levels = [shared if seed % 2 else [rng.choice([1, 7]) for _ in range(arms)] for _ in range(players)]
    fleet = TallyFleet(task, Rewards(levels, steady=False))
    storm(fleet, rng, steps=150)
    fleet.settle(rng)
    return fleet


def storm(fleet: TallyFleet, rng: random.Random, *, steps: int) -> None:
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
                fleet.tell(site)
            case 7 | 8:
                fleet.deliver(rng.randint(1, 12), rng, again=0.2)
            case 9:
                fleet.decide_ahead(site, rng.randint(1, 10))
            case 10:
                fleet.answer(site, rng, share=0.7)
                if fleet.task.reward_window is not None:
                    fleet.close_due(site)
            case _:
                fleet.play(site, rng.randint(1, 90), rng, prompt=rng.random() < 0.7)
        fleet.check()
