"""A fresh synchronization server on a log that is there, as a program: URL; tells when it is ready, and what that took.

It runs in the loop in which `outvote server` runs.
"""

from __future__ import annotations

import sys
import time

import uvloop

from benchmarks.network.processes import peak_mib, say_json
from outvote.engine.nats_log import NatsLog
from outvote.server.sync_server import SyncServer


async def recover(url: str) -> None:
    server = SyncServer(await NatsLog.connect(url, name="server", patience=10))
    start, cpu = time.perf_counter(), time.process_time()
    await server.start()
    say_json(
        {
            "seconds": time.perf_counter() - start,
            "cpu_seconds": time.process_time() - cpu,
            "read": server.state.read,
            "messages": sum(task.ledger.up_messages for task in server.state.tasks.values()),
            "refused": sum(task.refused for task in server.state.tasks.values()) + server.state.unknown,
            "peak_mib": peak_mib(),
        }
    )
    await server.stop()


if __name__ == "__main__":
    uvloop.run(recover(sys.argv[1]))
