"""A task that is driven through assignments made ahead alone is unbiased: what is pooled is what arms are worth.

Each comparison is of a count with its exact binomial law and raises a false alarm with probability 1e-7 at most; there
are nine, so all of them together with less than 1e-6. The seed is fixed.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from helpers.edge_http import host, task
from outvote.core.messages import Tally
from outvote.edge.api import EdgeApi
from outvote.edge.hosted_task import HostedTask
from outvote.edge.ofrep import FLAGS, Ofrep
from outvote.edge.site import Edge
from outvote.edge.store import EdgeStore
from outvote.log.records import UpSubject

ARMS = ("red", "green", "blue")
MEANS = {"red": 0.1, "green": 0.3, "blue": 0.8}
SHOWN = 0.6
"""The part of assignments that are shown."""
COMES_AGAIN = 0.5
"""The part of visitors who bring the assignment of an earlier visit."""
VISITS = 9000
WINDOW = 60.0
FALSE_ALARM = 1e-7
SEED = 41


class Site:
    """An edge without a network, whose clock is the test's, and its API without a socket."""

    def __init__(self, folder: Path, window: float | None) -> None:
        self.now = 0.0
        self.store = EdgeStore(folder / "edge.db")
        self.edge = Edge("ams", self.store, clock=lambda: self.now, rng=random.Random(SEED))
        self.hosted: HostedTask = host(self.edge, task("tally", arms=ARMS, reward_window=window))
        self.app = EdgeApi(self.edge)
        self.app._ofrep_api = Ofrep(self.edge, random.Random(SEED))
        self._loop = asyncio.new_event_loop()

    def post(self, path: str, body: Any = None, tag: str = "") -> tuple[int, str, Any]:
        """Status, tag and content of the answer."""
        answer: dict[str, Any] = {"body": b""}

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": json.dumps(body or {}).encode()}

        async def send(message: Any) -> None:
            answer.update(message)

        headers = [(b"if-none-match", tag.encode())] if tag else []
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
        self._loop.run_until_complete(self.app(scope, receive, send))
        found = dict(answer["headers"]).get(b"etag", b"").decode()
        return answer["status"], found, json.loads(answer["body"] or b"null")

    def close(self) -> None:
        self._loop.close()
        self.store.close()


def visits(site: Site, rng: random.Random, *, only_successes: bool) -> tuple[Counter[str], Counter[str]]:
    """What visitors were assigned first, and what they were shown. Successes come late, failures at once or never."""
    assigned, shown = Counter[str](), Counter[str]()
    tags: list[str] = []
    variant_of: dict[str, str] = {}
    late: list[tuple[float, int, dict[str, Any]]] = []
    for visit in range(VISITS):
        site.now += 1.0
        while late and late[0][0] <= site.now:
            assert site.post("/v1/tasks/shop/reward", heapq.heappop(late)[2])[0] == 204
        known = rng.choice(tags) if tags and rng.random() < COMES_AGAIN else ""
        status, tag, content = site.post(FLAGS, tag=known)
        if known:
            assert (status, tag) == (304, known)
        else:
            variant_of[tag] = content["flags"][0]["variant"]
            tags.append(tag)
            assigned[variant_of[tag]] += 1
        if rng.random() >= SHOWN:
            continue
        variant = variant_of[tag]
        shown[variant] += 1
        ticket = site.post("/v1/tasks/shop/exposed", {"variant": variant})[2]["ticket"]
        success = rng.random() < MEANS[variant]
        body = {"variant": variant, "ticket": ticket, "reward": int(success)}
        if only_successes and success:
            heapq.heappush(late, (site.now + 30 * rng.random(), visit, body))
        elif not only_successes:
            assert site.post("/v1/tasks/shop/reward", body)[0] == 204
        if visit % 10 == 0:
            site.edge.flush()
    for _, _, body in late:
        assert site.post("/v1/tasks/shop/reward", body)[0] == 204
    site.now += 2 * WINDOW
    site.edge.flush()
    return assigned, shown


def pooled(site: Site) -> tuple[Counter[str], Counter[str]]:
    """Events and successes by arm, in the messages that were made."""
    trials, successes = Counter[str](), Counter[str]()
    hosted = site.hosted
    for sequence, payload in site.store.messages(hosted.task_id):
        tally = hosted.coder.read_up(UpSubject("ams", hosted.task_id, "", sequence), payload)
        assert isinstance(tally, Tally)
        trials[ARMS[tally.arm]] += tally.trials
        successes[ARMS[tally.arm]] += tally.successes
    return trials, successes


@pytest.mark.parametrize("window", [None, WINDOW], ids=["answered at once", "only successes, late, with a window"])
def test_assignments_are_even_and_what_is_shown_is_counted_without_bias(window: float | None, tmp_path: Path) -> None:
    site, rng = Site(tmp_path, window), random.Random(SEED)
    try:
        assigned, shown = visits(site, rng, only_successes=window is not None)
        trials, successes = pooled(site)
        for arm, mean in MEANS.items():
            if window is None:  # the assignments of the other case are the same
                assert stats.binomtest(assigned[arm], assigned.total(), 1 / 3).pvalue > FALSE_ALARM
            assert stats.binomtest(successes[arm], trials[arm], mean).pvalue > FALSE_ALARM
            assert trials[arm] <= shown[arm]
            # What is not in a message is in a tally that is not full: one for each arm.
            assert shown[arm] - trials[arm] < max(site.hosted.task.tally_sizes)
        assert site.hosted.player.dropped_rewards == 0
        assert site.app.decisions == shown.total()
    finally:
        site.close()


def test_it_would_notice_a_bias() -> None:
    """If failures that are not reported were left out, or assignments followed the cycle of who comes next."""
    assert stats.binomtest(400, 1000, 0.3).pvalue < FALSE_ALARM
    assert stats.binomtest(1800, 4500, 1 / 3).pvalue < FALSE_ALARM


def test_an_assignment_that_is_never_shown_counts_nothing(tmp_path: Path) -> None:
    site = Site(tmp_path, None)
    try:
        site.edge.flush()
        before = site.hosted.player.snapshot()
        for _ in range(1000):
            assert site.post(FLAGS)[0] == 200
        assert site.hosted.player.snapshot() == before
        assert (site.app.decisions, site.hosted.new, site.hosted.dirty) == (0, [], False)
    finally:
        site.close()
