"""The environment of write-an-environment.md: seasons that are as long as they happen to be."""

# ---- environment
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from outvote.simulation import Environment


class Seasons(Environment):
    """Means that are turned round from season to season; how long those are, each trial draws anew."""

    key = "seasons 1"

    def start(self, *, players: int, horizon: int, rng: np.random.Generator) -> Any:
        ends = np.cumsum(rng.geometric(1 / 500, size=horizon // 100))
        summer = self.row or ()
        winter = summer[::-1]

        def means(player: int, time: int, visitor: int | None, context: Any) -> Sequence[float]:
            return winter if np.searchsorted(ends, time) % 2 else summer

        return means
