"""What a fleet pools when only some outcomes are reported, or some sooner: with a reward window the truth, without not.

Over a real engine, with an edge's clock in the hands of the test: a minute's window passes in no time. Of each of two
windowed cases three arms are compared; by Chernoff each comparison raises a false alarm with probability 1e-7 at most,
so all of them together with 6e-7. The seed is fixed.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import random
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from outvote.core.errors import NoOutstandingDecision
from outvote.core.tally_server import TallyServer
from outvote.core.task import Task
from outvote.edge.site import Edge
from outvote.edge.store import EdgeStore
from outvote.engine.nats_log import NatsLog
from outvote.engine.process import Engine
from outvote.server.sync_server import SyncServer

SITES = ("ams", "fra", "lis")
MEANS = (0.1, 0.3, 0.5)
WINDOW = 60.0
TICK = 1.0
"""Seconds of the edges' clock between two looks at what is due."""
EVENTS = 2400
BETWEEN_EVENTS = 0.1
FALSE_ALARM = 1e-7
SEED = 34


class Reporting(NamedTuple):
    """Seconds until an outcome is reported; None is never."""

    success: float | None
    failure: float | None


ONLY_SUCCESSES = Reporting(success=0.5, failure=None)
LATE_SUCCESSES = Reporting(success=59.0, failure=None)
SLOW_SUCCESSES = Reporting(success=59.0, failure=0.5)


async def pooled(engine: Engine, folder: Path, reporting: Reporting, window: float | None) -> list[tuple[int, int]]:
    """Trials and successes of each arm as the server has them, after all is sent.

    δ is so small that no arm falls: how often an arm is tried then depends on no outcome.
    """
    task = Task(
        arms=len(MEANS),
        players=SITES,
        epsilon=0,
        delta=1e-300,
        protocol="tally",
        reward_window=window,
        name="shop",
    )
    server = SyncServer(await NatsLog.connect(engine.url, name="server"))
    await server.start()
    task_id = await server.create(task)
    now = 0.0
    stores = [EdgeStore(folder / f"{name}.db") for name in SITES]
    edges = [Edge(name, store, clock=lambda: now) for name, store in zip(SITES, stores, strict=True)]
    for edge in edges:
        await edge.connect(NatsLog(engine.url, name=edge.name))
        assert await edge.catch_up()
    rng = random.Random(SEED)
    agenda: list[tuple[float, int, Edge, int, float, int]] = []  # time, order, site, arm, reward, ticket
    ticks = 0
    for event in range(EVENTS + round(2 * WINDOW / BETWEEN_EVENTS)):
        now = event * BETWEEN_EVENTS
        while agenda and agenda[0][0] <= now:
            _, _, edge, arm, reward, ticket = heapq.heappop(agenda)
            with suppress(NoOutstandingDecision):  # without a window others were asked instead
                edge.reward(edge.find("shop"), arm, reward, ticket)
        if now >= ticks * TICK:
            ticks += 1
            for edge in edges:
                edge.flush()
        if event < EVENTS:
            edge = rng.choice(edges)
            arm, ticket = edge.decide(edge.find("shop"))
            success = rng.random() < MEANS[arm]
            delay = reporting.success if success else reporting.failure
            if delay is not None:
                heapq.heappush(agenda, (now + delay, event, edge, arm, float(success), ticket))
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


def improbability(trials: int, successes: int, mean: float) -> float:
    """A bound on the probability of a count at least as far from its mean: twice exp(−n·kl(p̂, μ)), by Chernoff."""
    found = successes / trials
    terms = ((found, mean), (1 - found, 1 - mean))
    return 2 * math.exp(-trials * math.fsum(p * math.log(p / q) for p, q in terms if p > 0))


def test_the_bound_on_a_count_can_tell() -> None:
    assert improbability(600, 60, 0.1) == 2  # exp(0)
    assert improbability(10, 10, 0.5) == pytest.approx(2 * 0.5**10)  # exact, for a count at the very end
    # A mean of .18 in place of .1 raises the alarm; one of .12 could be chance.
    assert improbability(700, 126, 0.1) < FALSE_ALARM
    assert improbability(700, 84, 0.1) > FALSE_ALARM


@pytest.mark.parametrize("reporting", [ONLY_SUCCESSES, LATE_SUCCESSES], ids=["only successes", "late successes"])
def test_with_a_window_the_pooled_means_are_unbiased_though_failures_are_never_reported(
    reporting: Reporting, engine: Engine, tmp_path: Path
) -> None:
    counts = asyncio.run(pooled(engine, tmp_path, reporting, WINDOW))
    for (trials, successes), mean in zip(counts, MEANS, strict=True):
        assert trials > 0.8 * EVENTS / len(MEANS)  # but for tallies that were still open
        assert improbability(trials, successes, mean) > FALSE_ALARM


def test_without_a_window_only_what_is_reported_is_seen_and_all_arms_look_perfect(
    engine: Engine, tmp_path: Path
) -> None:
    counts = asyncio.run(pooled(engine, tmp_path, ONLY_SUCCESSES, None))
    for (trials, successes), mean in zip(counts, MEANS, strict=True):
        assert trials == successes > 0
        assert improbability(trials, successes, mean) < FALSE_ALARM


def test_without_a_window_what_is_reported_sooner_counts_for_more(engine: Engine, tmp_path: Path) -> None:
    counts = asyncio.run(pooled(engine, tmp_path, SLOW_SUCCESSES, None))
    for (trials, successes), mean in zip(counts, MEANS, strict=True):
        assert successes / trials < mean
    assert min(improbability(*count, mean) for count, mean in zip(counts, MEANS, strict=True)) < FALSE_ALARM
