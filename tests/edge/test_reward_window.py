"""Reward windows at an edge: real stores that are closed well or not, on a clock of the test's own.

That what a fleet pools is unbiased is checked for two ways of reporting. Of each case three arms are compared with
their exact binomial law; each comparison raises a false alarm with probability 1e-7 at most, so all of them together
with 6e-7. The seed is fixed. `statistical/test_reward_window.py` has more ways, and rules that fail.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from scipy import stats

from helpers.edge_http import ask, eliminate, host, task
from outvote.core.decisions import GROUP_COST, Ticket
from outvote.core.errors import UnknownDecision
from outvote.core.messages import Tally
from outvote.core.tally.server import TallyServer
from outvote.core.task import Task
from outvote.edge.hosted_task import HostedTask
from outvote.edge.site import LONGEST_WAIT, SAVE_SHARE, Edge
from outvote.edge.store import EdgeStore, Save
from outvote.log.memory import MemoryEngine
from outvote.log.records import UpSubject
from outvote.presenters.site_words import NOTICES
from outvote.server.sync_server import SyncServer
from statistical.test_reward_window import FALSE_ALARM, Report, only_successes, slow_successes

WINDOW = 60.0
CLOSED = WINDOW + 6.001
"""So many seconds after its last decision a group is closed: its window, a tenth of it, and a millisecond at most."""
START = 1_795_000_000.0


class Site:
    """An edge without a network. Its process can be ended, well or not, and started again."""

    def __init__(self, folder: Path) -> None:
        self.now = 0.0
        self.wall = START
        """What the clock on the wall says at time 0."""
        self._path = folder / "edge.db"
        self._starts = 0
        self.start()

    def start(self) -> None:
        self._starts += 1
        self.store = EdgeStore(self._path)
        wall, rng = lambda: self.wall + self.now, random.Random(self._starts)
        self.edge = Edge("ams", self.store, clock=lambda: self.now, wall_clock=wall, rng=rng)

    def restart(self) -> None:
        asyncio.run(self.edge.stop())
        self.crash()

    def crash(self) -> None:
        """What was not saved is lost."""
        self.store.close()
        self.start()

    @property
    def shop(self) -> HostedTask:
        return self.edge.find("shop")

    def decide(self, count: int) -> list[Ticket]:
        return [self.edge.decide(self.shop) for _ in range(count)]

    def reward(self, ticket: Ticket, reward: float = 1.0) -> None:
        """As an application sends it: by its text."""
        self.edge.reward(self.shop, Ticket.parse(str(ticket)), reward)

    def seen(self) -> dict[str, int]:
        """What came of decisions, of all arms."""
        return {name: sum(counts) for name, counts in self.shop.player.decisions.seen.snapshot().items()}

    def sent(self, after: float = 0.0) -> list[tuple[int, int]]:
        """Successes and events of all tallies, so many seconds from now."""
        self.now += after
        self.edge.tick()
        found = []
        for sequence, payload in self.store.messages("shop-1"):
            tally = self.shop.coder.read_up(UpSubject("ams", "shop-1", self.store.incarnation, sequence), payload)
            assert isinstance(tally, Tally)
            found.append((tally.successes, tally.trials))
        return found


@contextmanager
def a_site(folder: Path) -> Iterator[Site]:
    site = Site(folder)
    try:
        yield site
    finally:
        site.store.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """With a tally of three arms, of 3 decisions first."""
    with a_site(tmp_path) as site:
        host(site.edge, task("tally", reward_window=WINDOW))
        yield site


# ---- windows


def test_a_reward_counts_until_the_last_millisecond_of_its_window(site: Site) -> None:
    first, second, third = site.decide(3)
    assert first.at == 1000 * START
    site.now = WINDOW
    site.reward(first)
    site.now = WINDOW + 0.001
    site.reward(second)
    assert site.seen() == dict(decisions=3, rewards=1, successes=1, late=1, refused=0, out=0)
    site.reward(third, 0.0)
    assert site.sent(after=6.0) == [(1, 3)]


def test_each_decision_has_a_window_of_its_own(site: Site) -> None:
    [first] = site.decide(1)
    site.now = 50.0
    _, last = site.decide(2)
    site.now = WINDOW + 1.0
    site.reward(first)
    site.reward(last)
    assert (site.seen()["late"], site.seen()["successes"]) == (1, 1)
    assert site.sent(after=50.0 + WINDOW - site.now) == []  # the whole window of the last decision
    assert site.sent(after=6.001) == [(1, 3)]


def test_a_clock_on_the_wall_that_jumps_moves_no_window(site: Site) -> None:
    first, second, _ = site.decide(3)
    site.wall += 3600.0
    site.reward(first)
    site.wall -= 7200.0
    site.reward(second)
    assert site.sent(after=WINDOW) == []
    assert site.sent(after=CLOSED - WINDOW) == [(2, 3)]


def test_a_reward_of_an_arm_that_fell_meanwhile_is_ignored(site: Site) -> None:
    first, *_ = site.decide(3)
    eliminate(site.shop, first.arm)
    site.reward(first)
    assert (site.seen()["out"], site.seen()["rewards"]) == (1, 0)
    assert site.sent(after=CLOSED) == []


@pytest.mark.parametrize("protocol", ["dme", "edme"])
def test_votes_wait_for_windows_too(protocol: str, tmp_path: Path) -> None:
    """By pulls, which are counted when their group has closed."""
    with a_site(tmp_path) as site:
        player = host(site.edge, task(protocol, arms=2, reward_window=WINDOW)).player
        for ticket in site.decide(2000):
            site.reward(ticket, 0.5)
        assert player.snapshot()["pulls"] == [0, 0]
        assert player.decisions.open_decisions == 2000
        site.now = CLOSED
        site.edge.tick()
        counted = 2000 - player.decisions.open_decisions
        assert sum(player.snapshot()["pulls"]) == 2 * sum(player.snapshot()["totals"]) == counted > 0


# ---- restarts


def test_after_a_clean_stop_everything_goes_on(site: Site) -> None:
    first, second = site.decide(2)
    site.reward(first)
    site.restart()
    assert site.store.clean
    site.reward(second)
    [third] = site.decide(1)
    assert (third.run, third.group, third.place) == (first.run, first.group, 2)
    site.reward(third)
    assert site.seen() == dict(decisions=3, rewards=3, successes=3, late=0, refused=0, out=0)
    assert site.sent(after=WINDOW) == []
    assert site.sent(after=CLOSED - WINDOW) == [(3, 3)]


def test_a_group_that_waits_closes_when_it_would_have_without_a_restart(site: Site) -> None:
    site.decide(3)
    for end in (site.restart, site.crash):
        site.edge.tick()
        site.now += 20.0
        end()
    assert site.sent(after=WINDOW - 40.0) == []
    assert site.sent(after=CLOSED - WINDOW) == [(0, 3)]
    site.crash()
    assert site.sent(after=CLOSED) == [(0, 3)]  # it is not counted again


def test_after_a_crash_saved_decisions_can_be_rewarded_and_others_are_refused(site: Site) -> None:
    whole = site.decide(3)
    saved = site.decide(1)
    site.edge.tick()
    lost = site.decide(4)  # two of the group that was saved, two of one that was not
    site.now = 10.0
    site.crash()
    assert not site.store.clean
    again = site.decide(1)
    assert again[0].group == lost[-1].group
    assert again[0].run != lost[-1].run
    for ticket in (*whole, *saved, *again):
        site.reward(ticket)
    for ticket in lost:
        with pytest.raises(UnknownDecision):
            site.reward(ticket)
    assert site.seen() == dict(decisions=5, rewards=5, successes=5, late=0, refused=4, out=0)
    # The group that was cut has a size that no message has: nothing is said of it.
    assert site.sent(after=WINDOW + CLOSED) == [(3, 3)]
    assert site.shop.player.decisions.open_decisions == 1


def test_a_reward_that_was_not_saved_may_be_sent_again_after_a_crash(site: Site) -> None:
    first, *_ = site.decide(3)
    site.edge.tick()
    site.reward(first)
    site.crash()
    assert site.seen()["rewards"] == 0
    site.reward(first)
    site.reward(first)
    assert site.sent(after=CLOSED) == [(1, 3)]


def test_a_tally_that_is_sent_was_stored_with_the_state_after_it(site: Site) -> None:
    first, *_ = site.decide(3)
    site.reward(first)
    assert site.sent(after=CLOSED) == [(1, 3)]
    site.crash()
    assert site.shop.player.decisions.open_decisions == 0
    assert list(site.shop.unsent) == [first.group]
    assert site.sent(after=CLOSED) == [(1, 3)]


# ---- saves


def test_every_change_is_saved_with_the_next_tick_and_where_nothing_changed_nothing_is(site: Site) -> None:
    def saves() -> int:
        before = site.edge.saves
        site.edge.tick()
        return site.edge.saves - before

    assert saves() == 0
    first, *_ = site.decide(3)
    assert (saves(), saves()) == (1, 0)
    site.reward(first)
    assert (saves(), saves()) == (1, 0)
    site.now += CLOSED  # the tally closes
    assert (saves(), saves()) == (1, 0)
    site.reward(first)  # late
    assert (saves(), saves()) == (1, 0)
    site.edge.reward(site.shop, Ticket.parse("uncounted"), 1.0)
    assert saves() == 0


@pytest.mark.parametrize("took", [0.01, 1.0])
def test_after_a_slow_save_the_next_one_waits_and_messages_wait_with_it(
    took: float, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.decide(3)
    save = site.store.save

    def slow_save(saves: Iterable[Save]) -> None:
        save(saves)
        site.now += took

    monkeypatch.setattr(site.store, "save", slow_save)
    site.edge.tick()
    assert site.edge.save_seconds == pytest.approx(took)
    site.decide(1)
    wait = min(took / SAVE_SHARE, LONGEST_WAIT)
    assert site.sent(after=wait - 0.01) == []
    assert site.edge.saves == 1
    assert site.sent(after=0.02) == []
    assert site.edge.saves == 2
    assert site.sent(after=CLOSED) == [(0, 3)]


# ---- rate and capacity


def test_at_a_steady_rate_a_window_of_decisions_waits_and_all_are_counted(site: Site) -> None:
    """100 a second for 200 seconds."""
    rng, rewarded = random.Random(1), 0
    for second in range(200):
        for ticket in site.decide(100):
            if rng.random() < 0.3:
                site.reward(ticket)
                rewarded += 1
        site.edge.tick()
        site.now += 1.0
        # Beside them wait those of the last tally, which is not full: 127 take 1.3 s.
        assert site.shop.player.decisions.open_decisions <= 100 * min(second + 1, CLOSED + 1 + 2)
    tallies = site.sent(after=CLOSED)
    waiting = site.shop.player.snapshot()["decisions"]["groups"]
    open_now = [count for _, _, _, counts in waiting for count in counts]
    assert sum(trials for _, trials in tallies) + sum(decided for _, _, decided, _ in open_now) == 20_000
    assert sum(successes for successes, _ in tallies) + sum(total for *_, total in open_now) == rewarded
    assert site.seen()["successes"] == rewarded


def test_without_memory_decisions_go_on_uncounted_and_people_are_told(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.edge._capacity.limit = 30 * GROUP_COST
    tickets = site.decide(500)
    counted = [ticket for ticket in tickets if str(ticket) != "uncounted"]
    assert 100 < len(counted) < 500
    assert site.edge._capacity.used < 31 * GROUP_COST
    for ticket in tickets:
        site.reward(ticket)
    assert site.seen()["rewards"] == len(counted)
    shown = ask(site.edge, "GET", "/v1/tasks/shop").json()
    assert (shown["waiting"], shown["uncounted"]) == (len(counted), 500 - len(counted))
    assert sum(trials for _, trials in site.sent(after=CLOSED)) == len(counted)
    assert "no_memory" in caplog.text
    assert NOTICES["no_memory"] in ask(site.edge, "GET", "/v1/tasks/shop").json()["notices"]
    assert "uncounted" not in map(str, site.decide(10))  # there is memory again


@pytest.mark.parametrize("record", ["stop", "delete"])
def test_tasks_share_memory_and_who_ends_gives_it_back(record: str, site: Site) -> None:
    page = host(site.edge, task("tally", name="page", reward_window=WINDOW))
    site.edge._capacity.limit = 10 * GROUP_COST
    site.decide(200)
    assert str(site.edge.decide(page)) != "uncounted"  # of the tally that is open
    assert "uncounted" in [str(site.edge.decide(page)) for _ in range(3)]
    site.edge.on_record(f"outvote.live.shop-1.{record}", b"{}")
    assert site.edge._capacity.used == page.player.decisions.capacity.used < 2 * GROUP_COST
    assert "uncounted" not in [str(site.edge.decide(page)) for _ in range(3)]


def test_memory_is_taken_again_after_a_restart(site: Site) -> None:
    site.decide(50)
    used = site.edge._capacity.used
    site.restart()
    assert site.edge._capacity.used == used
    site.crash()  # beside the tally that is cut, another one is opened
    assert site.edge._capacity.used == used + GROUP_COST


# ---- what people are told


def test_who_rewards_nothing_is_told_when_the_window_of_the_first_hundred_has_passed(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    def told(name: str) -> int:
        return sum(record.getMessage().startswith(name) for record in caplog.records)

    def notices() -> list[str]:
        return list(ask(site.edge, "GET", "/v1/tasks/shop").json()["notices"])

    site.decide(99)
    site.sent()
    assert (told("decisions_made"), notices()) == (0, [])
    [ticket] = site.decide(1)
    site.sent()
    assert (told("decisions_made"), told("no_rewards"), notices()) == (1, 0, [])
    site.sent(after=CLOSED)
    assert told("no_rewards") == 1
    assert notices() == [NOTICES["no_rewards"]]
    site.reward(ticket)
    site.sent()
    assert (told("no_rewards"), told("late_rewards")) == (1, 1)
    assert NOTICES["late_rewards"] in notices()


# ---- what a fleet pools

SITES = ("ams", "fra", "lis")
MEANS = (0.1, 0.3, 0.5)
TICK = 1.0
EVENTS = 2400
BETWEEN_EVENTS = 0.1
SEED = 34


async def pooled(memory: MemoryEngine, folder: Path, report: Report) -> list[tuple[int, int]]:
    """Trials and successes of each arm as the server has them, after all is sent.

    δ is so small that no arm falls: how often an arm is tried then depends on no outcome.
    """
    described = Task(
        arms=len(MEANS),
        players=SITES,
        epsilon=0,
        delta=1e-300,
        protocol="tally",
        reward_window=WINDOW,
        name="shop",
    )
    server = SyncServer(memory.connect("server"))
    await server.start()
    task_id = await server.create(described)
    now = 0.0
    stores = [EdgeStore(folder / f"{name}.db") for name in SITES]
    rng = random.Random(SEED)
    edges = [Edge(name, store, clock=lambda: now, rng=rng) for name, store in zip(SITES, stores, strict=True)]
    for edge in edges:
        await edge.connect(memory.connect(edge.name))
        assert await edge.catch_up()
    agenda: list[tuple[float, int, Edge, Ticket, float]] = []
    for event in range(EVENTS + round(2 * CLOSED / BETWEEN_EVENTS)):
        now = event * BETWEEN_EVENTS
        while agenda and agenda[0][0] <= now:
            _, _, edge, ticket, reward = heapq.heappop(agenda)
            edge.reward(edge.find("shop"), ticket, reward)
        if event % round(TICK / BETWEEN_EVENTS) == 0:
            for edge in edges:
                edge.tick()
        if event < EVENTS:
            edge = rng.choice(edges)
            ticket = edge.decide(edge.find("shop"))
            success = rng.random() < MEANS[ticket.arm]
            after = report(ticket.arm, success, rng)
            if after is not None:
                heapq.heappush(agenda, (now + after, event, edge, ticket, float(success)))
    kept = 0
    for edge, store in zip(edges, stores, strict=True):
        await edge.send()
        kept += len(store.messages(task_id))
        await edge.stop()
        store.close()
    folded = server.state.tasks[task_id]
    await asyncio.wait_for(server.wait_for(lambda: folded.ledger.up_messages == kept), 20)
    await server.stop()
    assert isinstance(folded.server, TallyServer)
    assert not folded.eliminations
    return [(folded.server.trials(arm), folded.server.successes(arm)) for arm in range(len(MEANS))]


@pytest.mark.parametrize("report", [only_successes, slow_successes])
def test_the_pooled_means_are_unbiased_though_failures_are_never_reported_or_sooner(
    report: Report, memory: MemoryEngine, tmp_path: Path
) -> None:
    counts = asyncio.run(pooled(memory, tmp_path, report))
    for (trials, successes), mean in zip(counts, MEANS, strict=True):
        assert trials > 0.8 * EVENTS / len(MEANS)  # but for tallies that were still open
        assert stats.binomtest(successes, trials, mean).pvalue > FALSE_ALARM
