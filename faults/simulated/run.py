"""Runs simulated schedules, any number of them: `make simulate-faults SIMULATED="--schedules 50000"`.

Each is made from its seed, so `--seed N --schedules 1` repeats one to the byte.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from faults.simulated.schedule import make_schedule
from faults.simulated.world import Result, run

SHOW_EVERY: Final = 2.0
"""Seconds between two lines of progress."""
KINDS: Final = ("lost", "counted twice", "disagreement", "unjustified", "wrong", "not recovered")


def one(seed: int) -> Result:
    logging.disable(logging.CRITICAL)  # a fleet in trouble has a lot to say
    return run(make_schedule(seed))


def main() -> None:
    parser = argparse.ArgumentParser(prog="simulate-faults", description=__doc__)
    parser.add_argument("--schedules", type=int, default=1000, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the first one (%(default)s)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes (%(default)s)")
    parser.add_argument("--out", type=Path, help="a file for the figures, as JSON")
    asked = parser.parse_args()
    if asked.schedules < 1 or asked.jobs < 1 or asked.seed < 0:
        parser.error("--schedules and --jobs must be at least 1, --seed at least 0")
    began = time.perf_counter()
    found: list[Result] = []
    totals: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    shown = began
    seeds = range(asked.seed, asked.seed + asked.schedules)
    with multiprocessing.Pool(asked.jobs) as pool:
        for done, result in enumerate(pool.imap_unordered(one, seeds, chunksize=8), start=1):
            totals.update(decisions=result.decisions, records=result.records, operations=result.operations)
            totals.update(eliminated=result.eliminations > 0)
            faults.update(result.faults)
            if result.findings:
                found.append(result)
                for finding in result.findings:
                    print(f"seed {result.seed}: {finding.kind}: {finding.what}", flush=True)
            if time.perf_counter() - shown > SHOW_EVERY:
                shown = time.perf_counter()
                print(f"{done} of {asked.schedules} schedules, {len(found)} with findings", file=sys.stderr, flush=True)
    seconds = time.perf_counter() - began
    figures = _figures(asked, found, totals, faults, seconds)
    print(
        f"{asked.schedules} schedules from seed {asked.seed}: {len(found)} with findings. {totals['decisions']:,} "
        f"decisions, {sum(faults.values()):,} faults, {totals['operations']:,} acts of operators, "
        f"{totals['records']:,} records; {totals['eliminated']} reached an elimination. "
        f"{figures['per_minute_and_process']:,} schedules a minute and process"
    )
    if asked.out is not None:
        asked.out.write_text(json.dumps(figures, indent=1) + "\n")
    sys.exit(1 if found else 0)


def _figures(
    asked: argparse.Namespace, found: list[Result], totals: Counter[str], faults: Counter[str], seconds: float
) -> dict[str, Any]:
    kinds = Counter(kind for result in found for kind in {finding.kind for finding in result.findings})
    return {
        "schedules": asked.schedules,
        "first_seed": asked.seed,
        "findings": {kind: kinds[kind] for kind in KINDS},
        "totals": dict(totals),
        "faults": dict(sorted(faults.items())),
        "processes": asked.jobs,
        "seconds": round(seconds, 1),
        "per_minute_and_process": round(60 * asked.schedules / seconds / asked.jobs),
    }


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
