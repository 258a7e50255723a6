"""Supervises the embedded engine: whether it runs and stores records, and whether its certificate was renewed. The
server ends if its engine does not run or store."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from outvote.access.tls import server_context
from outvote.access.watched_files import WatchedFiles
from outvote.core.errors import InvalidConfiguration
from outvote.engine.process import Engine, EngineError
from outvote.observability.logs import event
from outvote.server.sync_server import SyncServer

LIFE_LOOK: Final = 0.1
"""Seconds between two checks that the engine runs."""
STORE_PATIENCE: Final = 20.0
"""Seconds that the embedded engine may answer without storing records."""
CERTIFICATE_LOOK: Final = 5.0
"""Seconds between two checks for a renewed certificate."""

_log = logging.getLogger(__name__)


async def while_it_runs(engine: Engine) -> None:
    """Run until the embedded engine ends by itself, then raise. systemd or Kubernetes restarts the server."""
    while (ending := engine.ending) is None:
        await asyncio.sleep(LIFE_LOOK)
    raise EngineError(
        f"the engine (nats-server) ended with {ending}, so the server ended too: start it again, unless systemd, "
        f"compose or Kubernetes does. Nothing that was acknowledged is lost. {engine.log} may say why it ended"
    )


async def while_it_stores(server: SyncServer, engine: Engine) -> None:
    """Run until the embedded engine stores no records, as after a full disk, then raise: it must be restarted."""
    loop = asyncio.get_running_loop()
    well = loop.time()
    while loop.time() - well < STORE_PATIENCE:
        await asyncio.sleep(STORE_PATIENCE / 10)
        if server.ready or not server.has_read:
            well = loop.time()
    raise EngineError(
        f"the engine has stored nothing for {STORE_PATIENCE:g} s: is the disk of {engine.folder} full? Its log there "
        "says more. Free some space and start the server again: what was acknowledged is kept, and edges send the rest"
    )


async def while_certificates_last(engine: Engine) -> None:
    """Run for ever: reload the engine when its certificate was renewed. Connections stay open."""
    if engine.kit is None:
        await asyncio.Event().wait()
        return
    certificate = engine.kit.certificate
    files = WatchedFiles(certificate)
    while True:
        await asyncio.sleep(CERTIFICATE_LOOK)
        try:
            if files.reload(lambda: server_context(certificate)):
                engine.reload()
                event(_log, logging.INFO, "engine_certificate_renewed")
        except InvalidConfiguration:
            event(_log, logging.ERROR, "certificate_not_loaded", file=certificate.chain.name)
