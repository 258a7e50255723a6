"""What becomes of rewards, on real processes: `make rewards` writes `measures.json`, with `--before TREE` beside an
earlier version. It takes half an hour: faults 5 minutes each, kills 2, the busy site 12, HTTP 8.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.hostile.measure import speed
from benchmarks.timing import say

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PARTS = ("faults", "kills", "rate", "speed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, metavar="TREE", help="a checkout of an earlier version")
    parser.add_argument("--only", choices=PARTS, action="append", help="measure these parts only")
    args = parser.parse_args()
    kept = HERE / "measures.json"
    found: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    for part in args.only or PARTS:
        say(f"rewards: {part}")
        if part == "speed":
            if args.before is not None:
                found[part] = speed({"after": ROOT, "before": args.before.resolve()}, rounds=10)
        else:
            found[part] = program(part, ROOT)
            if part == "faults" and args.before is not None:
                found["faults before"] = program(part, args.before.resolve(), "--before")
        kept.with_suffix(".part").write_text(json.dumps(found, indent=1) + "\n")
        kept.with_suffix(".part").replace(kept)
    return 0


def program(part: str, tree: Path, *arguments: str) -> Any:
    """Run one of the programs beside this one, with the package of a tree."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tree / "src"), str(ROOT)))}
    command = [sys.executable, "-m", f"benchmarks.rewards.{part}", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
