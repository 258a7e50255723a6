"""Synthetic users of one site: they ask its edge over HTTP what to show, and tell it what came of it, some later."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from helpers.processes import DEADLINE, Running

LATER = 0.3
"""The part of rewards that come some events later, within their window or not."""


class Visitors:
    """They go on when their edge is killed and started again."""

    def __init__(self, task: str, means: Mapping[str, float], rng: random.Random) -> None:
        self.events = 0
        """How many decisions they were given."""
        self._path = f"/v1/tasks/{task}"
        self._means = means
        self._rng = rng
        self._later: list[dict[str, Any]] = []

    def visit(self, edge: Running, *, done: Callable[[dict[str, Any]], bool], at_once: int = 6) -> bool:
        """Events until the edge's view of the task satisfies `done`; False if the edge has gone before.

        It is looked at after at most so many events `at_once`.
        """
        deadline = time.monotonic() + DEADLINE
        with httpx.Client(base_url=edge.url("edge"), timeout=DEADLINE, trust_env=False) as http:
            try:
                while not done(self._view(http)):
                    assert time.monotonic() < deadline
                    for _ in range(self._rng.randint(1, at_once)):
                        self._event(http)
            except httpx.TransportError:
                return False
        return True

    def _view(self, http: httpx.Client) -> dict[str, Any]:
        answer = http.get(self._path)
        return dict(answer.json()) if answer.status_code == 200 else {}  # the edge has not heard of the task yet

    def _event(self, http: httpx.Client) -> None:
        answer = http.post(f"{self._path}/decide")
        if answer.status_code == 404:
            return
        self.events += 1
        decision = answer.json()
        outcome = int(self._rng.random() < self._means[decision["variant"]])
        self._later.append({"ticket": decision["ticket"], "reward": outcome})
        while self._later and self._rng.random() >= LATER:
            self._reward(http, self._later.pop(self._rng.randrange(len(self._later))))

    def _reward(self, http: httpx.Client, body: dict[str, Any]) -> None:
        answer = http.post(f"{self._path}/reward", json=body)
        assert answer.status_code in (204, 409), answer.text  # 409: of a decision that a kill made the edge forget
