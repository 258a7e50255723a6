"""Numbers as people read them."""

from __future__ import annotations

import math


def count(value: float) -> str:
    """A whole number, or one that stands for many."""
    return f"{value:,.0f}"


def about(value: float) -> str:
    """An estimate: two figures, and no more digits than it deserves."""
    if value < 100:
        return f"{value:,.0f}"
    unit = 10 ** (math.floor(math.log10(value)) - 1)
    return f"{round(value / unit) * unit:,.0f}"


def percent(value: float | None) -> str:
    """A mean reward; of small ones more digits matter."""
    if value is None:
        return "–"
    digits = 2 if 0 < abs(value) < 0.01 else 1
    return f"{100 * value:.{digits}f} %"


def points(value: float) -> str:
    """A difference of means, in points of a hundred."""
    return f"{100 * value:+.1f}".replace("-", "−")


def lift_percent(value: float | None) -> str:
    """A relative lift; None is without a bound."""
    if value is None:
        return "∞"
    digits = 0 if abs(value) >= 0.1 else 1
    return f"{100 * value:+,.{digits}f} %".replace("-", "−")


def plural(number: int, one: str, many: str | None = None) -> str:
    """“1 site”, “3 sites”."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def listed(names: list[str], most: int = 4) -> str:
    """“a, b and c”; of many, the first and how many more."""
    shown = names[:most]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most:,} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
