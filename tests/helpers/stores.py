"""Stores of edges, as tests prepare them and look into them."""

from __future__ import annotations

from pathlib import Path

from outvote.edge.store import EdgeStore, Save


def a_used_store(path: Path) -> str:
    """Makes a store with a task, a snapshot and two messages, and closes it; returns its incarnation."""
    with EdgeStore(path) as store:
        store.put_task("colour-1", '{"arms": 3}')
        store.save([Save("colour-1", "after two", [(0, b"zero"), (1, b"one")])])
        return store.incarnation
