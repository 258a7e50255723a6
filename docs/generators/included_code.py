"""Pieces of the programs beside the guides, so that what a guide shows is what a test runs.

A piece stands between `# ---- NAME` and the next such line, or the end of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

HOWTO = Path(__file__).parents[1] / "howto"
MARK = re.compile(r"^# ---- ([a-z-]+)\n", re.MULTILINE)


def included() -> dict[str, Callable[[], str]]:
    """By the name of a program and of its piece: `one-shot-player` is the piece `player` of `one_shot.py`."""
    return {
        f"{path.stem.replace('_', '-')}-{name}": lambda text=text: f"```python\n{text.strip()}\n```"  # type: ignore[misc]
        for path in sorted(HOWTO.glob("*.py"))
        for name, text in pieces(path.read_text(encoding="utf-8")).items()
    }


def pieces(source: str) -> dict[str, str]:
    parts = MARK.split(source)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))
