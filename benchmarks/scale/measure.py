"""Measures and simulates what docs/scale.md says, and keeps it in measures.json; `--only day` is the simulation alone.

Then `python docs/generate.py` writes the tables, and `python benchmarks/scale/figure.py` draws the day.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.kept import Effort, Record, measure_parts
from benchmarks.network import parts
from benchmarks.run import machine_alone, tidy
from benchmarks.scale import day, wire

RESULTS = Path(__file__).with_name("measures.json")


def measured_wire(effort: Effort) -> Record:
    found: Record = tidy(wire.measure(quick=effort(100) < 100))
    return {"machine": machine_alone(parts.versions())} | found


def simulated_day(effort: Effort) -> Record:
    found: Record = tidy(day.day(quick=effort(100) < 100))
    return found


if __name__ == "__main__":
    sys.exit(measure_parts(__doc__, {"wire": measured_wire, "day": simulated_day}, RESULTS))
