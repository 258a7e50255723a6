"""What every page of results is written with: numbers, paragraphs, tables, and promises beside what was measured."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

QUIET = 0.5
"""Load average above which a page says that the machine was busy."""


@dataclass(frozen=True)
class Target:
    """A figure that was promised, and the one that was measured: None where this run did not measure it."""

    what: str
    most: float = math.inf
    least: float = -math.inf
    unit: str = ""
    measured: float | None = None

    def row(self) -> list[str]:
        limit = f"at most {number(self.most)}" if self.least == -math.inf else f"at least {number(self.least)}"
        if self.measured is None:
            return [self.what, limit + self.unit, "not measured", "–"]
        met = self.least <= self.measured <= self.most
        return [self.what, limit + self.unit, number(self.measured) + self.unit, "met" if met else "**not met**"]


def number(value: float | None) -> str:
    """Three significant digits, as people write them."""
    if value is None:
        return "–"
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:g}"


def power(value: int) -> str:
    """10⁶ for a million."""
    exponent = round(math.log10(value))
    if 10**exponent != value:
        return f"{value:,}"
    return "10" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def caveats(load: float, quick: bool = False) -> str:
    """What readers must know of the run: nothing, or sentences that begin with a space."""
    busy = f" **Other work was running** (load average {load:.1f} at the start)." if load > QUIET else ""
    return busy + (" **A quick run**: fewer rounds, less sure." if quick else "")


def prose(text: str) -> str:
    """A paragraph, wrapped."""
    return textwrap.fill(" ".join(text.split()), 120)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> str:
    """A table that reads well in a terminal too; all but the first columns, of words, are flush right."""
    widths = [max(3, *map(len, column)) for column in zip(head, *rows, strict=True)]
    rule = ["-" * width if i < words else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    lines = []
    for row in (head, rule, *rows):
        cells = zip(row, widths, strict=True)
        padded = [cell.ljust(width) if i < words else cell.rjust(width) for i, (cell, width) in enumerate(cells)]
        lines.append("| " + " | ".join(padded) + " |")
    return "\n".join(lines)
