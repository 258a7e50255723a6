"""`outvote server` that also notes how long after its storing each record was read, as a program: FILE ARGUMENTS…

The command is the real one. The engine's clock and ours are those of one machine, so the two times can be compared.
"""

from __future__ import annotations

import sys
import time
from array import array
from pathlib import Path

from outvote.cli.main import main
from outvote.log.log import Record
from outvote.server import sync_server as server


def noting(path: Path) -> None:
    """From now on a server notes; the file is written when it stops."""
    noted = array("d")

    class NotingServer(server.SyncServer):
        """One server process."""

        def _read(self, record: Record) -> None:
            super()._read(record)
            noted.extend((record.stored, time.time() - record.stored))

        async def stop(self) -> None:
            await super().stop()
            path.write_bytes(noted.tobytes())

    server.SyncServer = NotingServer  # type: ignore[misc]  # the command takes it from there when it starts


def read(path: Path) -> list[tuple[float, float]]:
    """When each record was stored, and how many seconds later it had been read."""
    noted = array("d", path.read_bytes())
    return list(zip(noted[::2], noted[1::2], strict=True))


if __name__ == "__main__":
    noting(Path(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
