"""Evidence where sites may lie: purses by hand, whose rounds they are, and what f sites can and cannot do."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

from outvote.core.messages import Elimination, PlayerId, Tally
from outvote.core.tally.bets import bets
from outvote.core.tally.cycle import Cycle
from outvote.core.tally.guarded import GuardedEvidence, Purses
from outvote.core.tally.noise import Channel
from outvote.core.tally.pool import Pool, alike, of_sites
from outvote.core.tally.server import TallyServer
from outvote.core.task import Task


def new_task(arms: int = 2, *, players: int = 5, tolerate: int = 1, **options: Any) -> Task:
    fields: dict[str, Any] = {"epsilon": 0, "delta": 0.05, "protocol": "tally", "floor": 3}
    return Task(arms=arms, players=players, tolerate=tolerate, **{**fields, **options})


def feed(found: GuardedEvidence, player: PlayerId, *rounds: Sequence[int], size: int = 3) -> None:
    """Tallies of all arms of one site, again and again."""
    for results in rounds:
        for arm, successes in enumerate(results):
            if arm in found.contenders:
                found.add(player, arm, size, successes)


# ---- purses


def test_a_purse_keeps_its_reserve_and_the_most_that_f_sites_put_in_is_taken_off() -> None:
    purses = Purses(1, 0.2)  # .2 of each purse is never bet
    purses.pay("a", math.log(6))  # .8·6 + .2 = 5
    purses.pay("b", math.log(3.5))  # .8·3.5 + .2 = 3
    purses.pay("c", -1000.0)  # all that was bet is lost: .2
    assert math.exp(purses.total) == pytest.approx(5 * 3 * 0.2)
    assert math.exp(purses.log_wealth) == pytest.approx(3 * 0.2), "a's fivefold is taken off"


def test_a_site_may_have_begun_to_lie_when_its_purse_was_at_its_lowest() -> None:
    purses = Purses(1, 0.2)
    purses.pay("a", math.log(1 / 8))  # .8/8 + .2 = .3
    purses.pay("a", math.log(8 * 3.5))  # .8·3.5 + .2 = 3
    purses.pay("b", math.log(2.25))  # .8·2.25 + .2 = 2
    assert math.exp(purses.log_wealth) == pytest.approx(3 * 2 / (3 / 0.3))


def test_with_no_site_to_spare_all_is_taken_off() -> None:
    purses = Purses(2, 0.4)
    purses.pay("a", math.log(100))
    assert purses.log_wealth == pytest.approx(0)


# ---- rounds


def test_a_round_is_of_one_site_alone() -> None:
    found = GuardedEvidence(new_task())
    found.add("a", 0, 3, 3)
    assert found.add("b", 1, 3, 0) == []
    assert found.rounds == 0
    assert (found.waiting(0), found.waiting(1)) == (1, 1)
    assert sorted(found.add("a", 1, 3, 0)) == [("a", 0, 3, 3), ("a", 1, 3, 0)]
    assert (found.rounds, found.waiting(1)) == (1, 1)


def test_a_round_waits_for_tallies_of_one_size() -> None:
    found = GuardedEvidence(new_task())
    found.add("a", 0, 3, 3)
    assert found.add("a", 1, 7, 0) == []
    assert len(found.add("a", 1, 3, 0)) == 2


def test_rounds_that_waited_for_an_arm_that_falls_are_played() -> None:
    found = GuardedEvidence(new_task(3, delta=0.5))
    found.add("z", 0, 3, 3)
    found.add("z", 1, 3, 2)  # and nothing of arm 2
    rounds = 0
    while 2 in found.contenders:
        for player in "abcd":
            feed(found, player, (3, 3, 0))
        rounds += 4
        assert rounds < 200
    assert found.waiting(0) == found.waiting(1) == 0, "z's round was played when arm 2 fell"


# ---- what f sites can and cannot do


@pytest.mark.parametrize("tolerate", [1, 2])
def test_f_sites_refute_nothing_and_f_plus_one_do(tolerate: int) -> None:
    found = GuardedEvidence(new_task(tolerate=tolerate))
    for liar in range(tolerate):
        feed(found, liar, *[(0, 127)] * 50, size=127)
    assert found.accounts[0].total > 900
    assert found.accounts[0].log_wealth == pytest.approx(0, abs=1e-9)
    assert found.contenders == [0, 1]
    feed(found, tolerate, (0, 127), size=127)
    assert found.contenders == [1]


def test_one_site_saves_no_arm_from_those_that_agree() -> None:
    found = GuardedEvidence(new_task(players=5))
    feed(found, "liar", *[(0, 127)] * 50, size=127)  # praises arm 1
    for player in "abcd":
        feed(found, player, *[(6, 2)] * 12, size=7)
    assert found.contenders == [0]


def test_one_site_does_not_choose_who_leads() -> None:
    found = GuardedEvidence(new_task(3, players=5))
    feed(found, "liar", *[(0, 0, 127)] * 50, size=127)
    for player in "abcd":
        feed(found, player, (5, 4, 1), (5, 4, 1), size=7)
    assert found.leader() == 0


def test_the_epsilon_stop_needs_more_than_one_site_too() -> None:
    alone, together = (GuardedEvidence(new_task(epsilon=0.3, delta=0.5)) for _ in range(2))
    feed(alone, "a", *[(60, 60)] * 100, size=127)
    assert alone.contenders == [0, 1]
    for player in "abcd":
        feed(together, player, *[(60, 60)] * 25, size=127)
    assert len(together.contenders) == 1


def test_a_bet_is_fair_whatever_liars_have_said_before() -> None:
    """Exact: over all that an honest site may report of arms that are equally good, the mean is at most 1."""
    rng = random.Random(5)
    for mean, budget in ((0.1, None), (0.5, None), (0.5, 1.0)):
        task = new_task(2, players=7, tolerate=2, privacy_budget=budget)
        found = GuardedEvidence(task)
        for _ in range(40):
            size = rng.choice(task.tally_sizes[:3])
            feed(found, rng.randrange(6), [rng.choice((0, size, rng.randint(0, size))) for _ in range(2)], size=size)
            if len(found.contenders) < 2:
                break
        kept = json.loads(json.dumps(found.snapshot() | {"contenders": [0, 1], "waiting": []}))
        law = Channel(3, budget).sent(mean)
        for player in (0, "new"):
            means = [0.0, 0.0]
            for results in itertools.product(range(4), repeat=2):
                twin = GuardedEvidence(task)
                twin.restore(kept)
                before = [account.total for account in twin.accounts]
                for arm, successes in enumerate(results):
                    twin.add(player, arm, 3, successes)
                assert twin.rounds == found.rounds + 1
                for arm in range(2):
                    paid = math.exp(twin.accounts[arm].total - before[arm])
                    means[arm] += law[results[0]] * law[results[1]] * paid
            assert max(means) <= 1 + 1e-9


# ---- the pool


def test_no_site_counts_for_more_than_the_busiest_after_f() -> None:
    quiet = [3, 1, 1, 1]  # one tally of three events, one success
    flood = [3000, 3000, 1000, 3000]
    pool = of_sites([quiet, quiet, flood], (3,), 1)
    assert pool.tallies == (1.0,), "of three, the flood and one of the others are left out: they pull most"
    assert pool.successes == (1.0,)


def test_both_ends_are_cut_off() -> None:
    cells = [[10, s, 1, s] for s in (0, 4, 5, 6, 10)]
    pool = of_sites(cells, (10,), 1)
    assert pool == Pool((3.0,), (15.0,))
    assert of_sites(cells[:2], (10,), 1) == Pool((2.0,), (4.0,)), "of so few none can be left out"
    assert of_sites([], (10,), 1) == Pool.empty(1)


def test_pools_that_are_compared_have_as_many_tallies() -> None:
    assert alike([Pool((4.0, 2.0), (8.0, 1.0)), Pool((2.0, 0.0), (2.0, 0.0))]) == [
        Pool((2.0, 0.0), (4.0, 0.0)),
        Pool((2.0, 0.0), (2.0, 0.0)),
    ]


def test_contributions_are_those_of_tallies_with_the_pools_mean() -> None:
    table = bets(3, None, 0.0)
    found = Pool((2.0,), (4.0,)).contributions(lambda index: table, "worse", 0.0)  # 2 of 3, twice
    assert found == pytest.approx([2 * each for each in table.worse[2]])
    assert Pool((1.0,), (3.0,)).contributions(lambda index: table, "better", 0.0) == pytest.approx(
        list(table.better[3])
    )


# ---- the server


def send(server: TallyServer, player: PlayerId, results: Sequence[int], lap: int, size: int = 3) -> list[Elimination]:
    cycle = Cycle(server.task)
    found = []
    for place in range(lap * len(results), (lap + 1) * len(results)):
        arm = cycle.arm(player, place)
        found += server.receive(player, Tally(arm, results[arm], size, place), 0)
    return found


def test_sites_that_differ_hold_nothing_back_where_each_is_compared_with_itself() -> None:
    believing = TallyServer(new_task(players=6, tolerate=0))
    guarded = TallyServer(new_task(players=6, tolerate=1))
    for server in (believing, guarded):
        for lap in range(80):
            for player in range(6):
                send(server, player, (3, 2) if player % 2 else (1, 0), lap)
    assert believing.held
    assert believing.winner is None
    assert not guarded.held
    assert guarded.winner == 0


def test_tallies_of_several_lives_are_of_one_site() -> None:
    server = TallyServer(new_task())
    cycle = Cycle(server.task)
    for life in range(20):
        for place in range(2):
            arm = cycle.arm("liar", place)
            server.receive("liar", Tally(arm, 127 * arm, 127, place), 0, incarnation=f"life-{life}")
    assert server.contenders == (0, 1)


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.2}, {"privacy_budget": 1.0}], ids=str)
def test_guarded_evidence_restored_at_any_step_goes_on_as_the_original(options: dict[str, Any]) -> None:
    task = new_task(3, players=5, tolerate=1, delta=0.5, **options)
    server, rng = TallyServer(task), random.Random(3)
    for lap in range(12):
        twin = TallyServer.restore(task, json.loads(json.dumps(server.snapshot())))
        for player in ("a", "b", "c", 3):
            results = [rng.randint(0, task.tally_sizes[0]) for _ in range(3)]
            size = task.tally_sizes[0]
            assert send(server, player, results, lap, size) == send(twin, player, results, lap, size)
        assert twin.snapshot() == server.snapshot()


def test_the_evidence_that_is_shown_is_what_is_left_without_f_sites() -> None:
    server = TallyServer(new_task())
    send(server, "liar", (0, 127), 0, 127)
    assert server.log_evidence(0) == pytest.approx(0)
    assert server.evidence_share(0) == pytest.approx(0)
