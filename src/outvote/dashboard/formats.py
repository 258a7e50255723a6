"""Numbers and times as people read them. Time comes as an argument."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from markupsafe import Markup, escape

from outvote.planner.duration import since


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


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def ago(at: float | None, now: float) -> Markup:
    """How long ago, in an element whose text the page keeps up to date by itself."""
    if at is None:
        return Markup("never")
    return Markup('<time datetime="{}" data-since="{:.0f}">{}</time>').format(iso(at), at, since(now - at))


def moment(at: float) -> Markup:
    """A time of day; the page shows it in the zone of who looks."""
    text = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" data-moment>{}</time>').format(iso(at), escape(text))
