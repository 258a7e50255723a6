"""A fleet that runs: its engine, and connections to it with the kits that were made."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from helpers.bare_clients import Guest, guest
from outvote.access.engine_access import Access
from outvote.access.kits import EngineKit, read_edge_kit, read_server_kit
from outvote.engine.nats_log import NatsLog
from outvote.engine.process import Engine
from outvote.fleet.folder import Fleet


def read_claims(token: str) -> dict[str, Any]:
    """What a token says; who signed it is not checked."""
    body = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return found


class Place:
    """An engine on the fleet's kit."""

    def __init__(self, folder: Path, fleet: Fleet) -> None:
        self.fleet = fleet
        self._store = folder / "store"
        self._port = fleet.look().engine_addresses[0].port
        self.engine = self._engine(None)

    def _engine(self, kit: EngineKit | None) -> Engine:
        return Engine(self._store, port=self._port, kit=kit or read_server_kit(self.fleet.folder / "server").engine)

    def __enter__(self) -> Place:
        self.engine.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.engine.stop()

    async def restart(self, kit: EngineKit | None = None) -> None:
        """With the fleet's kit as it is now, or with another."""
        await asyncio.to_thread(self.engine.stop)
        self.engine = self._engine(kit)
        self.engine.start()

    def access(self, name: str) -> Access:
        if name == "server":
            kit = read_server_kit(self.fleet.folder / "server")
            return Access(kit.creds, kit.ca)
        edge = read_edge_kit(self.fleet.folder / "edges" / name)
        return Access(edge.creds, edge.ca)

    async def link(self, name: str) -> NatsLog:
        return await NatsLog.connect(self.engine.url, name=name, patience=10, access=self.access(name))

    @asynccontextmanager
    async def client(self, name: str, access: Access | None = None) -> AsyncIterator[Guest]:
        """A bare client, which does not come back."""
        access = access or self.access(name)
        async with guest(self.engine.url, name, access) as opened:
            yield opened

    async def lets_in(self, name: str, access: Access | None = None) -> bool:
        """Whether the engine does; if not, it lets others in, so it was not just away."""
        try:
            async with self.client(name, access):
                return True
        except Exception:  # a connection that is ended while it is made shows in many ways
            async with self.client("server"):
                return False

    def logged(self, what: str) -> int:
        return self.engine.log.read_text(errors="replace").lower().count(what)
