"""A real fleet to look at: `outvote server` and `outvote edge` as processes, and users that visit its sites.

It lives as long as the tests of one process do, so a test gives its tasks names of their own.
"""

from __future__ import annotations

import functools
import random
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

from helpers.processes import DEADLINE, Running, an_edge, listens, request, sent_all, until, well
from helpers.visitors import Visitors

SITES = ("ams", "bog", "che")
QUIET = ("--log-level", "warning")
"""Nobody reads the log of a process here, so it must not fill its pipe."""

Means: TypeAlias = Mapping[str, float]
"""What each arm is really worth."""


def everywhere(means: Means) -> dict[str, Means]:
    """The same at all sites."""
    return dict.fromkeys(SITES, means)


class Fleet:
    """One server and an edge at each site."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        try:
            self.server = self._serve("0", "0")
            self.edges = {name: an_edge(self._start, self.server, name, *QUIET) for name in SITES}
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        return self.server.url("server")

    def kill_server(self) -> None:
        """As a power failure would; its engine goes with it."""
        engine = self.server.url("nats")
        self.server.end(signal.SIGKILL)
        until(lambda: not listens(engine), "the engine has ended")

    def restart_server(self) -> None:
        """On the ports that all others know."""
        self.server = self._serve(self.server.port("server"), self.server.port("nats"))
        until(lambda: well(self.server), "the server is well")

    # ---- tasks

    def create(self, name: str, **task: Any) -> str:
        """Its id; a task of Tally with two arms for all sites, unless something else is said."""
        usual = {"protocol": "tally", "variants": ["good", "bad"], "sites": list(SITES), "epsilon": 0, "delta": 0.05}
        asked = {"name": name, "reward_window": 1, **usual, **task}
        return str(request(f"{self.url}/v1/tasks", asked)["id"])

    def shown(self, task: str) -> dict[str, Any]:
        """What the API says of it."""
        return request(f"{self.url}/v1/tasks/{task}")

    def change(self, task: str, verb: str) -> None:
        request(f"{self.url}/v1/tasks/{task}/{verb}", method="POST")

    def visit(
        self,
        task: str,
        means: Mapping[str, Means],
        *,
        done: Callable[[dict[str, Any]], bool],
        events: int = 100,
    ) -> None:
        """Users at these sites, so many events at each in turn, until the server's view of the task is `done`."""
        everybody = {site: Visitors(task, worth, random.Random(site)) for site, worth in means.items()}
        deadline = time.monotonic() + 3 * DEADLINE
        while not done(self.shown(task)):
            assert time.monotonic() < deadline, self.shown(task)
            for site, visitors in everybody.items():
                enough = functools.partial(self._enough, visitors, visitors.events + events)
                assert visitors.visit(self.edges[site], done=enough)

    def settled(self, task: str) -> dict[str, Any]:
        """What the API says once all that the edges have to send is there."""
        for edge in self.edges.values():
            sent_all(edge, task)
        bits, since = self.shown(task)["bits"], time.monotonic()

        def still() -> bool:
            """Groups that were full close within a window and a second, and are sent on two ticks."""
            nonlocal bits, since
            now = self.shown(task)["bits"]
            if now != bits:
                bits, since = now, time.monotonic()
            return time.monotonic() > since + 3

        until(still, "nothing more is sent")
        return self.shown(task)

    @staticmethod
    def _enough(visitors: Visitors, wanted: int, view: dict[str, Any]) -> bool:
        return bool(view) and (view["finished"] or view["stopped"] or visitors.events >= wanted)

    def _serve(self, port: str, engine_port: str) -> Running:
        return self._start("server", "--port", port, "--engine-port", engine_port, "--store", "log", *QUIET)

    def _start(self, *arguments: str) -> Running:
        running = Running(self._folder, *arguments)
        self._stack.callback(running.kill)
        return running
