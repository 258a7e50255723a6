"""How long something takes, as people say it."""

from __future__ import annotations


def duration(days: float) -> str:
    for unit, length in (("years", 365.25), ("weeks", 7.0), ("days", 1.0), ("hours", 1 / 24), ("minutes", 1 / 1440)):
        if days >= 2 * length:
            value = days / length
            return f"{value:,.0f} {unit}" if value >= 10 else f"{value:.2g} {unit}"
    return "a minute or less" if days < 1 / 1440 else f"{days * 1440:.0f} minutes"
