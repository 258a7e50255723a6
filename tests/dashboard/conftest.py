"""What several files of this folder start from."""

from __future__ import annotations

from network.conftest import engine

__all__ = ["engine"]
