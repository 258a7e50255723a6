"""How commands print for people: one look for all tables."""

from __future__ import annotations

from collections.abc import Collection

from rich.console import Console
from rich.table import Table


def console() -> Console:
    return Console(highlight=False)


def table(*headers: str, right: Collection[str] = ()) -> Table:
    """A table without lines; the columns of numbers are named in `right`."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        made.add_column(header, justify="right" if header in right else "left")
    return made
