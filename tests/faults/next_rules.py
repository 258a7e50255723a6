"""Loaded into a process before its command runs, makes it one of a version that knows the rules 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from outvote.core import task


class Known:
    """Rules that are known: a task of others differs from them."""

    def __init__(self, *rules: int) -> None:
        self._rules = rules

    def __ne__(self, other: object) -> bool:
        return other not in self._rules

    def __eq__(self, other: object) -> bool:
        return other in self._rules

    def __hash__(self) -> int:
        return hash(self._rules)

    def __str__(self) -> str:
        return " or ".join(map(str, self._rules))


def learn() -> None:
    """For good."""
    task.RULES = Known(1, 2)  # type: ignore[assignment]


@contextmanager
def learnt() -> Iterator[None]:
    """For a while, in this process."""
    before = task.RULES
    learn()
    try:
        yield
    finally:
        task.RULES = before
