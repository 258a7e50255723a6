"""Runs schedules one after the other, as seeds come in on standard input; writes a line of JSON for each.

SIGTERM ends it in order: processes, mounts and namespaces of the run go with it.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sys
from pathlib import Path

from faults import spaces
from faults.nursery import Nursery
from faults.one_run import Result, run
from faults.schedule import Schedule, make_schedule


async def one(schedule: Schedule, folder: Path, nursery: Nursery, number: int) -> Result:
    running = asyncio.current_task()
    assert running is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    if folder.exists():
        shutil.rmtree(folder)
    return await run(schedule, folder, nursery, number=number)


def main() -> None:
    out, number = Path(sys.argv[1]), int(sys.argv[2])
    disks, namespaces = spaces.may_mount(), spaces.why_not() is None
    with Nursery() as nursery:
        for line in sys.stdin:
            seed = int(line)
            folder = out / f"run-{seed}"
            try:
                schedule = make_schedule(seed, disks=disks, namespaces=namespaces)
                result = asyncio.run(one(schedule, folder, nursery, number))
            except asyncio.CancelledError:
                shutil.rmtree(folder, ignore_errors=True)
                return
            print(json.dumps(result.to_json()), flush=True)


if __name__ == "__main__":
    main()
