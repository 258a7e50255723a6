"""Trouble on purpose: edges, the server and the engine are killed while the fleet works, and come back."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from outvote.demo.fleet import Fleet

BREATH = 0.4
"""Seconds between one recovery and the next trouble."""
AWAY = 0.5
"""Seconds that a killed edge is away: its users come again."""


@dataclass(frozen=True)
class Trouble:
    """Something was killed."""

    who: str
    after_events: int


class Chaos:
    """Kills in turn an edge, the engine, another edge, and the server with its engine; then from the start."""

    def __init__(self, fleet: Fleet, events: Callable[[], int], seed: int) -> None:
        self.troubles: list[Trouble] = []
        self._fleet = fleet
        self._events = events
        self._rng = random.Random(seed)

    @property
    def everything_was_killed(self) -> bool:
        """An edge, the engine and the server, each at least once."""
        return len(self.troubles) >= 4

    async def reign(self) -> None:
        """Until cancelled."""
        while True:
            for kill in (self._edge, self._engine, self._edge, self._server):
                await asyncio.sleep(BREATH * (0.5 + self._rng.random()))
                await kill()

    async def _edge(self) -> None:
        name = self._rng.choice(list(self._fleet.edges))
        self._note(name)
        self._fleet.edges[name].kill()
        await asyncio.sleep(AWAY)
        await self._fleet.restart_edge(name)

    async def _engine(self) -> None:
        """The server ends with it, and is started again as systemd would."""
        self._note("engine")
        await self._fleet.kill_engine()
        await self._fleet.restart_server()

    async def _server(self) -> None:
        """Its engine dies with it."""
        self._note("server")
        self._fleet.server.kill()
        await self._fleet.restart_server()

    def _note(self, who: str) -> None:
        self.troubles.append(Trouble(who, self._events()))
