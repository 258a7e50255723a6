"""A task in every state there is, brought about by real events: what pages look like is tried on all of them."""

from __future__ import annotations

from typing import Any

from browser.fleet import Fleet, everywhere
from helpers.processes import request

GOOD = {"good": 0.95, "bad": 0.05}
WIDE = "宽" * 64
"""As long as a name may be, of the widest letters."""
HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "a'b\"c&amp;%3C", WIDE)
LONGEST = "x" * 64
SOON: dict[str, Any] = {"epsilon": 0.99, "delta": 0.9}
"""With which a site votes after a few hundred events."""


class Gallery:
    """By what it shows: the id of a task."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.tasks = {
            "new": fleet.create("gallery-new"),
            "running": self._running(),
            "finished": self._finished(),
            "dme": self._votes("dme", active_sites=3),
            "edme": self._votes("edme", instances=[2.5, 3]),
            "held": self._held(),
            "private": self._private(),
            "stopped": self._stopped(),
            "hostile": self._hostile(),
        }

    @property
    def pages(self) -> dict[str, str]:
        """Every page there is, and a task's in every state."""
        some = self.tasks["running"]
        planned = "/tasks/new?plan=1&name=planned&variants=3&sites=8&traffic=50000&difference=0.1&baseline=0.2"
        return {
            "tasks": "/",
            "nothing-found": "/?q=nobody",
            "fleet": "/fleet",
            "create": "/tasks/new",
            "planned": planned,
            "stop": f"/tasks/{some}/stop",
            "delete": f"/tasks/{some}/delete",
            "unknown": "/tasks/nobody",
            **{name: f"/tasks/{task}" for name, task in self.tasks.items()},
        }

    def _running(self) -> str:
        task = self.fleet.create("gallery-running", variants=["good", "bad", "ugly"])
        means = everywhere({"good": 0.7, "bad": 0.6, "ugly": 0.65})
        self.fleet.visit("gallery-running", means, done=lambda shown: shown["messages"]["up"] >= 12, events=15)
        request(f"{self.fleet.url}/v1/tasks/{task}/expectation", {"traffic": 20_000, "difference": 0.1}, method="PUT")
        return task

    def _finished(self) -> str:
        task = self.fleet.create("gallery-finished")
        self.fleet.visit("gallery-finished", everywhere(GOOD), done=lambda shown: shown["winner"] is not None)
        return task

    def _votes(self, protocol: str, **how: Any) -> str:
        """One site has voted."""
        name = f"gallery-{protocol}"
        task = self.fleet.create(name, protocol=protocol, **SOON, **how)
        self.fleet.visit(name, {"ams": GOOD}, done=lambda shown: shown["messages"]["up"] > 0)
        return task

    def _held(self) -> str:
        """One site's rewards are far from the other's; neither can decide before both have reported."""
        task = self.fleet.create("gallery-held", sites=["ams", "bog"], delta=1e-20)
        means = {"ams": {"good": 1.0, "bad": 0.8}, "bog": {"good": 0.2, "bad": 0.0}}
        self.fleet.visit("gallery-held", means, done=lambda shown: shown["status"] == "held", events=24)
        return task

    def _private(self) -> str:
        task = self.fleet.create("gallery-private", privacy_budget=1)
        means = {"ams": {"good": 0.6, "bad": 0.5}}
        self.fleet.visit("gallery-private", means, done=lambda shown: shown["messages"]["up"] > 1)
        return task

    def _stopped(self) -> str:
        task = self.fleet.create("gallery-stopped", fallback="bad")
        self.fleet.change(task, "stop")
        return task

    def _hostile(self) -> str:
        """Its names would be harmful or too wide if they were taken for anything but text."""
        task = self.fleet.create(LONGEST, variants=list(HOSTILE))
        means = {"ams": dict(zip(HOSTILE, (0.9, 0.3, 0.2, 0.1), strict=True))}
        self.fleet.visit(LONGEST, means, done=lambda shown: bool(shown["lifts"]), events=30)
        return task
