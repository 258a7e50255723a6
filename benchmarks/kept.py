"""Measuring in parts, which are kept as JSON: documents are made from what was kept, not measured anew each time."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

Record = dict[str, Any]


class Effort:
    """How many trials there are time for."""

    def __init__(self, quick: bool) -> None:
        self._share = 0.05 if quick else 1.0

    def __call__(self, trials: int) -> int:
        return max(20, int(trials * self._share))


def mean_of(values: list[Any]) -> Record:
    """A mean with its 95 % interval."""
    mean, deviation = float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    half = 1.96 * deviation / math.sqrt(len(values))
    return {"mean": mean, "low": mean - half, "high": mean + half}


def share_of(count: int, trials: int) -> Record:
    """A share with its exact 95 % interval."""
    low = float(beta.ppf(0.025, count, trials - count + 1)) if count else 0.0
    high = float(beta.ppf(0.975, count + 1, trials - count)) if count < trials else 1.0
    return {"count": count, "trials": trials, "share": count / trials, "low": low, "high": high}


def measure_parts(about: str | None, parts: Mapping[str, Callable[[Effort], Record]], results: Path) -> int:
    """The command of a script that measures: each part is written as soon as it is there."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the trials, and nothing is written")
    parser.add_argument("--only", default=",".join(parts), help=f"parts to measure anew: {', '.join(parts)} (all)")
    args = parser.parse_args()
    chosen = args.only.split(",")
    if unknown := [part for part in chosen if part not in parts]:
        parser.error(f"unknown parts {unknown}: allowed are {', '.join(parts)}")
    found: Record = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
    for part in chosen:
        begin = time.perf_counter()
        found[part] = parts[part](Effort(args.quick))
        print(f"{part}: {time.perf_counter() - begin:.0f} s", file=sys.stderr)
        if args.quick:
            print(json.dumps(found[part], indent=1))
        else:
            results.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0
