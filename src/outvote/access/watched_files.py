"""Files that may be replaced while they are in use: certificates, credentials, tokens.

New content replaces the old once it is complete. A partly written or damaged file changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from outvote.core.errors import InvalidConfiguration

_State: TypeAlias = tuple[tuple[int, int, int] | None, ...]


class WatchedFiles:
    """Files that belong together. Create it before reading them, so that a write in between is noticed."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(paths)
        self._in_use = self._state()
        self._failed: _State | None = None
        self._reported: _State | None = None

    def reload(self, load: Callable[[], object]) -> bool:
        """Call `load` if a file has changed. Return whether new content was loaded.

        `load` raises `InvalidConfiguration` for content that it cannot use. The error is raised here only once, and
        only if the same content fails twice in a row: content that fails once may still be being written.
        """
        state = self._state()
        if state in (self._in_use, self._reported):
            return False
        try:
            load()
        except InvalidConfiguration:
            if state == self._failed:
                self._reported = state
                raise
            self._failed = state
            return False
        self._in_use, self._failed, self._reported = state, None, None
        return True

    def _state(self) -> _State:
        return tuple(_state_of(path) for path in self._paths)


def _state_of(path: Path) -> tuple[int, int, int] | None:
    """A value that changes when the file is replaced; None if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
