"""How many examples Hypothesis tries: a fifth where somebody waits for the result, all of them in CI.

OUTVOTE_EXAMPLES says otherwise: 1 is what CI tries; with 10 there are ten times as many, and new ones in every run.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

FACTOR = float(os.environ.get("OUTVOTE_EXAMPLES", "1" if "CI" in os.environ else "0.2"))


def examples(count: int) -> settings:
    """So many examples in CI. However slow a machine is, none of them is at fault."""
    return settings(
        derandomize=FACTOR <= 1,
        database=None,
        deadline=None,
        max_examples=max(1, round(count * FACTOR)),
        suppress_health_check=list(HealthCheck),
    )
