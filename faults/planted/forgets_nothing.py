"""A planted bug: an edge keeps in its store what is left of a deleted task."""

from __future__ import annotations

from outvote.edge.store import EdgeStore


def drop_task(self: EdgeStore, task_id: str) -> None:
    pass


EdgeStore.drop_task = drop_task  # type: ignore[method-assign]
