"""What a fleet pools when only successes are reported, some late: with a reward window it is the truth.

What happens without a window is in `statistical/test_reward_window.py`. An edge's clock is in the hands of the test: a
minute's window passes in no time. Of each of two cases three arms are compared with their exact binomial law; each
comparison raises a false alarm with probability 1e-7 at most, so all of them together with 6e-7. The seed is fixed.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from pathlib import Path

import pytest
from scipy import stats

from outvote.core.tally.server import TallyServer
from outvote.core.task import Task
from outvote.edge.site import Edge
from outvote.edge.store import EdgeStore
from outvote.log.memory import MemoryEngine
from outvote.server.sync_server import SyncServer
from statistical.test_reward_window import FALSE_ALARM, ONLY_SUCCESSES, WINDOW, Reporting

SITES = ("ams", "fra", "lis")
MEANS = (0.1, 0.3, 0.5)
TICK = 1.0
"""Seconds of the edges' clock between two looks at what is due."""
EVENTS = 2400
BETWEEN_EVENTS = 0.1
SEED = 34


LATE_SUCCESSES = Reporting(success=59.0, failure=None)


async def pooled(memory: MemoryEngine, folder: Path, reporting: Reporting) -> list[tuple[int, int]]:
    """Trials and successes of each arm as the server has them, after all is sent.

    δ is so small that no arm falls: how often an arm is tried then depends on no outcome.
    """
    task = Task(
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
    task_id = await server.create(task)
    now = 0.0
    stores = [EdgeStore(folder / f"{name}.db") for name in SITES]
    edges = [Edge(name, store, clock=lambda: now) for name, store in zip(SITES, stores, strict=True)]
    for edge in edges:
        await edge.connect(memory.connect(edge.name))
        assert await edge.catch_up()
    rng = random.Random(SEED)
    agenda: list[tuple[float, int, Edge, int, float, int]] = []  # time, order, site, arm, reward, ticket
    ticks = 0
    for event in range(EVENTS + round(2 * WINDOW / BETWEEN_EVENTS)):
        now = event * BETWEEN_EVENTS
        while agenda and agenda[0][0] <= now:
            _, _, edge, arm, reward, ticket = heapq.heappop(agenda)
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


@pytest.mark.parametrize("reporting", [ONLY_SUCCESSES, LATE_SUCCESSES], ids=["only successes", "late successes"])
def test_with_a_window_the_pooled_means_are_unbiased_though_failures_are_never_reported(
    reporting: Reporting, memory: MemoryEngine, tmp_path: Path
) -> None:
    counts = asyncio.run(pooled(memory, tmp_path, reporting))
    for (trials, successes), mean in zip(counts, MEANS, strict=True):
        assert trials > 0.8 * EVENTS / len(MEANS)  # but for tallies that were still open
        assert stats.binomtest(successes, trials, mean).pvalue > FALSE_ALARM
