"""How a measurement of this folder ends as a command: printed and kept, stopped by Ctrl-C, or impossible here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.load.world import NotEnough
from benchmarks.network.processes import ChildFailed
from benchmarks.timing import say


def run(measure: Callable[[], dict[str, Any]], out: Path | None) -> int:
    """The exit code: 0 if its check, where it has one, found nothing. It is written to `out`, if there is one."""
    try:
        found = measure()
    except KeyboardInterrupt:
        say("stopped; nothing was written, and nothing is left behind")
        return 130
    except (NotEnough, ChildFailed) as error:
        print(f"{Path(sys.argv[0]).name}: error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(found, indent=1))
    if out is not None:
        from benchmarks.run import write

        write(out, json.dumps(found, indent=1) + "\n")
        say(f"wrote {out.name}")
    return 0 if "check" not in found or found["check"]["clean"] else 1
