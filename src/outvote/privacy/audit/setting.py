"""What the audited fleet looks for: a task that ends within seconds.

One rule: it is a task as any other; all that differs from one in use is that its answer is easy.
"""

from __future__ import annotations

from typing import Final

from outvote.demo.setting import NAMES, Setting, check_count, make
from outvote.presenters.lookup import presenter

PRIVATE_RATE: Final = 600
"""Events in a second, over the fleet, with a privacy budget, where groups are larger."""
MOST_SITES, MOST_EVENTS = 20, 100_000


def choose(
    *,
    protocol: str,
    sites: int,
    variants: int = 3,
    privacy_budget: float | None = None,
    reward_window: float | None = None,
    seed: int = 0,
) -> Setting:
    """A setting, or an error that says what can be asked for."""
    check_count("sites", sites, 2, MOST_SITES)
    return make(
        presenter(protocol).audit,
        protocol,
        NAMES[:variants],
        sites,
        rate=None if privacy_budget is None else PRIVATE_RATE,
        seed=seed,
        privacy_budget=privacy_budget,
        reward_window=reward_window,
    )
