"""Worlds in which nothing is alike: what differs by site and visitor, what moves, and sites that die or decide by day.

Statistical tests allow six standard errors of a seeded sample: each is a false alarm in 1e8 or less.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from outvote.core.errors import InvalidSettings
from outvote.core.messages import Block, UpMessage
from outvote.simulation import Environment, simulate
from outvote.simulation.activity import Visitors
from outvote.simulation.compiled import run_step
from outvote.simulation.engines import run_trials
from outvote.simulation.environments import Means, puller
from outvote.simulation.fleets import ServedFleet, make_fleet
from outvote.simulation.settings import read_settings
from outvote.simulation.stepwise import run_trial
from outvote.simulation.streams import generator

SMALL: dict[str, Any] = {"means": (0.7, 0.3), "players": 3, "horizon": 600, "trials": 2, "grid": 3}
WHOLE: dict[str, Any] = {
    "site_spread": 0.6, "spread": 0.1, "visits": 5, "visitor_spread": 0.5, "cycle": (0.1, 200), "jumps": (0.1, 70),
    "swap": 400, "drop": 0.01, "per_day": 200,
}  # fmt: skip


def started(means: Any, *, players: int = 5, horizon: int = 100, seed: int = 0, **options: Any) -> Means:
    return Environment(means, **options).start(players=players, horizon=horizon, rng=np.random.default_rng(seed))


def logit(mean: float) -> float:
    return math.log(mean / (1 - mean))


def sites(world: Means, players: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The log odds of each player's means."""
    return np.array([[logit(mean) for mean in world(player, 1, None, None)] for player in range(players)])


def near_normal(values: np.ndarray[Any, np.dtype[np.float64]], mean: float, spread: float) -> None:
    """Mean and standard deviation are those of a normal law, within six standard errors."""
    assert values.mean() == pytest.approx(mean, abs=6 * spread / math.sqrt(len(values)))
    assert values.std() == pytest.approx(spread, abs=6 * spread / math.sqrt(2 * len(values)))


# ---- sites


def test_a_site_shifts_the_log_odds_of_all_its_arms_alike() -> None:
    found = sites(started((0.7, 0.2, 0.05), players=10_000, site_spread=0.6), 10_000)
    near_normal(found[:, 0], logit(0.7), 0.6)
    assert found[:, 0] - found[:, 1] == pytest.approx(logit(0.7) - logit(0.2))
    assert found[:, 1] - found[:, 2] == pytest.approx(logit(0.2) - logit(0.05))


def test_shifts_of_a_site_and_of_its_arms_add_up() -> None:
    found = sites(started((0.5, 0.5), players=10_000, site_spread=0.4, spread=0.3), 10_000)
    near_normal(found[:, 0], 0.0, 0.5)
    near_normal(found[:, 0] - found[:, 1], 0.0, 0.3 * math.sqrt(2))  # the site's own shift cancels


def test_rows_of_means_are_shifted_each_by_its_site() -> None:
    found = sites(started([(0.7, 0.2), (0.2, 0.7)], players=2, site_spread=1.0), 2)
    assert found[0, 0] - found[0, 1] == pytest.approx(logit(0.7) - logit(0.2))
    assert found[1, 1] - found[1, 0] == pytest.approx(logit(0.7) - logit(0.2))
    assert found[0, 0] != pytest.approx(found[1, 1])


# ---- visitors


@pytest.mark.parametrize("visits", [1, 1.5, 5, 20])
def test_visitors_make_a_geometric_number_of_decisions(visits: float) -> None:
    decisions = 100_000
    visitors = Visitors(visits, 1, Random(1))
    runs = Counter(visitors.next(0) for _ in range(decisions))
    assert set(runs) == set(range(len(runs)))  # one after another
    leaves = 1 / visits
    came = decisions * leaves  # the first comes for sure, the others where one leaves
    assert len(runs) == pytest.approx(came, abs=1 + 6 * math.sqrt(came * (1 - leaves)))
    for made in (1, 2, 7):
        share = leaves * (1 - leaves) ** (made - 1)
        found = sum(count == made for count in runs.values()) / len(runs)
        assert found == pytest.approx(share, abs=1 / len(runs) + 6 * math.sqrt(share * (1 - share) / len(runs)))


def test_each_visitor_stays_at_one_site_until_the_next_comes() -> None:
    visitors, players = Visitors(3, 4, Random(2)), Random(3)
    seen = [(player, visitors.next(player)) for player in players.choices(range(4), k=5_000)]
    assert len(set(seen)) == len({visitor for _, visitor in seen})
    for player in range(4):
        mine = [visitor for each, visitor in seen if each == player]
        assert mine == sorted(mine)


def test_a_visitor_prefers_arms_by_shifts_of_its_own() -> None:
    world = started((0.7, 0.2), players=2, site_spread=1.0, visitor_spread=0.5)
    site = sites(world, 2)
    found = np.array([[logit(mean) for mean in world(0, 1, visitor, None)] for visitor in range(10_000)]) - site[0]
    near_normal(found[:, 0], 0.0, 0.5)
    near_normal(found[:, 1], 0.0, 0.5)
    assert np.corrcoef(found.T)[0, 1] == pytest.approx(0.0, abs=6 / math.sqrt(10_000))
    assert sites(world, 2) == pytest.approx(site)


def test_a_visitor_keeps_its_preferences_while_it_stays() -> None:
    world = started((0.7, 0.2), cycle=(0.1, 8), visitor_spread=0.5)
    first, elsewhere = world(0, 8, 0, None), world(1, 8, 1, None)
    assert first != elsewhere
    assert world(0, 8, None, None) == (0.7, 0.2)
    assert world(0, 16, 0, None) == first
    assert world(1, 16, 1, None) == elsewhere
    assert world(0, 8, 2, None) != first


def test_rewards_come_from_the_visitor_and_regret_from_the_site() -> None:
    environment = Environment(lambda player, time, visitor, context: (0.8, 0.3) if visitor is None else (0.1, 0.9))
    world = environment.start(players=1, horizon=1, rng=np.random.default_rng(0))
    pull = puller(environment, world, lambda player: 7)
    assert pull(0, 0, 1, 0.5) == (0.0, 0.0)
    assert pull(0, 1, 1, 0.5) == (1.0, 0.5)


# ---- what moves


def test_a_cycle_is_a_sine_over_draws_and_the_same_for_all_arms() -> None:
    world = started((0.3, 0.5), cycle=(0.2, 12))
    for time, level in ((1, 0.1), (3, 0.2), (6, 0.0), (7, -0.1), (9, -0.2), (12, 0.0), (15, 0.2)):
        assert list(world(4, time, None, None)) == pytest.approx([0.3 + level, 0.5 + level])


def test_a_jump_lasts_for_its_period_and_a_fair_coin_decides_on_it() -> None:
    periods = 10_000
    world = started((0.3, 0.5), jumps=(0.25, 7), horizon=7 * periods)
    levels = [world(0, time, None, None) for time in range(1, 7 * periods + 1)]
    assert {tuple(means) for means in levels} == {(0.3, 0.5), (0.55, 0.75)}
    assert all(len({tuple(means) for means in levels[at : at + 7]}) == 1 for at in range(0, len(levels), 7))
    up = [means[0] > 0.4 for means in levels[::7]]
    assert sum(up) / periods == pytest.approx(0.5, abs=6 * 0.5 / math.sqrt(periods))
    changes = sum(a != b for a, b in pairwise(up))
    assert changes / periods == pytest.approx(0.5, abs=6 * 0.5 / math.sqrt(periods))
    assert world(3, 7 * periods, None, None) == levels[-1]


def test_the_last_period_of_jumps_may_be_cut_short() -> None:
    world = started((0.3, 0.5), jumps=(0.25, 7), horizon=8)
    assert world(0, 8, None, None)[0] in (0.3, 0.55)


def test_the_best_arm_and_the_second_change_places_from_a_draw_on() -> None:
    world = started((0.1, 0.5, 0.3, 0.7, 0.5), swap=10)
    assert list(world(0, 9, None, None)) == [0.1, 0.5, 0.3, 0.7, 0.5]
    assert list(world(0, 10, None, None)) == list(world(2, 99, None, None)) == [0.1, 0.7, 0.3, 0.5, 0.5]


def test_what_moves_moves_before_what_shifts() -> None:
    shift = sites(started((0.7, 0.3), site_spread=0.8, seed=5), 5)[:, 0] - logit(0.7)
    world = started((0.7, 0.3), site_spread=0.8, seed=5, swap=50, cycle=(0.2, 40), drift_to=(0.5, 0.2))
    # At draw 50 of 100 the drift is half-way, at (.6, .25); they are swapped; and the second sine is at its peak.
    for player in range(5):
        found = [logit(mean) for mean in world(player, 50, None, None)]
        assert found == pytest.approx([logit(0.25 + 0.2) + shift[player], logit(0.6 + 0.2) + shift[player]])


def test_levels_that_rounding_takes_past_the_ends_stay_at_them() -> None:
    world = started((0.6, 0.1), cycle=(0.1, 4), jumps=(0.3, 4), horizon=4_000)
    means = [mean for time in range(1, 4_001) for mean in world(0, time, None, None)]
    assert min(means) == 0.0
    assert 1 - 1e-12 < max(means) <= 1.0


# ---- what cannot be


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"site_spread": -1}, ["site_spread", "at least 0", "got -1"]),
        ({"site_spread": math.nan}, ["site_spread", "at least 0", "got nan"]),
        ({"visitor_spread": math.inf, "visits": 2}, ["visitor_spread", "at least 0", "got inf"]),
        ({"visitor_spread": 1}, ["visitor_spread needs visits", "got 1 alone"]),
        ({"visits": 0.5}, ["visits", "at least 1", "got 0.5"]),
        ({"visits": math.nan}, ["visits", "at least 1", "got nan"]),
        ({"cycle": (0.1,)}, ["cycle", "like .1,2000", "got (0.1,)"]),
        ({"cycle": (-0.1, 10)}, ["cycle", "at least 0", "got (-0.1, 10)"]),
        ({"cycle": (math.nan, 10)}, ["cycle", "at least 0", "nan"]),
        ({"cycle": (0.1, 0)}, ["cycle", "whole number of draws", "(0.1, 0)"]),
        ({"cycle": (0.1, math.inf)}, ["cycle", "whole number of draws", "inf"]),
        ({"cycle": (0.31, 10)}, ["cycle must leave means from 0 to 1", "-0.01 to 1.01"]),
        ({"cycle": (0.2, 10), "jumps": (0.2, 10)}, ["cycle must leave means from 0 to 1", "0.1 to 1.1"]),
        ({"jumps": (0.4, 10)}, ["jumps must leave means from 0 to 1", "0.3 to 1.1"]),
        ({"jumps": (-0.1, 10)}, ["jumps", "at least 0", "got (-0.1, 10)"]),
        ({"jumps": (0.1, 2.5)}, ["jumps", "whole number of draws", "2.5"]),
        ({"swap": 0}, ["swap", "from 1 on", "got 0"]),
        ({"swap": 1.5}, ["swap", "from 1 on", "got 1.5"]),
        ({"swap": math.nan}, ["swap", "from 1 on", "got nan"]),
        ({"swap": 5, "means": [(0.7, 0.3)] * 3}, ["swap cannot go with means that differ by player"]),
        ({"means": lambda *where: (0.7, 0.3), "site_spread": 1}, ["site_spread cannot go with", "a function"]),
        ({"means": lambda *where: (0.7, 0.3), "swap": 1}, ["swap cannot go with", "a function"]),
        ({"means": lambda *where: (0.7, 0.3), "cycle": (0.1, 9)}, ["cycle cannot go with", "a function"]),
        ({"drop": -0.1}, ["drop", "at least 0 and below 1", "got -0.1"]),
        ({"drop": 1}, ["drop", "below 1", "got 1"]),
        ({"drop": math.nan}, ["drop", "below 1", "got nan"]),
        ({"drop": 0.1, "protocol": "me-local"}, ["drop", "the baseline 'me-local'", "got 0.1"]),
        ({"drop": 0.1, "liars": 1}, ["drop", "players that lie", "got 0.1"]),
        ({"per_day": 0}, ["per_day", "at least 0.001", "got 0"]),
        ({"per_day": math.inf}, ["per_day", "at least 0.001", "got inf"]),
        ({"per_day": math.nan}, ["per_day", "at least 0.001", "got nan"]),
    ],
)
def test_a_world_that_cannot_be_is_refused(options: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(InvalidSettings) as caught:
        read_settings(**{**SMALL, **options})
    for part in parts:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_environment_of_ones_own_has_all_of_the_means() -> None:
    for options in ({"site_spread": 0.5}, {"visitor_spread": 0.5}, {"swap": 5}, {"cycle": (0.1, 9)}):
        with pytest.raises(InvalidSettings, match=f"{next(iter(options))} is part of an environment"):
            read_settings(environment=Environment((0.7, 0.3)), **options)


# ---- sites that die


@pytest.mark.parametrize(("protocol", "decisions"), [("tally", 3), ("blocks", 6)])
def test_what_is_open_is_sent_unless_its_site_dies_in_it(protocol: str, decisions: int) -> None:
    """The first tally has 3 decisions, the first block 3 of each arm; one site, as many draws as that."""
    trials, drop = 2_000, 0.2
    found = simulate(
        protocol=protocol, means=(0.7, 0.3), players=1, horizon=decisions, trials=trials, grid=1, drop=drop, floor=3
    )
    survives = (1 - drop) ** decisions
    assert found.messages.up == pytest.approx(survives, abs=6 * math.sqrt(survives * (1 - survives) / trials))


@pytest.mark.parametrize("protocol", ["tally", "blocks"])
def test_a_site_that_died_starts_anew_with_what_it_had_saved(protocol: str) -> None:
    """All before the crash failed, all after it succeeds: nothing of before is in what is sent."""
    fleet = make_fleet(read_settings(protocol=protocol, means=(0.7, 0.3), players=1, floor=3), Random(0))
    assert isinstance(fleet, ServedFleet)
    sent: list[UpMessage] = []
    for now, reward in [(1, 0.0), (2, 0.0), *((now, 1.0) for now in range(3, 20))]:
        player = fleet.members[0]
        ticket = player.decide(now)
        if now == 2:
            fleet.restart(0, ticket, now)
            assert fleet.members[0] is not player
            continue
        player.reward(ticket, reward, now)
        sent += player.tick(now)
    counts = [each.counts if isinstance(each, Block) else ((each.trials, each.successes),) for each in sent]  # type: ignore[union-attr]
    assert sent[0].sequence == 1  # 0 was lost
    assert all(n == s > 0 for each in counts for n, s in each)


def test_a_site_that_dies_at_the_last_decision_of_a_block_loses_the_block() -> None:
    fleet = make_fleet(read_settings(protocol="blocks", means=(0.7, 0.3), players=1, floor=3), Random(0))
    assert isinstance(fleet, ServedFleet)
    sent: list[UpMessage] = []
    for now in range(1, 13):
        ticket = fleet.members[0].decide(now)
        if now == 6:
            fleet.restart(0, ticket, now)
        else:
            fleet.members[0].reward(ticket, 1.0, now)
            sent += fleet.members[0].tick(now)
    assert [each.sequence for each in sent] == [1]


def test_of_votes_each_death_loses_one_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    """A player of `dme` counts each decision at once; the one whose reward had not come is lost."""
    deaths = 0
    restart = ServedFleet.restart

    def counted(fleet: ServedFleet, *rest: Any) -> None:
        nonlocal deaths
        deaths += 1
        restart(fleet, *rest)

    fleets: list[ServedFleet] = []
    made = ServedFleet.__init__

    def kept(fleet: ServedFleet, *rest: Any) -> None:
        made(fleet, *rest)
        fleets.append(fleet)

    monkeypatch.setattr(ServedFleet, "restart", counted)
    monkeypatch.setattr(ServedFleet, "__init__", kept)
    draws, drop = 4_000, 0.05
    simulate(protocol="dme", means=(0.7, 0.3), players=3, horizon=draws, trials=1, drop=drop)
    [fleet] = fleets
    pulls = sum(member.pulls(arm) for member in fleet.members for arm in (0, 1))  # type: ignore[attr-defined]
    assert pulls == draws - deaths
    assert deaths == pytest.approx(draws * drop, abs=6 * math.sqrt(draws * drop * (1 - drop)))


# ---- decisions a day


def test_time_is_the_number_of_the_draw_or_so_many_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of four sites wake and make 100 decisions a day: 300 draws, one each 288 s."""
    options: dict[str, Any] = {"protocol": "tally", "means": (0.7, 0.3), "players": 4, "dead": 1, "horizon": 40}
    for per_day, milliseconds in ((None, 1), (100, 288_000), (7_000_000, 86_400_000 / 21_000_000)):
        heard: list[tuple[int, int | None]] = []
        monkeypatch.setattr(ServedFleet, "handle", lambda *rest, heard=heard: heard.append(rest[3:]))
        run_trials(read_settings(**options, per_day=per_day, trials=1, engine="core"), 0, 1, lambda draws: None)
        assert heard
        assert all(now == int(draw * milliseconds) for draw, now in heard)


def test_a_block_closes_by_its_age_before_the_next_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 12.5 decisions a day the fifth block, planned for 14, is a day old after 13; at 14.5 it is not."""
    blocks: list[Block] = []
    monkeypatch.setattr(ServedFleet, "handle", lambda *rest: blocks.extend(rest[2]))
    settings = read_settings(
        protocol="blocks",
        means=(0.7, 0.3),
        players=1,
        floor=3,
        horizon=4 * 6 + 14,
        trials=1,
        per_day=12.5,
        engine="core",
    )
    run_trials(settings, 0, 1, lambda draws: None)
    assert [sum(n for n, _ in block.counts) for block in blocks] == [6, 6, 6, 6, 13]
    blocks.clear()
    run_trials(replace(settings, per_day=14.5), 0, 1, lambda draws: None)
    assert [sum(n for n, _ in block.counts) for block in blocks] == [6, 6, 6, 6, 14]


# ---- all of it together


@pytest.mark.parametrize("protocol", ["dme", "edme", "tally", "blocks", "me-local", "me-unlimited", "ucb-unlimited"])
def test_every_protocol_runs_in_every_world_and_the_same_seed_gives_the_same(protocol: str) -> None:
    options = WHOLE | ({} if protocol in ("dme", "edme", "tally", "blocks") else {"drop": 0})
    first, again = (simulate(protocol=protocol, **SMALL, **options, workers=workers) for workers in (1, 2))
    assert replace(first, seconds=0) == replace(again, seconds=0)
    assert first.engine == "core"
    assert first.regret != simulate(protocol=protocol, **SMALL, **options, seed=1).regret


@pytest.mark.parametrize("name", WHOLE)
def test_each_part_of_a_world_changes_what_comes_out(name: str) -> None:
    """UCB1 minds every reward; it has nothing to lose, so the site that dies runs Tally."""
    options: dict[str, Any] = SMALL | {"protocol": "tally" if name == "drop" else "ucb-unlimited", "engine": "core"}
    changed = options | {name: WHOLE[name]} | ({"visits": 5} if name == "visitor_spread" else {})
    same = simulate(**options).regret == simulate(**changed).regret
    assert same == (name in ("visits", "per_day"))  # visitors alike; and UCB1 has no clock


def test_json_describes_the_whole_world() -> None:
    record = simulate(protocol="tally", **SMALL, **WHOLE).to_json()
    assert {name: record[name] for name in WHOLE} == WHOLE | {"cycle": [0.1, 200], "jumps": [0.1, 70]}
    plain = simulate(protocol="tally", **SMALL).to_json()
    assert {name: plain[name] for name in WHOLE} == {
        "site_spread": 0, "spread": 0, "visits": None, "visitor_spread": 0, "cycle": None, "jumps": None,
        "swap": None, "drop": 0, "per_day": None,
    }  # fmt: skip


# ---- lost and undecided


@pytest.mark.parametrize("protocol", ["dme", "me-local", "me-unlimited"])
def test_the_best_arm_is_lost_if_it_becomes_so_after_its_end(protocol: str) -> None:
    """Rewards without chance: each player of two plays each arm 318 times and keeps arm 0."""
    options: dict[str, Any] = {"means": (1, 0), "players": 2, "epsilon": 0.8, "delta": 0.5, "trials": 2}
    long = simulate(protocol=protocol, **options, horizon=8_000)
    assert (long.lost, long.undecided, long.best) == (0, 0, 1)
    short = simulate(protocol=protocol, **options, horizon=500)
    assert (short.lost, short.undecided, short.best) == (0, 1, 0)
    late = simulate(protocol=protocol, **options, horizon=8_000, swap=7_000)
    assert (late.lost, late.undecided, late.best) == (1, 0, 0)


def test_a_fleet_loses_what_is_best_on_average_over_its_draws() -> None:
    """Arm 1 is best at one site of two, which has a tenth of the draws; the fleet keeps arm 0."""
    means = [(1.0, 0.0), (0.4, 0.6)]
    options: dict[str, Any] = {"protocol": "tally", "means": means, "players": 2, "horizon": 3_000, "trials": 20}
    found = simulate(**options, activity=(9, 1))
    assert (found.lost, found.undecided, found.best) == (0, 0, 0)


def test_who_eliminates_nothing_loses_nothing() -> None:
    for engine in ("core", "fast"):
        found = simulate(protocol="ucb-unlimited", **SMALL, engine=engine)
        assert (found.lost, found.undecided) == (0, 1)


def test_kernels_find_the_same_losses_as_the_core() -> None:
    for protocol in ("dme", "me-local"):
        settings = read_settings(
            protocol=protocol, means=(0.52, 0.48), players=4, epsilon=0.9, delta=0.9, horizon=3_000, trials=1, grid=1
        )
        seeds = [np.random.SeedSequence(number) for number in range(30)]
        core = [run_trial(settings, seed, lambda draws: None).lost for seed in seeds]
        assert core == [run_step(settings, 1, generator(seed))[0].lost for seed in seeds]
        assert 0 < sum(core) < 30
