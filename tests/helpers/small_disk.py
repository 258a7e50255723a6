"""A small file system of its own, to be filled. Only who may mount can have one."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path


class CannotMount(Exception):
    """Why there is no disk."""


def mount(folder: Path, size: str) -> None:
    """Where files go from now on; `size` is as mount has it: 2m."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        raise CannotMount(mounted.stderr.strip())


def unmount(folder: Path) -> None:
    subprocess.run(["umount", str(folder)], check=True)


class Disk:
    """What is mounted there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self) -> None:
        """To the last byte."""
        with self._filler.open("wb", buffering=0) as filler:
            piece = 1 << 16
            while piece >= 512:
                try:
                    filler.write(bytes(piece))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    piece //= 2

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)
