"""How long something takes, and how long ago something was, as people say it."""

from __future__ import annotations


def duration(days: float) -> str:
    for unit, length in (("years", 365.25), ("weeks", 7.0), ("days", 1.0), ("hours", 1 / 24), ("minutes", 1 / 1440)):
        if days >= 2 * length:
            value = days / length
            return f"{value:,.0f} {unit}" if value >= 10 else f"{value:.2g} {unit}"
    return "a minute or less" if days < 1 / 1440 else f"{days * 1440:.0f} minutes"


def since(seconds: float) -> str:
    """How long ago; clocks may differ a little, so nothing is in the future. The dashboard's script says the same."""
    seconds = max(seconds, 0)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit} ago"
    return f"{seconds // 1:.0f} s ago"
