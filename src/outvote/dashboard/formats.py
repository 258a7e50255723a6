"""Times as people read them on a page. The time now is an argument."""

from __future__ import annotations

from datetime import UTC, datetime

from markupsafe import Markup, escape

from outvote.presenters.durations import since


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
