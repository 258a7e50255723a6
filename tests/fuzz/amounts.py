"""How much is fuzzed: the same few examples in every run, or with OUTVOTE_FUZZ=10 ten times as many, new ones."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

FACTOR = float(os.environ.get("OUTVOTE_FUZZ", "1"))
"""By how much more is tried than in `make test`."""


def examples(count: int) -> settings:
    """So many examples, times the factor. However slow a machine is, none of them is at fault."""
    return settings(
        derandomize=FACTOR == 1,
        database=None,
        deadline=None,
        max_examples=max(1, round(count * FACTOR)),
        suppress_health_check=list(HealthCheck),
    )
