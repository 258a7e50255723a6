"""How long something takes, and how long ago something was, as people say it."""

from __future__ import annotations

from outvote.presenters.formats import plural


def duration(days: float) -> str:
    """About how long something takes: “2.5 weeks”."""
    for unit, length in (("year", 365.25), ("week", 7.0), ("day", 1.0), ("hour", 1 / 24), ("minute", 1 / 1440)):
        if days >= 2 * length:
            value = days / length
            return f"{value:,.0f} {unit}s" if value >= 10 else f"{value:.2g} {unit}s"
    return "a minute or less" if days < 1 / 1440 else plural(round(days * 1440), "minute")


def since(seconds: float) -> str:
    """How long ago; clocks may differ a little, so nothing is in the future. The dashboard's script says the same."""
    seconds = max(seconds, 0)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit} ago"
    return f"{seconds // 1:.0f} s ago"


def span(seconds: float) -> str:
    """Write a duration in the largest unit that gives a whole number: "30 minutes", "90 seconds"."""
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            return plural(int(seconds // size), unit)
    return "1 second" if seconds == 1 else f"{seconds:g} seconds"
