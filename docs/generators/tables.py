"""Tables and paragraphs in Markdown that look right on GitHub and on the site."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell(each) for each in line) + " |" for line in lines)


def cell(text: str) -> str:
    """One line, whose bars are no borders."""
    return " ".join(text.split()).replace("|", "\\|")


def paragraphs(text: str) -> str:
    """Text as it was written, wrapped anew; what stands in columns, is a tree or is indented code stays as it is."""
    parts = [_paragraph(part) for part in re.split(r"\n\s*\n", inspect.cleandoc(text))]
    return "\n\n".join(parts).replace("\n```\n\n```py\n", "\n\n")


def _paragraph(text: str) -> str:
    lines = text.splitlines()
    if all(line.startswith("    ") for line in lines):
        return "\n".join(["```py", *(line[4:] for line in lines), "```"])
    if "├" in text or (len(lines) > 1 and all(re.match(r"\S+ {2,}\S", line) for line in lines)):
        return "\n".join(["```", *lines, "```"])
    if lines[0].startswith(">>> "):
        return "\n".join(["```py", *lines, "```"])
    if len(lines) > 1 and all(line.startswith("    ") for line in lines[1:]):  # parameters, by name
        items = re.split(r"\n    (?=\S)", "\n".join(lines[1:])[4:])
        return "\n".join([lines[0], "", *(_item(*each.partition(": ")[::2]) for each in items)])
    return textwrap.fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)


def _item(name: str, text: str) -> str:
    said = f"- `{name}`: " + " ".join(text.split())
    return textwrap.fill(said, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
