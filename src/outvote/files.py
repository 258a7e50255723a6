"""Files that are written whole, and folders for their owner only.

Whoever reads a file that is written here finds the old content or the new one, never a part: the content goes to a file
beside it, `NAME.part`, which is then renamed. If that fails, the old file stays.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_whole(path: str | Path, content: str) -> None:
    """Write a text as UTF-8."""
    with open_whole(path) as file:
        file.write(content.encode())


def write_private(path: str | Path, content: bytes) -> None:
    """Write a file that only its owner can read, from its first byte on; it is on the disk when this returns."""
    with open_whole(path, mode=0o600) as file:
        os.fchmod(file.fileno(), 0o600)  # the umask may have taken something away
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def open_whole(path: str | Path, *, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a file for writing; it gets its name when the block ends, and is removed if the block fails."""
    part = Path(f"{path}.part")
    part.unlink(missing_ok=True)  # left by a process that was killed
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def make_private_folder(path: Path) -> None:
    """Make a folder for its owner only, whatever the umask; also those above it that are missing."""
    if not path.is_dir():
        make_private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
        path.chmod(0o700)


def sync_folder(folder: Path) -> None:
    """What was renamed in it stays so after a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
